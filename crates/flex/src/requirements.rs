//! Requirements of a claim on the labels of its Node.

use std::collections::BTreeMap;

/// How a label's value is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operator {
    /// The value is one of these.
    In(Vec<String>),
    /// The value is none of these, or the label is missing.
    NotIn(Vec<String>),
    /// The label exists.
    Exists,
    /// The label is missing.
    DoesNotExist,
    /// The value is a number above this one.
    Gt(i64),
    /// The value is a number below this one.
    Lt(i64),
    /// The value is this number or above; Karpenter normalises `Gt` to this operator.
    Gte(i64),
    /// The value is this number or below.
    Lte(i64),
}

/// A requirement that cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("requirement of {key}: {what}")]
pub struct InvalidRequirement {
    /// The key of the label.
    pub key: String,
    /// The problem with the requirement.
    pub what: String,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The key of the label.
    pub key: String,
    /// How the label's value is compared.
    pub operator: Operator,
}

impl Requirement {
    /// Parses a requirement in the form of Kubernetes.
    pub fn read(key: &str, operator: &str, values: &[String]) -> Result<Self, InvalidRequirement> {
        let wrong = |what: String| InvalidRequirement { key: key.to_owned(), what };
        let number = || match values {
            [one] => one.parse().map_err(|_| wrong(format!("`{one}` is not a number"))),
            _ => Err(wrong(format!("{operator} takes one value"))),
        };
        let operator = match operator {
            "In" => Operator::In(values.to_vec()),
            "NotIn" => Operator::NotIn(values.to_vec()),
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            "Gt" => Operator::Gt(number()?),
            "Lt" => Operator::Lt(number()?),
            "Gte" => Operator::Gte(number()?),
            "Lte" => Operator::Lte(number()?),
            other => return Err(wrong(format!("`{other}` is not an operator"))),
        };
        Ok(Self { key: key.to_owned(), operator })
    }

    /// Whether a value, or a missing label, meets the requirement.
    pub fn allows(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        let one_of =
            |values: &[String]| value.is_some_and(|value| values.iter().any(|one| one == value));
        match &self.operator {
            Operator::In(values) => one_of(values),
            Operator::NotIn(values) => !one_of(values),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt(than) => number().is_some_and(|number| number > *than),
            Operator::Lt(than) => number().is_some_and(|number| number < *than),
            Operator::Gte(than) => number().is_some_and(|number| number >= *than),
            Operator::Lte(than) => number().is_some_and(|number| number <= *than),
        }
    }
}

/// Whether labels meet the requirements. Requirements on labels that an offer does not have are not checked,
/// because other components set those labels.
pub fn fit(requirements: &[Requirement], labels: &BTreeMap<&str, String>) -> bool {
    let known = requirements.iter().filter(|asked| labels.contains_key(asked.key.as_str()));
    let mut unknown = requirements.iter().filter(|asked| !labels.contains_key(asked.key.as_str()));
    let is_met =
        |asked: &&Requirement| asked.allows(labels.get(asked.key.as_str()).map(String::as_str));
    // A node without GPUs has no label for their number, so a requirement for such a number needs a node with
    // GPUs.
    known.into_iter().all(|asked| is_met(&asked))
        && !unknown
            .any(|asked| asked.key.starts_with("karpenter.azure.com/sku-") && !asked.allows(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(operator: &str, values: &[&str]) -> Requirement {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        Requirement::read("k", operator, &values).unwrap()
    }

    #[test]
    fn case_44_every_operator_means_what_kubernetes_means() {
        let rows: [(&str, &[&str], Option<&str>, bool); 20] = [
            ("In", &["a", "b"], Some("a"), true),
            ("In", &["a", "b"], Some("c"), false),
            ("In", &["a"], None, false),
            ("In", &[], Some("a"), false),
            ("NotIn", &["a"], Some("b"), true),
            ("NotIn", &["a"], Some("a"), false),
            ("NotIn", &["a"], None, true),
            ("Exists", &[], Some("a"), true),
            ("Exists", &[], None, false),
            ("DoesNotExist", &[], None, true),
            ("DoesNotExist", &[], Some("a"), false),
            ("Gt", &["8"], Some("9"), true),
            ("Gt", &["8"], Some("8"), false),
            ("Gt", &["8"], Some("many"), false),
            ("Lt", &["8"], Some("7"), true),
            ("Lt", &["8"], None, false),
            ("Gte", &["8"], Some("8"), true),
            ("Gte", &["8"], Some("7"), false),
            ("Lte", &["8"], Some("8"), true),
            ("Lte", &["8"], Some("9"), false),
        ];
        for (operator, values, value, allowed) in rows {
            assert_eq!(
                asked(operator, values).allows(value),
                allowed,
                "{operator} {values:?} {value:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_understood_is_said() {
        for (operator, values) in [("Near", vec![]), ("Gt", vec![]), ("Lt", vec!["x".to_owned()])] {
            let error = Requirement::read("a/b", operator, &values).unwrap_err();
            assert!(error.to_string().starts_with("requirement of a/b: "), "{error}");
        }
    }

    #[test]
    fn labels_that_others_set_are_not_asked_about() {
        let labels = BTreeMap::from([("os", "linux".to_owned())]);
        let asks = |key: &str, operator: &str, values: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            fit(&[Requirement::read(key, operator, &values).unwrap()], &labels)
        };
        assert!(asks("os", "In", &["linux"]) && !asks("os", "In", &["windows"]));
        assert!(asks("team", "In", &["a"]));
        assert!(!asks("karpenter.azure.com/sku-gpu-count", "Gt", &["0"]));
        assert!(asks("karpenter.azure.com/sku-gpu-count", "DoesNotExist", &[]));
    }
}
