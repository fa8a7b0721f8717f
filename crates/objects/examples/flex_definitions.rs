//! Prints the custom resource definition of `AzureFlexNodeClass` as Karpenter's chart holds it:
//!
//! ```console
//! $ cargo run -p bringup-objects --example flex_definitions >karpenter/charts/karpenter/crds/flex.aks.azure.com_azureflexnodeclasses.yaml
//! ```

use std::io::{self, Write as _};

use bringup_objects::flex::AzureFlexNodeClass;
use kube::CustomResourceExt as _;

fn main() -> anyhow::Result<()> {
    let yaml = serde_saphyr::to_string(&AzureFlexNodeClass::crd())?;
    io::stdout().write_all(yaml.as_bytes())?;
    Ok(())
}
