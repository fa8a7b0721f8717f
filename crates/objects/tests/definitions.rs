//! What the Helm chart installs is what the code reads and writes.

use std::fs;
use std::path::Path;

#[test]
fn the_definition_in_the_chart_is_the_one_in_the_code() -> anyhow::Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../charts/bringup/definitions/bootstrapreports.bringup.dev.yaml");
    let in_chart = fs::read_to_string(file)?;
    let in_code = serde_saphyr::to_string(&bringup_objects::report::definition())?;
    assert!(
        in_chart == in_code,
        "the definition in charts/bringup/definitions is stale: run make manifests"
    );
    Ok(())
}
