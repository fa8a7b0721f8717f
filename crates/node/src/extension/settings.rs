//! The settings that the guest agent passes on, and the flags of `wait` that they set.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::args::{Arguments, Wrong};

/// The replacement for a protected value.
const STRUCK: &str = "***";

/// Shorter values are not removed: they are common words.
const SHORTEST: usize = 6;

/// The settings and the corresponding flags of `wait`.
const KEYS: &[(&str, &str)] = &[
    ("sentinel", "sentinel"),
    ("failureSentinel", "failure-sentinel"),
    ("timeout", "timeout"),
    ("startTimeout", "start-timeout"),
    ("settle", "settle"),
    ("deadlineFrom", "deadline-from"),
    ("onJoinedWithoutSentinel", "on-joined-without-sentinel"),
    ("watch", "watch"),
    ("probe", "probe"),
    ("console", "console"),
    ("postCommands", "post-commands"),
    ("strict", "strict"),
    ("unsafe", "unsafe"),
    ("maxBytes", "max-bytes"),
];

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    /// The extension has no settings. Then Azure does not read its status.
    #[error("there are no settings; give at least an empty object as public settings")]
    None,
    /// The settings are not JSON, or have the wrong structure.
    #[error("the settings cannot be read")]
    Broken(#[source] serde_json::Error),
    /// The protected settings cannot be decrypted.
    #[error("the protected settings cannot be read: {0}")]
    Protected(String),
    /// A value is not allowed.
    #[error("setting {0}: {1}")]
    Value(String, &'static str),
    #[error(transparent)]
    Refused(Wrong),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    runtime_settings: Vec<Runtime>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Runtime {
    handler_settings: Option<PassedSettings>,
}

/// The settings that the guest agent passes with one sequence number.
#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PassedSettings {
    public_settings: Option<Map<String, Value>>,
    protected_settings: Option<String>,
    protected_settings_cert_thumbprint: Option<String>,
}

impl PassedSettings {
    /// Parses a settings file.
    pub(crate) fn read(text: &str) -> Result<Self, Unusable> {
        let text = text.trim_start_matches('\u{feff}').trim();
        if text.is_empty() {
            return Err(Unusable::None);
        }
        let file: File = serde_json::from_str(text).map_err(Unusable::Broken)?;
        let passed = file.runtime_settings.into_iter().next().and_then(|it| it.handler_settings);
        let given = |it: &Self| it.public_settings.is_some() || it.protected().is_some();
        passed.filter(given).ok_or(Unusable::None)
    }

    /// The encrypted protected settings, and the name of their key.
    pub(crate) fn protected(&self) -> Option<(&str, &str)> {
        let text = self.protected_settings.as_deref().filter(|text| !text.is_empty())?;
        Some((text, self.protected_settings_cert_thumbprint.as_deref().unwrap_or_default()))
    }

    /// The meaning of the settings, with the decrypted protected settings.
    pub(crate) fn meant(self, opened: Option<&str>) -> Result<Meant, Unusable> {
        let opened: Map<String, Value> = match opened.map(str::trim).filter(|it| !it.is_empty()) {
            // The error would quote the protected settings.
            Some(text) => serde_json::from_str(text)
                .map_err(|_| Unusable::Protected("they are no JSON object".to_owned()))?,
            None => Map::new(),
        };
        let strike = Strike::all_of(&opened);
        let mut all = self.public_settings.unwrap_or_default();
        all.retain(|key, _| !opened.contains_key(key));
        let (mut words, mut unknown) = (vec!["wait".to_owned()], Vec::new());
        let public = all.iter().map(|(key, value)| (key, value, true));
        let protected = opened.iter().map(|(key, value)| (key, value, false));
        let mut hidden = Vec::new();
        for (key, value, open) in public.chain(protected) {
            let Some((_, flag)) = KEYS.iter().find(|(known, _)| known == key) else {
                unknown.push(key.clone());
                continue;
            };
            if !open {
                hidden.push((*flag).to_owned());
            }
            for value in texts(key, value)? {
                words.push(format!("--{flag}={value}"));
            }
        }
        unknown.sort();
        let arguments = Arguments::read(words).map_err(|wrong| Unusable::Refused(wrong.1))?;
        Ok(Meant { arguments, unknown, strike, hidden })
    }
}

/// The meaning of the settings.
#[derive(Debug)]
pub(crate) struct Meant {
    /// The flags of `wait`.
    pub(crate) arguments: Arguments,
    /// Keys that the extension does not know.
    pub(crate) unknown: Vec<String>,
    /// The values that must not be shown.
    pub(crate) strike: Strike,
    hidden: Vec<String>,
}

impl Meant {
    /// The error for a value that `wait` refuses: a protected value is not quoted.
    pub(crate) fn refused(&self, wrong: Wrong) -> Unusable {
        match wrong {
            Wrong::BadValue(flag, _, why) if self.hidden.contains(&flag) => {
                Unusable::Value(flag, why)
            }
            wrong => Unusable::Refused(wrong),
        }
    }
}

/// One or several values as texts: maps of Cluster API contain only texts, so a list may also be one text.
fn texts(key: &str, value: &Value) -> Result<Vec<String>, Unusable> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let listed: Option<Value> = value
        .as_str()
        .filter(|text| key == "sentinel" && text.starts_with('['))
        .and_then(|text| serde_json::from_str(text).ok());
    let texts = match listed.as_ref().unwrap_or(value) {
        Value::Null => Some(Vec::new()),
        Value::Array(values) if key == "sentinel" => values.iter().map(one).collect(),
        value => one(value).map(|text| vec![text]),
    };
    texts.ok_or_else(|| {
        Unusable::Value(key.to_owned(), "neither a text, a number nor true or false")
    })
}

/// Values that must not be shown, the longest first.
#[derive(Default)]
pub(crate) struct Strike(Vec<String>);

impl std::fmt::Debug for Strike {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} protected values", self.0.len())
    }
}

impl Strike {
    fn all_of(protected: &Map<String, Value>) -> Self {
        let mut values = Vec::new();
        let mut left: Vec<&Value> = protected.values().collect();
        while let Some(value) = left.pop() {
            match value {
                Value::String(text) => {
                    // Inside a summary, which is JSON, a text is escaped.
                    let quoted = value.to_string();
                    values.push(quoted[1..quoted.len() - 1].to_owned());
                    values.push(text.clone());
                }
                Value::Array(inner) => left.extend(inner),
                Value::Object(inner) => left.extend(inner.values()),
                Value::Number(_) | Value::Bool(_) | Value::Null => {}
            }
        }
        values.retain(|value| value.chars().count() >= SHORTEST);
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values)
    }

    /// The text without these values.
    pub(crate) fn from(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, value| text.replace(value, STRUCK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inner: &str) -> String {
        format!(r#"{{"runtimeSettings":[{{"handlerSettings":{inner}}}]}}"#)
    }

    #[test]
    fn no_settings_are_told_apart_from_empty_ones() {
        let none = ["", " \n", "{}", r#"{"runtimeSettings":[]}"#, &file("null"), &file("{}")];
        for text in none {
            assert!(matches!(PassedSettings::read(text), Err(Unusable::None)), "{text}");
        }
        for text in [file(r#"{"publicSettings":{}}"#), file(r#"{"protectedSettings":"AA=="}"#)] {
            assert!(PassedSettings::read(&text).is_ok(), "{text}");
        }
        assert!(matches!(PassedSettings::read("{"), Err(Unusable::Broken(_))));
        assert!(matches!(
            PassedSettings::read(r#"{"runtimeSettings":1}"#),
            Err(Unusable::Broken(_))
        ));
    }

    #[test]
    fn every_value_may_be_a_text_and_what_is_protected_goes_first() {
        let text = file(
            r#"{"publicSettings":{"timeout":"8m","settle":2,"strict":"true","sentinel":"[\"/a\",\"/b\"]","more":1}}"#,
        );
        let meant =
            PassedSettings::read(&text).unwrap().meant(Some(r#"{"timeout":"9m"}"#)).unwrap();
        assert_eq!(meant.arguments.value("timeout"), Some("9m"));
        assert_eq!(meant.arguments.value("settle"), Some("2"));
        assert!(meant.arguments.given("strict"));
        assert_eq!(meant.arguments.values("sentinel").collect::<Vec<_>>(), ["/a", "/b"]);
        assert_eq!(meant.unknown, ["more"]);
    }

    #[test]
    fn every_flag_of_wait_that_makes_sense_here_is_a_setting() {
        for (key, flag) in KEYS {
            let text = file(&format!(r#"{{"publicSettings":{{"{key}":"true"}}}}"#));
            let meant = PassedSettings::read(&text).unwrap().meant(None).unwrap();
            assert_eq!(meant.arguments.value(flag), Some("true"), "{key}");
        }
    }

    #[test]
    fn a_protected_value_is_told_nowhere() {
        let passed = PassedSettings::read(&file(r#"{"protectedSettings":"AA=="}"#)).unwrap();
        let meant = passed.meant(Some(r#"{"timeout":"hunter2hunter2"}"#)).unwrap();
        let wrong = Wrong::BadValue("timeout".to_owned(), "hunter2hunter2".to_owned(), "no");
        let told = meant.refused(wrong).to_string();
        assert_eq!(told, "setting timeout: no");
        assert_eq!(meant.strike.from("a hunter2hunter2 b"), "a *** b");
        assert!(!format!("{:?}", meant.strike).contains("hunter"));
        let passed = PassedSettings::read(&file(r#"{"protectedSettings":"AA=="}"#)).unwrap();
        let told = passed.meant(Some("[hunter2")).unwrap_err();
        assert!(!format!("{told:?}{told}").contains("hunter2"));
    }
}
