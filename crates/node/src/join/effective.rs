//! containerd's configuration, as containerd itself understands it. The files alone do not show the effective
//! configuration: files are merged, old sections are ignored silently, an empty value blanks a default. So
//! this module reads and checks the output of `containerd config dump`.

use std::fmt;

/// The plugin that runs containers, as version 3 of the configuration names it.
const RUNTIME: &str = "io.containerd.cri.v1.runtime";

/// A value and its table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    table: Vec<String>,
    key: String,
    value: String,
}

/// The relevant part of a containerd configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Effective(Vec<Entry>);

/// A problem of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    /// A sentence about the problem.
    pub(super) what: String,
    /// Whether the problem affects the network of pods, and not the start of containers.
    pub(super) network: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.what)
    }
}

impl Effective {
    /// Parses TOML as containerd writes it.
    pub(super) fn read(text: &str) -> Self {
        let (mut table, mut entries) = (Vec::new(), Vec::new());
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let line = line.trim();
            if let Some(keys) = header(line) {
                table = keys;
            } else if let Some((key, mut value)) = assignment(line) {
                // An array may span several lines.
                while value.starts_with('[') && !is_closed(&value) {
                    let Some(more) = lines.next() else { break };
                    value.push_str(more.trim());
                }
                let mut keys = keys_of(key);
                let key = keys.pop().unwrap_or_default();
                let table = table.iter().cloned().chain(keys).collect();
                entries.push(Entry { table, key, value });
            }
        }
        Self(entries)
    }

    fn value(&self, table: &[&str], key: &str) -> Option<&str> {
        let found = self.0.iter().rfind(|entry| entry.table == table && entry.key == key);
        found.map(|entry| entry.value.as_str())
    }

    /// The version of the schema.
    pub(super) fn version(&self) -> Option<&str> {
        self.value(&[], "version").map(unquoted)
    }

    /// The files that the configuration imports.
    pub(super) fn imports(&self) -> Vec<String> {
        self.value(&[], "imports").map(texts).unwrap_or_default()
    }

    /// The problems that would break a node.
    pub(super) fn problems(&self, knows_bin_dirs: bool) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut say = |what: String, network: bool| found.push(Problem { what, network });
        match self.version() {
            Some("3") => {}
            other => say(format!("its version is {}, not 3", other.unwrap_or("missing")), false),
        }
        let disabled = self.value(&[], "disabled_plugins").map(texts).unwrap_or_default();
        let cri = ["cri", "io.containerd.grpc.v1.cri", RUNTIME, "io.containerd.cri.v1.images"];
        if let Some(plugin) = disabled.iter().find(|name| cri.contains(&name.as_str())) {
            say(format!("the plugin {plugin} is disabled"), false);
        }
        let options = ["plugins", RUNTIME, "containerd", "runtimes", "runc", "options"];
        if self.value(&options, "SystemdCgroup") != Some("true") {
            say("SystemdCgroup of runc is not true".to_owned(), false);
        }
        let cni = ["plugins", RUNTIME, "cni"];
        let one = self.value(&cni, "bin_dir").map(unquoted).filter(|folder| !folder.is_empty());
        let several: Vec<String> = self.value(&cni, "bin_dirs").map(texts).unwrap_or_default();
        let several = several.iter().any(|folder| !folder.is_empty()) && knows_bin_dirs;
        match (one.is_some(), several) {
            (false, false) => say(
                "no folder of network plugins is set: pods fail with \"failed to find plugin .. in path []\"".to_owned(),
                true,
            ),
            (true, true) => say("bin_dir and bin_dirs are both set, which containerd refuses".to_owned(), true),
            (true, false) | (false, true) => {}
        }
        if self.value(&cni, "conf_dir").map(unquoted).is_none_or(str::is_empty) {
            say("conf_dir of the network plugins is empty".to_owned(), true);
        }
        found
    }
}

/// The drop-in without lines that blank the folder of the network plugins, or set it twice. Without these
/// lines, containerd uses its default, which is right before and after 2.1. `None` if the drop-in is correct.
pub(super) fn corrected(drop_in: &str) -> Option<String> {
    let both = {
        let read = Effective::read(drop_in);
        let set = |name: &str| {
            let entry = read.0.iter().find(|entry| entry.key == name && is_cni(&entry.table));
            entry.is_some_and(|entry| !is_blank(&entry.value))
        };
        set("bin_dir") && set("bin_dirs")
    };
    let (mut table, mut text, mut skipping) = (Vec::new(), String::new(), false);
    let mut rest = drop_in;
    for line in drop_in.split_inclusive('\n') {
        let trimmed = line.trim();
        rest = &rest[line.len()..];
        if skipping {
            skipping = !trimmed.ends_with(']');
            continue;
        }
        if let Some(keys) = header(trimmed) {
            table = keys;
        }
        let wrong = is_cni(&table)
            && assignment(trimmed).is_some_and(|(key, value)| match key {
                "bin_dir" => is_blank(&value) || both,
                "bin_dirs" => {
                    let blank = is_blank(&whole_array(&value, rest));
                    skipping = blank && !is_closed(&value);
                    blank
                }
                _ => false,
            });
        if !wrong {
            text.push_str(line);
        }
    }
    (text != drop_in).then_some(text)
}

fn is_cni(table: &[String]) -> bool {
    table.last().is_some_and(|last| last == "cni")
}

/// An array with its continuation lines.
fn whole_array(value: &str, rest: &str) -> String {
    let mut whole = value.to_owned();
    let mut lines = rest.lines();
    while !is_closed(&whole) {
        let Some(line) = lines.next() else { break };
        whole.push_str(line.trim());
    }
    whole
}

fn is_closed(array: &str) -> bool {
    !array.starts_with('[') || array.trim_end().ends_with(']')
}

fn is_blank(value: &str) -> bool {
    if value.starts_with('[') {
        texts(value).iter().all(String::is_empty)
    } else {
        unquoted(value).is_empty()
    }
}

/// The keys of a table's header.
fn header(line: &str) -> Option<Vec<String>> {
    let line = line.split('#').next()?.trim();
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    Some(keys_of(inner.trim_matches(['[', ']'])))
}

/// The keys in `a."b.c".d`.
fn keys_of(text: &str) -> Vec<String> {
    let (mut keys, mut key, mut quote) = (Vec::new(), String::new(), None);
    for letter in text.trim().chars() {
        match (letter, quote) {
            ('"' | '\'', None) => quote = Some(letter),
            (_, Some(open)) if letter == open => quote = None,
            ('.', None) => keys.push(std::mem::take(&mut key).trim().to_owned()),
            _ => key.push(letter),
        }
    }
    keys.push(key.trim().to_owned());
    keys
}

fn assignment(line: &str) -> Option<(&str, String)> {
    if line.starts_with('#') || line.starts_with('[') {
        return None;
    }
    let (key, value) = line.split_once('=')?;
    let value = value.trim();
    // A comment may follow the value; a quoted text may contain `#`.
    let value = if value.starts_with(['"', '\'']) {
        let quote = &value[..1];
        value[1..].split_once(quote).map_or(value, |(inner, _)| &value[..inner.len() + 2])
    } else {
        value.split('#').next().unwrap_or_default().trim()
    };
    Some((key.trim(), value.to_owned()))
}

fn unquoted(value: &str) -> &str {
    value.trim().trim_matches(['"', '\''])
}

/// The texts of an array.
fn texts(array: &str) -> Vec<String> {
    let inner = array.trim().trim_start_matches('[').trim_end_matches(']');
    let items = inner.split(',').map(|item| unquoted(item).to_owned());
    items.filter(|item| !item.is_empty()).collect()
}

#[cfg(test)]
#[path = "effective_tests.rs"]
mod tests;
