//! The real controller as a process of its own, with the real API server and the simulated Azure over HTTPS.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::TestBed;
use crate::process::Process;

/// A running controller. The controller ends when this value is dropped, or with the test bed.
pub struct ControllerProcess {
    process: Process,
    /// The number of log lines that were read.
    read: usize,
    address: String,
}

impl ControllerProcess {
    /// Starts `program`, and waits until its health endpoint answers.
    pub async fn start(program: &Path, bed: &TestBed, arguments: &[&str]) -> Result<Self> {
        let fixed =
            ["--azure-credential", "workload-identity", "--azure-scope", crate::SUBSCRIPTION];
        let arguments = [&fixed[..], arguments].concat();
        Self::start_as(program, bed, bed.kubeconfig(), &[], &arguments).await
    }

    /// Like [`Self::start`], with the permissions of another kubeconfig, and with environment variables such
    /// as those of the chart's Deployment. Only variables that must point to this test bed are fixed.
    pub async fn start_as(
        program: &Path,
        bed: &TestBed,
        kubeconfig: &Path,
        variables: &[(String, String)],
        arguments: &[&str],
    ) -> Result<Self> {
        let process = process(program, bed, kubeconfig, variables, arguments)?;
        process.start(bed.control_plane())?;
        let mut controller = Self { process, read: 0, address: String::new() };
        let listening = controller.logged("listening").await?;
        listening["address"].as_str().unwrap_or_default().clone_into(&mut controller.address);
        Ok(controller)
    }

    /// Waits for the next line of its log whose message contains a text.
    pub async fn logged(&mut self, text: &str) -> Result<Value> {
        let is_it = |line: &str| {
            let line: Option<Value> = serde_json::from_str(line).ok();
            line.is_some_and(|it| it["message"].as_str().is_some_and(|it| it.contains(text)))
        };
        let (number, line) = self.process.logged(self.read, text, is_it).await?;
        self.read = number + 1;
        serde_json::from_str(&line).context("read a line of the log")
    }

    /// The address of health checks and metrics.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The process ID.
    pub fn id(&self) -> u32 {
        self.process.id().unwrap_or_default()
    }

    /// Whether the process still runs.
    pub fn is_running(&self) -> Result<bool> {
        self.process.is_running()
    }

    /// Sends the signal with which a kubelet stops a container, and waits for the exit code.
    pub fn terminate(self) -> Result<Option<i32>> {
        self.process.terminate()
    }

    /// Kills the process with SIGKILL.
    pub fn kill(self) {
        self.process.kill();
    }
}

/// A controller process that is not started yet.
pub(crate) fn process(
    program: &Path,
    bed: &TestBed,
    kubeconfig: &Path,
    variables: &[(String, String)],
    arguments: &[&str],
) -> Result<Process> {
    let token = bed.directory().join("federated-token");
    std::fs::write(&token, "signed by no authority").context("write the federated token")?;
    let fixed =
        ["--namespace", &bed.settings.namespace, "--listen", "127.0.0.1:0", "--identity", "one"];
    let mut all: Vec<String> = fixed.iter().chain(arguments).map(|it| (*it).to_owned()).collect();
    all.extend(["--azure-endpoint".to_owned(), bed.azure_endpoint()]);
    let (program, ca_file) = (program.to_owned(), bed.azure_ca_file());
    let (kubeconfig, endpoint) = (kubeconfig.to_owned(), bed.azure_endpoint());
    let variables = variables.to_vec();
    Ok(Process::new("bringup", move || {
        let mut command = Command::new(&program);
        command
            .arg("controller")
            .args(&all)
            .arg("--azure-ca-file")
            .arg(&ca_file)
            .arg("--kubeconfig")
            .arg(&kubeconfig)
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .env("AZURE_CLIENT_ID", "11111111-1111-1111-1111-111111111111")
            .env("AZURE_TENANT_ID", "22222222-2222-2222-2222-222222222222")
            .env("AZURE_FEDERATED_TOKEN_FILE", &token)
            .env("AZURE_AUTHORITY_HOST", &endpoint);
        command
    }))
}
