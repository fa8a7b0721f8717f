//! Files of settings: sections, and keys with a text or a number. That is all of TOML that they
//! need.

use std::collections::BTreeMap;

/// Reads a file. A key in a section stands behind the name of the section and a dot.
pub(crate) fn read(text: &str) -> BTreeMap<String, String> {
    let mut section = String::new();
    let mut found = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            section = format!("{}.", name.trim());
        } else if let Some((key, value)) = line.split_once('=') {
            let value = value.trim();
            let value = match value.strip_prefix('"') {
                Some(rest) => rest.split('"').next().unwrap_or_default(),
                None => value.split('#').next().unwrap_or_default().trim(),
            };
            let key = key.trim().trim_matches('"').replace('_', "-");
            let key = if section == "codes." { key.replace('-', "_") } else { key };
            found.insert(format!("{section}{key}"), value.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_sections_texts_and_numbers() {
        let found =
            read("# x\nstart_timeout = \"5m\"\n[codes]\nERR_ORAS_BINARY_NOT_FOUND = 251 # y\n");
        assert_eq!(found["start-timeout"], "5m");
        assert_eq!(found["codes.ERR_ORAS_BINARY_NOT_FOUND"], "251");
    }
}
