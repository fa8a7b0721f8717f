//! Guesses the kind of evidence in a file from its name and beginning. The guess determines how the evidence
//! is named, not how it is read.

use bringup_diagnosis::Source;

/// The number of bytes at the beginning of a text that are searched.
const HEAD: usize = 64 * 1024;

const NAMES: &[(&str, Source)] = &[
    ("provision.json", Source::ProvisionResult),
    ("cluster-provision", Source::ScriptLog),
    ("customdatasetupscript", Source::ScriptLog),
    ("serial", Source::SerialLog),
    ("console", Source::SerialLog),
    ("boot-log", Source::SerialLog),
    ("activity", Source::ActivityLog),
];

/// Keys in JSON: the first key that is found decides.
const KEYS: &[(&str, Source)] = &[
    ("\"eventTimestamp\"", Source::ActivityLog),
    ("\"ExecDuration\"", Source::ProvisionResult),
    ("\"apiVersion\"", Source::Kubernetes),
    ("\"instanceView\"", Source::Extension),
    ("\"substatuses\"", Source::Extension),
    ("\"typeHandlerVersion\"", Source::Extension),
    ("VMExtension", Source::Extension),
    ("\"code\"", Source::Arm),
    ("\"provisioningState\"", Source::Arm),
    ("/subscriptions/", Source::Arm),
];

/// Marks in text: the first mark that is found decides.
const MARKS: &[(&str, Source)] = &[
    ("[stdout]", Source::Extension),
    ("Enable failed: ", Source::Extension),
    ("when processing extension", Source::Extension),
    ("] Linux version ", Source::SerialLog),
    ("cloud-init[", Source::SerialLog),
    ("systemd[1]: ", Source::SerialLog),
    ("logs_to_events", Source::ScriptLog),
    ("\n+ ", Source::ScriptLog),
    ("Code=\"", Source::Arm),
];

/// The kind of evidence in a text.
pub(crate) fn source_of(name: &str, text: &str) -> Source {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    let head = text.get(..text.floor_char_boundary(HEAD)).unwrap_or(text).trim_start();
    let said = |table: &[(&str, Source)], text: &str| {
        table.iter().find(|(mark, _)| text.contains(mark)).map(|(_, source)| *source)
    };
    let table = if head.starts_with(['{', '[']) && !head.starts_with("[stdout]") {
        // The first line of a console is `[    0.000000] Linux version`, which is not JSON.
        if head.contains('"') && !head.contains("] Linux version ") { KEYS } else { MARKS }
    } else {
        MARKS
    };
    said(NAMES, &name).or_else(|| said(table, head)).unwrap_or(Source::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_file_says_what_it_is() {
        for (name, source) in [
            ("/var/log/azure/aks/provision.json", Source::ProvisionResult),
            ("cluster-provision-cse-output.log", Source::ScriptLog),
            (r"C:\AzureData\CustomDataSetupScript.log", Source::ScriptLog),
            ("node-7.serial.log", Source::SerialLog),
            ("ActivityLog.json", Source::ActivityLog),
            ("serial/notes.txt", Source::Text),
        ] {
            assert_eq!(source_of(name, "nothing that tells"), source, "{name}");
        }
    }

    #[test]
    fn without_a_name_the_text_says_it() {
        for (text, source) in [
            ("[stdout]\n{ \"ExitCode\": \"0\" }", Source::Extension),
            ("VM has reported a failure when processing extension 'vmssCSE'", Source::Extension),
            ("{ \"ExitCode\": \"50\", \"ExecDuration\": \"3\" }", Source::ProvisionResult),
            ("[{ \"eventTimestamp\": \"2026-01-27\", \"code\": 1 }]", Source::ActivityLog),
            ("{\"error\": {\"code\": \"QuotaExceeded\"}}", Source::Arm),
            ("{\"instanceView\": {\"statuses\": [{\"code\": 1}]}}", Source::Extension),
            ("{\"apiVersion\": \"v1\", \"kind\": \"Node\"}", Source::Kubernetes),
            ("[    0.000000] Linux version 6.6 \"x\"", Source::SerialLog),
            ("start\n+ oras pull", Source::ScriptLog),
            ("Code=\"SkuNotAvailable\" Message=\"no\"", Source::Arm),
            ("", Source::Text),
        ] {
            assert_eq!(source_of("stdin", text), source, "{text}");
        }
    }
}
