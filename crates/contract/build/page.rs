//! The tables of docs/node-config.md.

use std::fmt::Write as _;

use crate::schema::{Label, Schema};

pub(crate) fn markdown(schema: &Schema) -> String {
    let mut out = String::new();
    for message in &schema.messages {
        let _ = write!(out, "\n### {}\n\n{}\n\n", message.name, message.comment);
        out.push_str("| field | type | number | meaning |\n|---|---|---|---|\n");
        for field in &message.fields {
            let written = field.written().replace('<', "\\<");
            let label = match field.label {
                Label::Optional | Label::Repeated => format!(" ({})", field.label.name()),
                Label::Singular | Label::Map => String::new(),
            };
            let _ = writeln!(
                out,
                "| `{}` | {written}{label} | {} | {} |",
                field.name,
                field.number,
                field.comment.replace('|', "\\|")
            );
        }
    }
    out.push_str("\n## Enumerations\n");
    for listed in &schema.enums {
        let _ = write!(out, "\n### {}\n\n{}\n\n", listed.name, listed.comment);
        for (value, number) in &listed.values {
            let _ = writeln!(out, "- `{value}` ({number})");
        }
    }
    out
}
