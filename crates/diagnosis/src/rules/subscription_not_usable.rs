//! The subscription cannot be used for this.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::SubscriptionNotUsable,
    title: "the subscription cannot be used for this",
    looks_like: "`ReadOnlyDisabledSubscription`, `MissingSubscriptionRegistration`, `SubscriptionNotRegistered`, `MarketplacePurchaseEligibilityFailed`.",
    misleads: "The request fails like any other that is refused; nothing is wrong with the request.",
    remedy: "A provider that is not registered: `az provider register --namespace NAMESPACE`. A feature: `az feature register --namespace NAMESPACE --name FEATURE`, then register the provider again. Marketplace terms: `az vm image terms accept --urn URN`. A subscription that is disabled or past due: its owner enables it in the portal under Subscriptions.",
    signs: &[
        Sign::new(18, &["readonlydisabledsubscription"]),
        Sign::new(18, &["subscriptionnotregistered"]),
        Sign::new(18, &["missingsubscriptionregistration"]),
        Sign::new(18, &["is not registered to use namespace"]),
        Sign::new(18, &["noregisteredproviderfound"]).fair(),
        Sign::new(18, &["featurenotregistered"]),
        Sign::new(18, &["is not registered for", "feature"]),
        Sign::new(18, &["feature", "is not enabled for this subscription"]),
        Sign::new(18, &["feature", "not registered"]).fair(),
        Sign::new(18, &["subscription is not registered"]),
        Sign::new(18, &["subscription", "is disabled"]),
        Sign::new(18, &["subscription", "in a disabled state"]),
        Sign::new(18, &["subscriptionnotfound"]).fair(),
        Sign::new(18, &["subscription", "past due"]),
        Sign::new(18, &["spending limit"]),
        Sign::new(18, &["marketplacepurchaseeligibility"]),
        Sign::new(18, &["legal terms", "not been accepted"]),
        Sign::new(18, &["have not accepted the legal terms"]),
        Sign::new(18, &["accept the terms"]).near(&["marketplace", "plan"]).fair(),
        Sign::new(18, &["resourcepurchasevalidationfailed"]),
        Sign::new(18, &["user failed validation to purchase resources"]),
    ],
    subject: None,
};

examples! {
    finds: "Code=\"MissingSubscriptionRegistration\" Message=\"The subscription is not registered to use namespace 'Microsoft.Compute'.\"",
    leaves: "The subscription has 4 registered providers",
}
