//! The name of a VM, from its ID.

/// The VM's name in a provider ID: `…/virtualMachines/NAME`, or `SCALESET_N` for the VM of a uniform scale
/// set.
pub(crate) fn name(provider_id: &str) -> Option<String> {
    let mut segments = provider_id.rsplit('/').filter(|segment| !segment.is_empty());
    let last = segments.next()?;
    if !segments.next()?.eq_ignore_ascii_case("virtualMachines") {
        return None;
    }
    let (parent, kind) = (segments.next()?, segments.next()?);
    if kind.eq_ignore_ascii_case("virtualMachineScaleSets") {
        return Some(format!("{parent}_{last}"));
    }
    Some(last.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_stands_at_the_end_of_the_id() {
        let group = "azure:///subscriptions/s/resourceGroups/g/providers/Microsoft.Compute";
        assert_eq!(name(&format!("{group}/virtualMachines/aks-1")).as_deref(), Some("aks-1"));
        let scale_set = format!("{group}/virtualMachineScaleSets/pool/virtualMachines/3");
        assert_eq!(name(&scale_set).as_deref(), Some("pool_3"));
        for other in ["", "aks-1", "azure:///vm/aks-1", "aws:///eu/i-1"] {
            assert_eq!(name(other), None, "{other}");
        }
    }
}
