//! The Rust types: plain structs, and tables of their fields for reading and writing.

use std::fmt::Write as _;

use crate::schema::{Enumeration, Field, Kind, Label, Message, Schema};

/// Additional accepted spellings: upstream's, if ours is the one that kubelet uses.
const ALSO: &[(&str, &str)] = &[
    ("cache_ttl", "cacheTtl"),
    ("cache_authorized_ttl", "cacheAuthorizedTtl"),
    ("cache_unauthorized_ttl", "cacheUnauthorizedTtl"),
];

pub(crate) fn rust(schema: &Schema) -> String {
    let mut out = String::new();
    for message in &schema.messages {
        structure(&mut out, message);
        table(&mut out, message);
    }
    for listed in &schema.enums {
        enumeration(&mut out, listed);
    }
    overview(&mut out, schema);
    out
}

fn structure(out: &mut String, message: &Message) {
    let Message { name, comment, fields } = message;
    let _ =
        writeln!(out, "/// {comment}\n#[derive(Clone, Default, PartialEq)]\npub struct {name} {{");
    for field in fields {
        let _ = writeln!(out, "/// {}\npub {}: {},", field.comment, field.name, rust_type(field));
    }
    let _ = writeln!(out, "}}\nstatic EMPTY_{name}: {name} = {name} {{");
    for field in fields {
        let _ = writeln!(out, "{}: {},", field.name, zero(field));
    }
    let _ = writeln!(out, "}};\nimpl {name} {{");
    for field in fields {
        if let (Kind::Message(kind), Label::Singular) = (&field.kind, field.label) {
            let Field { name, comment, .. } = field;
            let _ = writeln!(
                out,
                "/// {comment} An empty one when it is not there.\n\
                 pub fn {name}(&self) -> &{kind} {{ self.{name}.as_ref().unwrap_or(&EMPTY_{kind}) }}"
            );
        }
    }
    out.push_str("}\n");
}

fn table(out: &mut String, message: &Message) {
    let Message { name, fields, .. } = message;
    let _ = writeln!(out, "impl Message for {name} {{\nconst FIELDS: &'static [Field] = &[");
    for field in fields {
        let also = ALSO.iter().find(|(name, _)| *name == field.name).map(|(_, also)| also);
        let _ = writeln!(
            out,
            "Field {{ name: {:?}, json: {:?}, also: {also:?}, hidden: {} }},",
            field.name,
            field.json,
            field.hidden()
        );
    }
    out.push_str("];\n");
    for (function, borrow) in [("value(&self", "&"), ("value_mut(&mut self", "&mut ")] {
        let _ =
            writeln!(out, "fn {function}, index: usize) -> {borrow}dyn Value {{ match index {{");
        for (index, field) in fields.iter().enumerate() {
            // The last arm is a catch-all, so that the generated code cannot panic.
            let last = index + 1 == fields.len();
            let pattern = if last { "_".to_owned() } else { index.to_string() };
            let _ = writeln!(out, "{pattern} => {borrow}self.{},", field.name);
        }
        out.push_str("}}\n");
    }
    let _ = writeln!(out, "}}\nmessage!({name});");
}

fn enumeration(out: &mut String, listed: &Enumeration) {
    let Enumeration { name, comment, values } = listed;
    let _ = writeln!(
        out,
        "/// {comment} Numbers that are not listed are kept as they are.\n\
         #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]\n\
         pub struct {name}(pub i32);\nimpl {name} {{"
    );
    let prefix = screaming(name) + "_";
    for (value, number) in values {
        let short = value.strip_prefix(&prefix).unwrap_or(value);
        let _ = writeln!(out, "/// `{value}`.\npub const {short}: Self = Self({number});");
    }
    let _ = writeln!(out, "}}\nenumeration!({name}, {values:?});");
}

/// Names, numbers, types and labels of all fields, for a comparison with other descriptions.
fn overview(out: &mut String, schema: &Schema) {
    out.push_str(
        "/// Message, field, number, type and label of every field.\n\
         pub const SCHEMA: &[(&str, &str, i32, &str, &str)] = &[\n",
    );
    for message in &schema.messages {
        for field in &message.fields {
            let _ = writeln!(
                out,
                "({:?}, {:?}, {}, {:?}, {:?}),",
                message.name,
                field.name,
                field.number,
                field.written(),
                field.label.name()
            );
        }
    }
    out.push_str("];\n/// Enum, value and number of every value.\n");
    out.push_str("pub const ENUMS: &[(&str, &str, i32)] = &[\n");
    for listed in &schema.enums {
        for (value, number) in &listed.values {
            let _ = writeln!(out, "({:?}, {value:?}, {number}),", listed.name);
        }
    }
    out.push_str("];\n");
}

fn rust_type(field: &Field) -> String {
    let one = match &field.kind {
        Kind::Text => "String",
        Kind::Bool => "bool",
        Kind::Int32 => "i32",
        Kind::Double => "f64",
        Kind::Message(name) | Kind::Enum(name) => name,
    };
    match (field.label, &field.kind) {
        (Label::Map, _) => format!("BTreeMap<String, {one}>"),
        (Label::Repeated, _) => format!("Vec<{one}>"),
        (Label::Optional, _) | (Label::Singular, Kind::Message(_)) => format!("Option<{one}>"),
        (Label::Singular, _) => one.to_owned(),
    }
}

fn zero(field: &Field) -> String {
    match (field.label, &field.kind) {
        (Label::Map, _) => "BTreeMap::new()".to_owned(),
        (Label::Repeated, _) => "Vec::new()".to_owned(),
        (Label::Optional, _) | (Label::Singular, Kind::Message(_)) => "None".to_owned(),
        (Label::Singular, Kind::Text) => "String::new()".to_owned(),
        (Label::Singular, Kind::Bool) => "false".to_owned(),
        (Label::Singular, Kind::Int32) => "0".to_owned(),
        (Label::Singular, Kind::Double) => "0.0".to_owned(),
        (Label::Singular, Kind::Enum(name)) => format!("{name}(0)"),
    }
}

/// `VmType` to `VM_TYPE`.
fn screaming(name: &str) -> String {
    let mut out = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.push(character.to_ascii_uppercase());
    }
    out
}
