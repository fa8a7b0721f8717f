//! The real controller as a process of its own, against the real API server and the simulated
//! Azure over HTTPS.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::World;

/// The end of a wait that only a broken program reaches.
const FOREVER: Duration = Duration::from_mins(5);

/// A controller that runs. It ends when it is dropped, or with the world.
#[derive(Debug)]
pub struct ControllerProcess {
    child: Child,
    /// Log lines that were not read yet.
    log: UnboundedReceiver<Value>,
    address: String,
}

impl ControllerProcess {
    /// Starts `program`, and waits until it serves its health.
    pub async fn start(
        program: &Path,
        world: &World,
        namespace: &str,
        arguments: &[&str],
    ) -> Result<Self> {
        let fixed =
            ["--azure-credential", "workload-identity", "--azure-scope", crate::SUBSCRIPTION];
        let arguments = [&fixed[..], arguments].concat();
        Self::start_as(program, world, namespace, world.kubeconfig(), &[], &arguments).await
    }

    /// The same with the rights of another kubeconfig than the administrator's, and with variables
    /// such as those of the chart's Deployment. Only what must point to this world is fixed.
    pub async fn start_as(
        program: &Path,
        world: &World,
        namespace: &str,
        kubeconfig: &Path,
        variables: &[(String, String)],
        arguments: &[&str],
    ) -> Result<Self> {
        let token = world.directory().join("federated-token");
        std::fs::write(&token, "signed by nobody").context("write the federated token")?;
        let mut command = Command::new(program);
        command
            .arg("controller")
            .args(["--namespace", namespace, "--listen", "127.0.0.1:0", "--identity", "one"])
            .args(["--azure-endpoint", &world.azure_endpoint()])
            .arg("--azure-ca-file")
            .arg(world.azure_ca_file())
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(arguments)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .env("AZURE_CLIENT_ID", "11111111-1111-1111-1111-111111111111")
            .env("AZURE_TENANT_ID", "22222222-2222-2222-2222-222222222222")
            .env("AZURE_FEDERATED_TOKEN_FILE", &token)
            .env("AZURE_AUTHORITY_HOST", world.azure_endpoint())
            .stdin(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = world
            .control_plane
            .spawn(&mut command)
            .with_context(|| format!("start {}", program.display()))?;
        let output = child.stderr.take().context("the controller's log")?;
        let (send, log) = unbounded_channel();
        // Ends with the process whose output it reads.
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).unwrap_or(Value::String(line));
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut process = Self { child, log, address: String::new() };
        let listening = process.logged("listening").await?;
        listening["address"].as_str().unwrap_or_default().clone_into(&mut process.address);
        Ok(process)
    }

    /// Waits for a line of its log whose message contains a text.
    pub async fn logged(&mut self, text: &str) -> Result<Value> {
        let find = async {
            let mut seen = Vec::new();
            while let Some(line) = self.log.recv().await {
                if line["message"].as_str().is_some_and(|message| message.contains(text)) {
                    return Ok(line);
                }
                seen.push(line.to_string());
            }
            anyhow::bail!("the controller ended:\n{}", seen.join("\n"))
        };
        tokio::time::timeout(FOREVER, find)
            .await
            .with_context(|| format!("waited in vain for `{text}` in the controller's log"))?
    }

    /// Where it serves health and metrics.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> Result<bool> {
        Ok(self.child.try_wait().context("look after the controller")?.is_none())
    }

    /// Asks it to end, as the kubelet does, and waits for its exit code.
    pub fn terminate(mut self) -> Result<Option<i32>> {
        let id = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        let id = id.context("a process has an id")?;
        rustix::process::kill_process(id, rustix::process::Signal::TERM)
            .context("ask the controller to end")?;
        Ok(self.child.wait().context("wait for the controller's end")?.code())
    }

    /// Ends it at once, as SIGKILL does.
    pub fn kill(mut self) -> Result<()> {
        self.child.kill().context("kill the controller")?;
        self.child.wait().context("wait for the controller's end")?;
        Ok(())
    }
}

impl Drop for ControllerProcess {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
