//! The results of a bootstrap script: the JSON on the node, and the status message of the Custom
//! Script handler, in the formats of the real handlers, including their truncation.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};

use crate::resources::vm::Os;
use crate::scenario::{JsonShape, ScriptRun};

/// The handler stores this many bytes from the end of each stream.
const STREAM_TAIL: usize = 4096;
/// The scripts store this many bytes from the end of their log.
const LOG_TAIL: usize = 3000;

/// When the phases of a boot began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BootTimes {
    kernel: Timestamp,
    agent: Timestamp,
}

impl BootTimes {
    pub(crate) fn new(kernel: Timestamp, agent: Timestamp) -> Self {
        Self { kernel, agent }
    }
}

/// A script that has ended.
#[derive(Debug)]
pub(crate) struct Finished<'a> {
    pub(crate) script: &'a ScriptRun,
    pub(crate) times: BootTimes,
    pub(crate) started: Timestamp,
    pub(crate) ended: Timestamp,
    pub(crate) os: Os,
    /// Version of the Custom Script handler.
    pub(crate) handler: &'a str,
}

impl Finished<'_> {
    /// `provision.json` in the format of the scripts: one line, all values are strings.
    pub(crate) fn provision_json(&self) -> String {
        let systemd = |seconds| {
            let at = self.times.kernel + SignedDuration::from_secs(seconds);
            at.strftime("%a %Y-%m-%d %H:%M:%S UTC").to_string()
        };
        let agent = self.times.agent.strftime("%a %Y-%m-%d %H:%M:%S UTC").to_string();
        let cse = self.started.strftime("%a %b %e %H:%M:%S UTC %Y").to_string();
        let kubelet = if self.script.exit_code == 0 { systemd(40) } else { "n/a".to_owned() };
        let pairs = [
            ("ExitCode", self.script.exit_code.to_string()),
            ("Output", tail(&self.script.output, LOG_TAIL).to_owned()),
            ("Error", String::new()),
            ("ExecDuration", self.started.duration_until(self.ended).as_secs().to_string()),
            ("KernelStartTime", systemd(0)),
            ("CloudInitLocalStartTime", systemd(2)),
            ("CloudInitStartTime", systemd(6)),
            ("CloudFinalStartTime", systemd(10)),
            ("NetworkdStartTime", systemd(4)),
            ("CSEStartTime", cse.clone()),
            ("GuestAgentStartTime", agent.clone()),
            ("SystemdSummary", String::new()),
        ];
        let mut text = String::from("{ ");
        for (key, value) in pairs {
            let _ = write!(text, "\"{key}\": {}, ", quoted(&value));
        }
        let _ = write!(
            text,
            "\"BootDatapoints\": {{ \"KernelStartTime\": {}, \"CSEStartTime\": {}, \"GuestAgentStartTime\": {}, \"KubeletStartTime\": {} }} }}",
            quoted(&systemd(0)),
            quoted(&cse),
            quoted(&agent),
            quoted(&kubelet),
        );
        text
    }

    /// The status message of the extension.
    pub(crate) fn message(&self) -> String {
        match self.os {
            Os::Linux => self.linux_message(),
            Os::Windows => self.windows_message(),
        }
    }

    fn linux_message(&self) -> String {
        let stdout = match self.script.json {
            JsonShape::Whole => format!("{}\n", self.provision_json()),
            JsonShape::HeadCut => {
                let json = self.provision_json();
                let start = json.find("\"Output\": \"").map_or(0, |at| at + "\"Output\": \"".len());
                format!("{}\n", &json[start..])
            }
            JsonShape::Absent => self.script.output.clone(),
        };
        let stdout = tail(&stdout, STREAM_TAIL);
        let stderr = tail(&self.script.stderr, STREAM_TAIL);
        let code = self.outer();
        if code == 0 {
            return format!("Enable succeeded: \n[stdout]\n{stdout}\n[stderr]\n{stderr}");
        }
        let error =
            format!("failed to execute command: command terminated with exit status={code}");
        let streams = format!("\n[stdout]\n{stdout}\n[stderr]\n{stderr}");
        // From 2.1.17 on, the message has no prefix and repeats the error at the end.
        if is_new_handler(self.handler) {
            format!("{error}{streams}: {error}")
        } else {
            format!("Enable failed: {error}{streams}")
        }
    }

    fn windows_message(&self) -> String {
        if self.outer() == 0 {
            return "Finished executing command".to_owned();
        }
        let text = tail(&self.script.output, LOG_TAIL).replace('|', "%7C").replace('\n', "\r\n");
        let result = format!(
            "ExitCode: |{}|, Output: |{}|, Error: |{text}|",
            self.script.exit_code, self.script.name
        );
        let cut: String = result.chars().take(240).collect();
        format!(
            "Command execution finished, but failed because it returned a non-zero exit code of: '{}'. The command had an error output of: '{cut}\r\nAt C:\\Azur...' For more information, check the instance view by executing Get-AzVmssVm or Get-AzVm (https://aka.ms/GetAzVm).",
            self.outer()
        )
    }

    /// The exit status that the handler sees. The Windows command always exits with 0 or 1.
    pub(crate) fn outer(&self) -> i32 {
        let usual = match self.os {
            Os::Linux => self.script.exit_code,
            Os::Windows => i32::from(self.script.exit_code != 0),
        };
        self.script.outer_exit_code.unwrap_or(usual)
    }
}

/// Whether a handler uses the newer message format.
fn is_new_handler(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    let parts = [(); 3].map(|()| numbers.next().unwrap_or(0));
    parts >= [2, 1, 17]
}

/// JSON text with runs of spaces collapsed, as an unquoted `echo` prints it.
fn quoted(text: &str) -> String {
    let mut quoted = serde_json::Value::from(text).to_string();
    while quoted.contains("  ") {
        quoted = quoted.replace("  ", " ");
    }
    quoted
}

/// The last bytes of a text, starting at a whole character.
fn tail(text: &str, most: usize) -> &str {
    let mut start = text.len().saturating_sub(most);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished<'a>(script: &'a ScriptRun, os: Os, handler: &'a str) -> Finished<'a> {
        let kernel: Timestamp = "2026-01-27T14:30:33Z".parse().unwrap();
        let started = kernel + SignedDuration::from_secs(33);
        Finished {
            script,
            times: BootTimes::new(kernel, kernel + SignedDuration::from_secs(20)),
            started,
            ended: started + SignedDuration::from_secs(61),
            os,
            handler,
        }
    }

    fn oras_missing() -> ScriptRun {
        ScriptRun {
            exit_code: 211,
            output: "oras: command not found\n+ exit 211".to_owned(),
            ..ScriptRun::default()
        }
    }

    #[test]
    fn the_result_is_json_with_all_values_as_text() {
        let script = oras_missing();
        let json: serde_json::Value =
            serde_json::from_str(&finished(&script, Os::Linux, "2.1.16").provision_json()).unwrap();
        assert_eq!(json["ExitCode"], "211");
        assert_eq!(json["ExecDuration"], "61");
        assert_eq!(json["KernelStartTime"], "Tue 2026-01-27 14:30:33 UTC");
        assert_eq!(json["CSEStartTime"], "Tue Jan 27 14:31:06 UTC 2026");
        assert_eq!(json["BootDatapoints"]["KubeletStartTime"], "n/a");
    }

    #[test]
    fn an_old_handler_has_a_prefix_and_a_new_one_repeats_the_error() {
        let script = oras_missing();
        let error = "failed to execute command: command terminated with exit status=211";
        let old = finished(&script, Os::Linux, "2.1.16").message();
        let new = finished(&script, Os::Linux, "2.1.17").message();
        assert!(
            old.starts_with(&format!("Enable failed: {error}\n[stdout]\n{{ \"ExitCode\": \"211\"")),
            "{old}"
        );
        assert!(new.starts_with(error) && new.ends_with(&format!(": {error}")), "{new}");
    }

    #[test]
    fn the_head_of_the_result_can_be_lost() {
        let script = ScriptRun { json: JsonShape::HeadCut, ..oras_missing() };
        let message = finished(&script, Os::Linux, "2.1.16").message();
        assert!(!message.contains("ExitCode") && message.contains("ExecDuration"), "{message}");
    }

    #[test]
    fn windows_reports_the_code_between_bars_and_exit_code_1() {
        let script = ScriptRun {
            exit_code: 34,
            name: "WINDOWS_CSE_ERROR_X".to_owned(),
            output: "a|b".to_owned(),
            ..ScriptRun::default()
        };
        let message = finished(&script, Os::Windows, "1.10.15").message();
        assert!(message.contains("exit code of: '1'"), "{message}");
        assert!(
            message.contains("ExitCode: |34|, Output: |WINDOWS_CSE_ERROR_X|, Error: |a%7Cb|"),
            "{message}"
        );
    }

    #[test]
    fn a_stream_keeps_its_last_4096_bytes() {
        let script = ScriptRun {
            exit_code: 1,
            json: JsonShape::Absent,
            output: "ä".repeat(4000),
            ..ScriptRun::default()
        };
        let message = finished(&script, Os::Linux, "2.1.16").message();
        assert_eq!(message.matches('ä').count(), 2048);
    }
}
