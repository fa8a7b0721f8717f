//! Compiles the services in `proto/`. The build needs no `protoc`, and the generated code is not committed.

use std::error::Error;

/// The path relative to this crate.
const SOURCES: &str = "../../proto";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={SOURCES}");
    let set = protox::Compiler::new([SOURCES])?
        .include_source_info(true)
        .include_imports(true)
        .open_files([
            "bringup/flex/v1/provider.proto",
            "plugin/agentpools.proto",
            "plugin/capacity.proto",
            "plugin/flexvm.proto",
        ])?
        .file_descriptor_set();
    let mut config = tonic_prost_build::Config::new();
    // An `Any` item contains the name of its type.
    config.enable_type_names().type_name_domain(["."], "type.googleapis.com");
    tonic_prost_build::configure()
        .build_transport(false)
        .btree_map(".")
        // The token in this message must not be logged.
        .skip_debug(["kubeadm.Config"])
        .include_file("services.rs")
        .compile_fds_with_config(set, config)?;
    Ok(())
}
