//! Words of a BootstrapReport.

use crate::words;

words! {
    /// How sure a diagnosis is of its cause.
    #[derive(Default)]
    pub enum Confidence {
        /// A guess from the code alone.
        #[default]
        Low = "low",
        /// The text makes the cause likely.
        Medium = "medium",
        /// The text proves the cause, or two sources that each make it likely agree.
        High = "high",
    }
}

words! {
    /// How far a report has come.
    #[derive(Default)]
    pub enum Phase {
        /// The verdict is final.
        #[default]
        Final = "Final",
        /// The evidence was deleted before it could be read; the activity log may still have some.
        Lost = "Lost",
        /// The node came up later.
        Superseded = "Superseded",
    }
}

words! {
    /// The result of a collector.
    #[derive(Default)]
    pub enum CollectorState {
        /// The collector returned evidence.
        #[default]
        Ok = "ok",
        /// The source answered, and had no evidence.
        Empty = "empty",
        /// The collector is disabled.
        Disabled = "disabled",
        /// bringup lacks the permission.
        Denied = "denied",
        /// The read budget or Azure's limits did not allow the request in time.
        Throttled = "throttled",
        /// The resource was already deleted, or did not exist yet.
        Late = "late",
        /// The request failed.
        Failed = "failed",
    }
}

words! {
    /// How a node bootstraps.
    #[derive(Default)]
    pub enum ProvisionMode {
        /// Not known yet.
        #[default]
        Unknown = "unknown",
        /// A Custom Script extension runs the bootstrap.
        Extension = "extension",
        /// The VM bootstraps from its custom data, without an extension.
        Scriptless = "scriptless",
        /// AKS runs the VM as a machine of an agent pool.
        Machine = "machine",
        /// A NodeClaim without a pool, whose VM Azure has not created.
        Standalone = "standalone",
    }
}
