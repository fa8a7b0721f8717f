//! Compiles `proto/` to the types of a node's configuration and to the page that documents them. `protoc` is
//! not
//! needed.

#[path = "build/page.rs"]
mod page;
#[path = "build/schema.rs"]
mod schema;
#[path = "build/types.rs"]
mod types;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    println!("cargo::rerun-if-changed=build");
    let set = protox::Compiler::new(["proto"])?
        .include_source_info(true)
        .include_imports(true)
        .open_files(["node_config.proto"])?
        .file_descriptor_set();
    let schema = schema::Schema::of(&set)?;
    let out = env::var("OUT_DIR")?;
    fs::write(Path::new(&out).join("node_config.rs"), types::rust(&schema))?;
    fs::write(Path::new(&out).join("node_config.md"), page::markdown(&schema))?;
    Ok(())
}
