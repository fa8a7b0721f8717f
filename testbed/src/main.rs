//! Runs a control plane until it is interrupted, for manual tests.

use std::io::{self, Write};

use bringup_testbed::ControlPlane;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let control_plane =
        ControlPlane::builder().with_controller_manager().with_scheduler().start().await?;
    let kubeconfig = control_plane.kubeconfig_path().display();
    writeln!(io::stdout(), "export KUBECONFIG={kubeconfig}")?;
    // No cleanup is necessary: the control plane ends with this process, however the process ends.
    std::future::pending().await
}
