//! The format of values in variables.

use super::{LoadBalancerSku, NetworkPlugin, NetworkPolicy, VmType};

/// A type whose values can be written to a variable.
pub(crate) trait Show {
    fn show(&self) -> String;
}

impl Show for String {
    fn show(&self) -> String {
        self.clone()
    }
}

impl Show for bool {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Show for i32 {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Show for usize {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Show for f64 {
    fn show(&self) -> String {
        number(*self)
    }
}

impl<V: Show + Default> Show for Option<V> {
    fn show(&self) -> String {
        self.as_ref().map_or_else(|| V::default().show(), Show::show)
    }
}

impl Show for VmType {
    fn show(&self) -> String {
        name(self, &[(Self::STANDARD, "standard"), (Self::VMSS, "vmss")])
    }
}

impl Show for LoadBalancerSku {
    fn show(&self) -> String {
        name(self, &[(Self::BASIC, "basic"), (Self::STANDARD, "standard")])
    }
}

impl Show for NetworkPlugin {
    fn show(&self) -> String {
        name(self, &[(Self::AZURE, "azure"), (Self::KUBENET, "kubenet"), (Self::NONE, "none")])
    }
}

impl Show for NetworkPolicy {
    fn show(&self) -> String {
        name(self, &[(Self::AZURE, "azure"), (Self::CALICO, "calico"), (Self::NONE, "none")])
    }
}

fn name<E: PartialEq>(value: &E, names: &[(E, &str)]) -> String {
    let known = names.iter().find(|(known, _)| known == value);
    known.map_or_else(String::new, |(_, name)| (*name).to_owned())
}

/// A number in its shortest form: 10, 10.5, 0, 1e+21.
pub(crate) fn number(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let size = number.abs();
    if size == 0.0 || (1e-4..1e21).contains(&size) {
        return format!("{number}");
    }
    let text = format!("{number:e}");
    match text.split_once('e') {
        Some((mantissa, power)) => {
            let (sign, digits) = match power.strip_prefix('-') {
                Some(digits) => ('-', digits),
                None => ('+', power),
            };
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_their_shortest_form() {
        for (value, text) in [
            (10.0, "10"),
            (10.5, "10.5"),
            (0.0, "0"),
            (-0.25, "-0.25"),
            (1e21, "1e+21"),
            (2.5e-7, "2.5e-07"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_number_without_a_name_is_the_empty_text() {
        assert_eq!(NetworkPolicy(99).show(), "");
        assert_eq!(VmType::UNSPECIFIED.show(), "");
        assert_eq!(VmType::VMSS.show(), "vmss");
    }
}
