//! Limits of pools: a client of the plugin may choose subscription, resource group, subnet and image only
//! among those that the operator has allowed.

use bringup_azure::Scopes;
use bringup_azure::id::{Name, ResourceId};
use bringup_objects::flex::FlexNodeClassSpec;

use crate::grpc::plugin::PoolError;

/// Refuses a pool that would use a resource outside the scopes.
pub(super) fn check(scopes: &Scopes, class: &FlexNodeClassSpec) -> Result<(), PoolError> {
    let place: Result<(Name, Name), _> = class
        .subscription_id
        .parse()
        .and_then(|subscription| Ok((subscription, class.resource_group.parse()?)));
    match place {
        Ok((subscription, group)) if scopes.allow(&subscription, &group) => {}
        _ => return Err(outside("spec.resource_group")),
    }
    check_id(scopes, "spec.subnet_id", &class.subnet_id)?;
    match class.image_id.as_deref() {
        // IDs of shared gallery images contain no subscription.
        Some(id) if is_in_subscription(id) => check_id(scopes, "spec.image_id", id),
        _ => Ok(()),
    }
}

/// Refuses a resource outside the scopes.
pub(super) fn check_resource(
    scopes: &Scopes,
    field: &str,
    resource: &ResourceId,
) -> Result<(), PoolError> {
    if scopes.allow(resource.subscription(), resource.resource_group()) {
        Ok(())
    } else {
        Err(outside(field))
    }
}

fn check_id(scopes: &Scopes, field: &str, id: &str) -> Result<(), PoolError> {
    let resource: ResourceId = id.parse().map_err(|_| outside(field))?;
    check_resource(scopes, field, &resource)
}

fn is_in_subscription(id: &str) -> bool {
    let prefix = "/subscriptions/";
    id.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

fn outside(field: &str) -> PoolError {
    PoolError::Field {
        field: field.to_owned(),
        what: "it is outside the subscriptions and resource groups of --flex-plugin-scope"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "00000000-0000-0000-0000-000000000001";
    const FOREIGN: &str = "00000000-0000-0000-0000-000000000002";

    fn subnet(subscription: &str, group: &str) -> String {
        format!(
            "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network/virtualNetworks/vnet/subnets/nodes"
        )
    }

    fn class(subscription: &str, group: &str, subnet: String) -> FlexNodeClassSpec {
        FlexNodeClassSpec {
            subscription_id: subscription.to_owned(),
            resource_group: group.to_owned(),
            subnet_id: subnet,
            ..FlexNodeClassSpec::default()
        }
    }

    fn scopes() -> Scopes {
        ["nodes", "network"]
            .map(|group| format!("{OURS}/{group}").parse().unwrap())
            .into_iter()
            .collect()
    }

    #[test]
    fn a_pool_of_the_plugin_stays_within_its_subscriptions_and_groups() {
        let good = class(OURS, "nodes", subnet(OURS, "network"));
        assert!(check(&scopes(), &good).is_ok());
        assert!(check(&Scopes::default(), &good).is_err(), "no scopes, no pools");
        let image = |id: &str| FlexNodeClassSpec { image_id: Some(id.to_owned()), ..good.clone() };
        let foreign_image = format!(
            "/Subscriptions/{FOREIGN}/resourceGroups/nodes/providers/Microsoft.Compute/images/x"
        );
        for (class, field) in [
            (class(FOREIGN, "nodes", subnet(OURS, "network")), "spec.resource_group"),
            (class(OURS, "others", subnet(OURS, "network")), "spec.resource_group"),
            (class("", "", subnet(OURS, "network")), "spec.resource_group"),
            (class(OURS, "nodes", subnet(FOREIGN, "network")), "spec.subnet_id"),
            (class(OURS, "nodes", subnet(OURS, "others")), "spec.subnet_id"),
            (class(OURS, "nodes", "nonsense".to_owned()), "spec.subnet_id"),
            (image(&foreign_image), "spec.image_id"),
        ] {
            let refused = check(&scopes(), &class).unwrap_err().to_string();
            assert!(
                refused.starts_with(field) && refused.contains("--flex-plugin-scope"),
                "{refused}"
            );
        }
        assert!(check(&scopes(), &image("/CommunityGalleries/x/Images/y/Versions/latest")).is_ok());
    }
}
