//! Messages as tables of fields: only the facts that reading and writing need.

use std::collections::{BTreeMap, BTreeSet};

use super::notice::{Notable, Refused, shown};
use super::reader::Reader;
use super::writer::Writer;

/// A field: its names, and whether its value may be shown.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) json: &'static str,
    /// A name that is accepted when reading and never written.
    pub(crate) also: Option<&'static str>,
    pub(crate) hidden: bool,
}

/// A message, generated from the `.proto` files.
pub(crate) trait Message: Default {
    const FIELDS: &'static [Field];
    fn value(&self, index: usize) -> &dyn Value;
    fn value_mut(&mut self, index: usize) -> &mut dyn Value;
}

/// The value of a field.
pub(crate) trait Value {
    /// Parses the next value.
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Refused>;
    fn write(&self, writer: &mut Writer);
    /// Whether the value is unset and is left out when written.
    fn is_unset(&self) -> bool;
}

/// An enumeration: a number that may have a name.
pub(crate) trait Enumeration: Copy + Default {
    const VALUES: &'static [(&'static str, i32)];
    fn of(number: i32) -> Self;
}

/// Implements `Value` and a `Debug` without secrets for a generated message.
macro_rules! message {
    ($name:ident) => {
        impl Value for $name {
            fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Refused> {
                crate::node_config::message::read(self, reader)
            }
            fn write(&self, writer: &mut Writer) {
                crate::node_config::message::write(self, writer);
            }
            fn is_unset(&self) -> bool {
                false
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut writer = Writer::for_people();
                self.write(&mut writer);
                write!(formatter, "{} {}", stringify!($name), writer.finish())
            }
        }
    };
}
pub(crate) use message;

/// Implements `Value` for a generated enumeration.
macro_rules! enumeration {
    ($name:ident, $values:expr) => {
        impl Enumeration for $name {
            const VALUES: &'static [(&'static str, i32)] = &$values;
            fn of(number: i32) -> Self {
                Self(number)
            }
        }
        impl Value for $name {
            fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Refused> {
                *self = crate::node_config::message::read_enumeration(reader)?;
                Ok(())
            }
            fn write(&self, writer: &mut Writer) {
                match Self::VALUES.iter().find(|(_, number)| *number == self.0) {
                    Some((name, _)) => writer.text(name),
                    None => writer.plain(&self.0),
                }
            }
            fn is_unset(&self) -> bool {
                self.0 == 0
            }
        }
    };
}
pub(crate) use enumeration;

/// Parses the members of an object. Unknown fields are noted, whatever their values are; a field that occurs
/// twice, in any spelling, is refused.
pub(crate) fn read<M: Message>(message: &mut M, reader: &mut Reader<'_>) -> Result<(), Refused> {
    let mut seen = vec![false; M::FIELDS.len()];
    let mut unknown = BTreeSet::new();
    reader.members(|reader, key| {
        let known = M::FIELDS.iter().position(|field| {
            [Some(field.name), Some(field.json), field.also].contains(&Some(key.text.as_str()))
        });
        let Some(index) = known else {
            reader.descend(key.shown());
            reader.note(Notable::UnknownField);
            if !unknown.insert(key.text.clone()) {
                return Err(reader.refuse(key.at, "duplicate key"));
            }
            reader.skip()?;
            reader.ascend();
            return Ok(());
        };
        reader.descend(M::FIELDS[index].name);
        if std::mem::replace(&mut seen[index], true) {
            return Err(reader.refuse(key.at, "duplicate key"));
        }
        if !reader.null()? {
            message.value_mut(index).read(reader)?;
        }
        reader.ascend();
        Ok(())
    })
}

pub(crate) fn write<M: Message>(message: &M, writer: &mut Writer) {
    writer.open('{');
    for (index, field) in M::FIELDS.iter().enumerate() {
        let value = message.value(index);
        if !value.is_unset() {
            writer.key(field.name, field.json);
            if field.hidden && writer.hides() { writer.text("***") } else { value.write(writer) }
        }
    }
    writer.close('}');
}

pub(crate) fn read_enumeration<E: Enumeration>(reader: &mut Reader<'_>) -> Result<E, Refused> {
    if !reader.at_text()? {
        let number = reader.whole_number()?;
        if !E::VALUES.iter().any(|(_, known)| *known == number) {
            reader.note(Notable::UnknownEnumNumber(number));
        }
        return Ok(E::of(number));
    }
    let name = reader.text()?;
    let known = E::VALUES.iter().find(|(known, _)| *known == name);
    if known.is_none() {
        reader.note(Notable::UnknownEnumName(shown(&name)));
    }
    Ok(known.map_or_else(E::default, |(_, number)| E::of(*number)))
}

impl Value for String {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Refused> {
        *self = reader.text()?;
        Ok(())
    }
    fn write(&self, writer: &mut Writer) {
        writer.text(self);
    }
    fn is_unset(&self) -> bool {
        self.is_empty()
    }
}

impl Value for bool {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Refused> {
        *self = reader.truth()?;
        Ok(())
    }
    fn write(&self, writer: &mut Writer) {
        writer.plain(self);
    }
    fn is_unset(&self) -> bool {
        !self
    }
}

impl Value for i32 {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Refused> {
        *self = reader.whole_number()?;
        Ok(())
    }
    fn write(&self, writer: &mut Writer) {
        writer.plain(self);
    }
    fn is_unset(&self) -> bool {
        *self == 0
    }
}

impl Value for f64 {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Refused> {
        *self = reader.real_number()?;
        Ok(())
    }
    fn write(&self, writer: &mut Writer) {
        // JSON has no such numbers; protobuf writes them as texts.
        if self.is_finite() { writer.plain(self) } else { writer.text(&super::show::number(*self)) }
    }
    fn is_unset(&self) -> bool {
        *self == 0.0
    }
}

impl<V: Value + Default> Value for Option<V> {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Refused> {
        self.insert(V::default()).read(reader)
    }
    fn write(&self, writer: &mut Writer) {
        if let Some(value) = self {
            value.write(writer);
        }
    }
    fn is_unset(&self) -> bool {
        self.is_none()
    }
}

impl Value for Vec<String> {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Refused> {
        reader.elements(|reader| {
            self.push(reader.text()?);
            Ok(())
        })
    }
    fn write(&self, writer: &mut Writer) {
        writer.open('[');
        for element in self {
            writer.element();
            writer.text(element);
        }
        writer.close(']');
    }
    fn is_unset(&self) -> bool {
        self.is_empty()
    }
}

impl<V: Value + Default> Value for BTreeMap<String, V> {
    fn read(&mut self, reader: &mut Reader<'_>) -> Result<(), Refused> {
        reader.members(|reader, key| {
            reader.descend(key.shown());
            if self.contains_key(&key.text) {
                return Err(reader.refuse(key.at, "duplicate key"));
            }
            self.entry(key.text).or_default().read(reader)?;
            reader.ascend();
            Ok(())
        })
    }
    fn write(&self, writer: &mut Writer) {
        writer.open('{');
        for (key, value) in self {
            writer.key(key, key);
            value.write(writer);
        }
        writer.close('}');
    }
    fn is_unset(&self) -> bool {
        self.is_empty()
    }
}
