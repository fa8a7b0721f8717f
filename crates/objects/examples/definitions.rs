//! Prints the custom resource definitions as the Helm chart holds them:
//!
//! ```console
//! $ cargo run -p bringup-objects --example definitions >charts/bringup/definitions/bootstrapreports.bringup.dev.yaml
//! ```

use std::io::{self, Write as _};

fn main() -> anyhow::Result<()> {
    let yaml = serde_saphyr::to_string(&bringup_objects::report::definition())?;
    io::stdout().write_all(yaml.as_bytes())?;
    Ok(())
}
