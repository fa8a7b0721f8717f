//! The page about custom resources: every field of their definitions.

use std::fmt::Write as _;

use anyhow::Context as _;
use serde_json::Value;

pub(super) fn page() -> anyhow::Result<String> {
    let mut page = "<!-- Made by `bringup docs docs` from the definitions. -->\n\n# Custom resources\n\nEvery field of bringup's custom resources. `kubectl explain KIND.FIELD` prints the same in a cluster.\n".to_owned();
    let flex = bringup_objects::flex::definitions();
    for definition in std::iter::once(bringup_objects::report::definition()).chain(flex) {
        let definition = serde_json::to_value(&definition).context("a definition is no JSON")?;
        let spec = &definition["spec"];
        for version in spec["versions"].as_array().into_iter().flatten() {
            let (kind, group) = (text(&spec["names"]["kind"]), text(&spec["group"]));
            let schema = &version["schema"]["openAPIV3Schema"];
            let _ = write!(
                page,
                "\n## {kind}\n\n`{group}/{}`, {}. {}\n\n",
                text(&version["name"]),
                text(&spec["scope"]).to_lowercase(),
                prose(schema)
            );
            page.push_str("| field | type | |\n|---|---|---|\n");
            for part in ["spec", "status"] {
                fields(&mut page, part, &schema["properties"][part]);
            }
        }
    }
    Ok(page)
}

/// A row for each property below `path`.
fn fields(page: &mut String, path: &str, schema: &Value) {
    let required = schema["required"].as_array();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{path}.{name}");
        let is_required =
            required.is_some_and(|names| names.iter().any(|it| it.as_str() == Some(name)));
        let mark = if is_required { " Required." } else { "" };
        let _ = writeln!(page, "| `{path}` | {} | {}{mark} |", kind(field), prose(field));
        let is_list = field["type"] == "array";
        let inner = if is_list { &field["items"] } else { field };
        // The fields of conditions are the same in every Kubernetes object.
        if name == "conditions" {
            continue;
        }
        fields(page, &if is_list { format!("{path}[]") } else { path }, inner);
    }
}

fn kind(field: &Value) -> String {
    let format = field["format"].as_str().filter(|format| format.contains("date"));
    match (field["type"].as_str(), format) {
        (Some("array"), _) => format!("list of {}", kind(&field["items"])),
        (Some("object"), _) if field["additionalProperties"].is_object() => {
            format!("map of {}", kind(&field["additionalProperties"]))
        }
        (Some("string"), Some(_)) => "time".to_owned(),
        (Some(kind), _) => kind.to_owned(),
        (None, _) if field["x-kubernetes-int-or-string"] == true => "integer or string".to_owned(),
        (None, _) => "any".to_owned(),
    }
}

/// The description in one line, for a table.
fn prose(schema: &Value) -> String {
    let words: Vec<&str> = text(&schema["description"]).split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('<', "\\<")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
