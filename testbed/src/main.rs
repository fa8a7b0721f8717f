//! Runs a control plane until it is interrupted, for trying things by hand.

use std::io::{self, Write};

use bringup_testbed::ControlPlane;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let control_plane =
        ControlPlane::builder().with_controller_manager().with_scheduler().start().await?;
    let kubeconfig = control_plane.kubeconfig_path().display();
    writeln!(io::stdout(), "export KUBECONFIG={kubeconfig}")?;
    // Nothing to clean up after this: the control plane ends with us, however we end.
    std::future::pending().await
}
