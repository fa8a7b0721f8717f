//! The content of the compiled `.proto` files, as the generators need it.

use protox::prost_reflect::prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet, MessageOptions, field_descriptor_proto,
};

/// All messages and enums, in the order of the files.
pub(crate) struct Schema {
    pub(crate) messages: Vec<Message>,
    pub(crate) enums: Vec<Enumeration>,
}

pub(crate) struct Message {
    pub(crate) name: String,
    pub(crate) comment: String,
    pub(crate) fields: Vec<Field>,
}

pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) json: String,
    pub(crate) number: i32,
    pub(crate) comment: String,
    pub(crate) label: Label,
    pub(crate) kind: Kind,
}

/// Whether unset differs from the zero value, and whether the field is repeated.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    Singular,
    Optional,
    Repeated,
    Map,
}

/// The type of a value. For a map, the type of its values; the keys are texts.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Bool,
    Int32,
    Double,
    Message(String),
    Enum(String),
}

pub(crate) struct Enumeration {
    pub(crate) name: String,
    pub(crate) comment: String,
    pub(crate) values: Vec<(String, i32)>,
}

/// The numbers for fields of messages, messages and enums in the paths of comments.
const MESSAGES: i32 = 4;
const ENUMS: i32 = 5;
const FIELDS: i32 = 2;

impl Schema {
    pub(crate) fn of(set: &FileDescriptorSet) -> Result<Self, String> {
        let mut schema = Self { messages: Vec::new(), enums: Vec::new() };
        // The compiler lists a file after the files that it imports; the page shows it first.
        for file in set.file.iter().rev() {
            for (index, message) in (0..).zip(&file.message_type) {
                schema.messages.push(Message::of(file, index, message)?);
            }
            for (index, listed) in (0..).zip(&file.enum_type) {
                schema.enums.push(Enumeration::of(file, index, listed)?);
            }
        }
        Ok(schema)
    }
}

impl Message {
    fn of(file: &FileDescriptorProto, index: i32, proto: &DescriptorProto) -> Result<Self, String> {
        let fields = (0..).zip(&proto.field).map(|(number, field)| {
            let comment = comment(file, &[MESSAGES, index, FIELDS, number], field.name())?;
            Field::of(proto, field, comment)
        });
        Ok(Self {
            name: proto.name().to_owned(),
            comment: comment(file, &[MESSAGES, index], proto.name())?,
            fields: fields.collect::<Result<_, _>>()?,
        })
    }
}

impl Field {
    fn of(
        parent: &DescriptorProto,
        proto: &FieldDescriptorProto,
        comment: String,
    ) -> Result<Self, String> {
        let repeated = proto.label() == field_descriptor_proto::Label::Repeated;
        let entry = parent.nested_type.iter().find(|nested| {
            let map = nested.options.as_ref().is_some_and(MessageOptions::map_entry);
            map && short(proto.type_name()) == nested.name()
        });
        let (label, of) = match entry {
            Some(entry) => (Label::Map, &entry.field[1]),
            None if repeated => (Label::Repeated, proto),
            None if proto.proto3_optional() => (Label::Optional, proto),
            None => (Label::Singular, proto),
        };
        Ok(Self {
            name: proto.name().to_owned(),
            json: proto.json_name().to_owned(),
            number: proto.number(),
            comment,
            label,
            kind: Kind::of(of)?,
        })
    }

    /// Whether the value is secret.
    pub(crate) fn hidden(&self) -> bool {
        self.comment.contains("Secret.") || self.comment.contains("May hold credentials.")
    }

    /// The type as written in the `.proto` file.
    pub(crate) fn written(&self) -> String {
        match self.label {
            Label::Map => format!("map<string,{}>", self.kind.name()),
            Label::Singular | Label::Optional | Label::Repeated => self.kind.name().to_owned(),
        }
    }
}

impl Label {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Singular => "singular",
            Self::Optional => "optional",
            Self::Repeated => "repeated",
            Self::Map => "map",
        }
    }
}

impl Kind {
    fn of(proto: &FieldDescriptorProto) -> Result<Self, String> {
        let name = short(proto.type_name()).to_owned();
        Ok(match proto.r#type() {
            field_descriptor_proto::Type::String => Self::Text,
            field_descriptor_proto::Type::Bool => Self::Bool,
            field_descriptor_proto::Type::Int32 => Self::Int32,
            field_descriptor_proto::Type::Double => Self::Double,
            field_descriptor_proto::Type::Message => Self::Message(name),
            field_descriptor_proto::Type::Enum => Self::Enum(name),
            other => return Err(format!("{}: {other:?} is not provided for", proto.name())),
        })
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Text => "string",
            Self::Bool => "bool",
            Self::Int32 => "int32",
            Self::Double => "double",
            Self::Message(name) | Self::Enum(name) => name,
        }
    }
}

impl Enumeration {
    fn of(
        file: &FileDescriptorProto,
        index: i32,
        proto: &EnumDescriptorProto,
    ) -> Result<Self, String> {
        let values = proto.value.iter().map(|value| (value.name().to_owned(), value.number()));
        Ok(Self {
            name: proto.name().to_owned(),
            comment: comment(file, &[ENUMS, index], proto.name())?,
            values: values.collect(),
        })
    }
}

/// The last part of `.aksnodeconfig.v1.Configuration`.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// The comment above an item, in one line. Every item must have a comment, because the page shows it.
fn comment(file: &FileDescriptorProto, path: &[i32], name: &str) -> Result<String, String> {
    let places = file.source_code_info.iter().flat_map(|info| &info.location);
    let text = places.filter(|place| place.path == path).find_map(|place| {
        place.leading_comments.as_deref().map(|text| text.split_whitespace().collect::<Vec<_>>())
    });
    match text {
        Some(words) if !words.is_empty() => Ok(words.join(" ")),
        _ => Err(format!("{}: {name} has no comment", file.name())),
    }
}
