//! Writes JSON: with the names of fields or their JSON names, on one line or indented.

use std::fmt::Write as _;

use super::show::Show;

/// The output so far.
pub(crate) struct Writer {
    out: String,
    form: Form,
    depth: usize,
    /// Whether the innermost list is still empty.
    fresh: bool,
}

/// The format of the output, which depends on its reader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A configuration: names of fields, indented by two spaces.
    Configuration,
    /// The file of kubelet: JSON names, indented by four spaces, with HTML characters escaped.
    Kubelet,
    /// For human readers: one line, without secrets.
    People,
}

impl Writer {
    fn new(form: Form) -> Self {
        Self { out: String::new(), form, depth: 0, fresh: true }
    }

    pub(crate) fn for_configuration() -> Self {
        Self::new(Form::Configuration)
    }

    pub(crate) fn for_kubelet() -> Self {
        Self::new(Form::Kubelet)
    }

    pub(crate) fn for_people() -> Self {
        Self::new(Form::People)
    }

    pub(crate) fn finish(self) -> String {
        self.out
    }

    /// Whether secrets are left out.
    pub(crate) fn hides(&self) -> bool {
        self.form == Form::People
    }

    pub(crate) fn open(&mut self, bracket: char) {
        self.out.push(bracket);
        self.depth += 1;
        self.fresh = true;
    }

    pub(crate) fn close(&mut self, bracket: char) {
        self.depth -= 1;
        if !self.fresh {
            self.line();
        }
        self.out.push(bracket);
        self.fresh = false;
    }

    /// Begins the next element.
    pub(crate) fn element(&mut self) {
        if !self.fresh {
            self.out.push(',');
        }
        self.fresh = false;
        self.line();
    }

    pub(crate) fn key(&mut self, name: &str, json: &str) {
        self.element();
        self.text(if self.form == Form::Kubelet { json } else { name });
        self.out.push_str(if self.form == Form::People { ":" } else { ": " });
    }

    fn line(&mut self) {
        let indent = match self.form {
            Form::Configuration => 2,
            Form::Kubelet => 4,
            Form::People => return,
        };
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent * self.depth));
    }

    /// Writes a number or a truth value.
    pub(crate) fn plain(&mut self, value: &impl Show) {
        self.out.push_str(&value.show());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '<' | '>' | '&' if self.form == Form::Kubelet => self.escaped(character),
                control if control < ' ' => self.escaped(control),
                other => self.out.push(other),
            }
        }
        self.out.push('"');
    }

    fn escaped(&mut self, character: char) {
        let _ = write!(self.out, "\\u{:04x}", u32::from(character));
    }
}
