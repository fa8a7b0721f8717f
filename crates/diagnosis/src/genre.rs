//! Whether a text reports what happened to a machine at all. Documentation, the output of tests, manifests
//! and scripts are full of failures, and none of them happened.

use crate::matcher::Page;

/// A text of more lines is a log.
const LONGEST: usize = 400;

/// Whether a text is about something else than the course of one bootstrap.
pub(crate) fn is_no_report(page: &Page<'_>) -> bool {
    let is_result = page.says("[stdout]") && page.says("exitcode");
    if is_result || page.lines.is_empty() || page.lines.len() > LONGEST {
        return false;
    }
    let lines = || (0..page.lines.len()).map(|line| page.bounded_line(line));
    let count = |is: fn(&str) -> bool| lines().filter(|line| is(line)).count();
    let has = |start: &str| lines().any(|line| line.trim_start().starts_with(start));
    let all = count(|line| !line.trim().is_empty());

    let is_test_run =
        has("=== run ") || count(|line| line.contains("--- pass") || line.contains("--- fail")) > 1;
    let is_schema = has("'$schema'") && page.says("'type'");
    let is_template = page.says("'[concat(") || page.says("[parameters(");
    let is_manifest = has("apiversion:") && has("kind:") && has("spec:") && !has("status:");
    let is_alert = has("- alert:") && has("expr:");
    let is_plan = page.says("plan: ") && page.says(" to add, ") && page.says(" to destroy");
    let is_script = count(is_source) * 3 > all
        && lines().any(|line| line.contains("() {") || line.starts_with("#!"));
    let is_chat = count(is_chat_line) * 2 > all && all > 1;
    let is_runbook =
        has("runbook") || count(is_row_of_codes) > 1 && count(is_row_of_codes) * 3 > all;
    // An error of ARM about a resource that no node has.
    let is_of_others = [
        "microsoft.storage/",
        "microsoft.sql/",
        "microsoft.web/",
        "microsoft.insights/",
        "microsoft.documentdb/",
    ]
    .iter()
    .any(|provider| page.says(provider))
        && ![
            "microsoft.compute",
            "microsoft.containerservice",
            "microsoft.network",
            "vmss",
            "node",
            "kube",
        ]
        .iter()
        .any(|ours| page.says(ours));
    let is_build = page.says("npm err!") || page.says("docker build");
    let is_pod = has("containers:") && has("node:") && has("namespace:");
    let is_lesson_page = count(is_lesson) > 1 && all > 3 && !has("+ ");
    let is_prose = count(is_markdown) * 4 >= all && count(is_sentence) > 0 && !has("+ ");
    is_test_run
        || is_schema
        || is_template
        || is_manifest
        || is_alert
        || is_plan
        || is_script
        || is_chat
        || is_prose
        || is_lesson_page
        || is_pod
        || is_runbook
        || is_of_others
        || is_build
}

/// Whether a text names anything that takes part in a bootstrap.
pub(crate) fn is_of_a_bootstrap(page: &Page<'_>) -> bool {
    const PARTS: &[&str] = &[
        "kube",
        "container",
        "cloud",
        "extension",
        "cse",
        "provision",
        "azure",
        "microsoft",
        "nodeclaim",
        "karpenter",
        "machine",
        "systemd",
        "apt",
        "dpkg",
        "dnf",
        "rpm",
        "yum",
        "zypper",
        "curl",
        "wget",
        "kernel",
        "ignition",
        "rke2",
        "k3s",
        "talos",
        "agent",
        "vmss",
        "aks",
        "node",
        "exitcode",
        "oras",
        "docker",
        "crictl",
        "nvidia",
        "modprobe",
        "terraform",
        "ansible",
        "cluster",
        "nslookup",
        "resolver",
        "windows",
        "powershell",
        "/var/lib",
        "/opt/",
        "/usr/",
        "pulling",
        "image",
        "x509",
        "mount",
        "oom",
        "sudo",
        "boot",
        "vm ",
        "vm'",
        "pool",
        "subnet",
        "quota",
        "cni",
        "csr",
        "token",
        "proxy",
        "imds",
        "169.254",
        "168.63",
        "runcmd",
        "no space",
    ];
    !page.is_no_report() && PARTS.iter().any(|part| page.says(part))
}

/// A line of a shell script that is not being run.
fn is_source(line: &str) -> bool {
    let line = line.trim();
    line.ends_with("() {")
        || line == "}"
        || line == "fi"
        || line == "done"
        || line.contains("|| exit")
        || line.contains("|| die")
        || line.starts_with("err_") && line.contains('=')
        || line.starts_with("#!/")
        || (line.starts_with("if ") || line.starts_with("elif ")) && line.ends_with("then")
}

/// `[10:02] name: text`, `name, 10:02: text`.
fn is_chat_line(line: &str) -> bool {
    // `10:02 name: text`
    let bare = line.trim_start().split_once(' ').filter(|(time, rest)| {
        let is_time = time.len() == 5 && time.as_bytes()[2] == b':';
        is_time
            && rest
                .split_once(": ")
                .is_some_and(|(name, _)| name.bytes().all(|byte| byte.is_ascii_lowercase()))
    });
    if bare.is_some() {
        return true;
    }
    let Some((time, rest)) =
        line.trim_start().strip_prefix('[').and_then(|rest| rest.split_once("] "))
    else {
        return false;
    };
    let is_time = time.len() == 5 && time.as_bytes()[2] == b':';
    is_time && rest.split_once(": ").is_some_and(|(name, _)| !name.contains(' '))
}

/// A heading, a list, a table or a fence of Markdown.
fn is_markdown(line: &str) -> bool {
    let line = line.trim_start();
    let is_heading = line.trim_start_matches('#').starts_with(' ') && line.starts_with('#');
    let is_list =
        line.starts_with("- ") && line.len() > 40 || line.starts_with("* ") && line.len() > 60;
    let is_step = line.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok());
    let is_table = line.starts_with('|') && line.ends_with('|');
    is_heading || is_list || is_step || is_table || line.starts_with("```")
}

/// `51 - API server not reachable`: a row of a list of exit codes.
fn is_row_of_codes(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_number = words.next().is_some_and(|word| {
        (2..=3).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_digit())
    });
    let is_text = words.clone().count() > 2;
    is_number
        && is_text
        && words
            .take(3)
            .all(|word| word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-'))
}

/// A sentence of documentation.
fn is_lesson(line: &str) -> bool {
    [
        "you will see",
        "if you ",
        "you can ",
        "this page",
        "a typical ",
        "is normal",
        "means that",
        "looks like this",
        "troubleshooting guide",
    ]
    .iter()
    .any(|words| line.contains(words))
}

/// A sentence that teaches or asks.
fn is_sentence(line: &str) -> bool {
    let line = format!(" {} ", line.trim());
    [
        " if ",
        " you ",
        " when ",
        " means ",
        " this page ",
        " run ",
        " see ",
        " may report ",
        " should ",
        " until ",
        " what ",
        " shows ",
        " example",
        " how ",
    ]
    .iter()
    .any(|word| line.contains(word))
        && line.split_whitespace().count() > 5
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_other(text: &str) -> bool {
        is_no_report(&Page::new(text))
    }

    #[test]
    fn texts_about_failures_are_no_reports_of_one() {
        for text in [
            "# Exit codes\n\nIf you see 50, the network is blocked: `curl: (28) timed out`.\n\n- 51 means that the API server cannot be reached",
            "=== RUN   TestX\n    x_test.go:1: exit status 50\n--- PASS: TestX (0.00s)",
            "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - args: [\"--on-error=failed\"]",
            "check() {\n  curl -f https://mcr.example || exit $ERR_X\n}\ncheck",
            "[10:02] a: has anyone seen exit code 50?\n[10:03] b: yes, no space left on device",
        ] {
            assert!(is_other(text), "{text}");
        }
    }

    #[test]
    fn logs_are_reports() {
        for text in [
            "curl: (28) Connection timed out",
            "+ curl -f https://mcr.example\ncurl: (6) Could not resolve host\n+ exit 50",
            "Nov 03 10:00:00 n kubelet[1]: E1103 failed\nNov 03 10:00:01 n systemd[1]: kubelet.service: Failed",
            "# journalctl -u kubelet\nNov 03 10:00:00 n kubelet[1]: no space left on device",
        ] {
            assert!(!is_other(text), "{text}");
        }
    }
}
