//! Prints a custom resource definition of flex as the charts hold it: that of `AzureFlexNodeClass`,
//! or of `AzureFlexMachine` if that is asked for.
//!
//! ```console
//! $ cargo run -p bringup-objects --example flex_definitions >karpenter/charts/karpenter/crds/flex.aks.azure.com_azureflexnodeclasses.yaml
//! $ cargo run -p bringup-objects --example flex_definitions -- AzureFlexMachine
//! ```

use std::io::{self, Write as _};

use anyhow::Context as _;
use bringup_objects::flex::definitions;

fn main() -> anyhow::Result<()> {
    let kind = std::env::args().nth(1).unwrap_or_else(|| "AzureFlexNodeClass".to_owned());
    let mut all = definitions().into_iter();
    let definition = all.find(|definition| definition.spec.names.kind == kind);
    let definition = definition.with_context(|| format!("{kind} is no kind of flex"))?;
    let yaml = serde_saphyr::to_string(&definition)?;
    io::stdout().write_all(yaml.as_bytes())?;
    Ok(())
}
