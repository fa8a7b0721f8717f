//! Reads stored evidence. Files may contain secrets: every piece is redacted again.

use bringup_contract::{ImageVersion, Os};
use bringup_diagnosis::{Evidence, Piece, Source};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoredEvidence {
    pieces: Vec<StoredPiece>,
    image_version: Option<ImageVersion>,
    os: Option<Os>,
    #[serde(default)]
    api_server: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StoredPiece {
    source: Source,
    name: String,
    content: StoredContent,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum StoredContent {
    Seen(String),
    Missing(String),
    NotAsked,
}

/// The evidence, if the text begins like stored evidence; an error if the rest is invalid.
pub(crate) fn read(text: &str) -> Option<serde_json::Result<Evidence>> {
    let inside = text.trim_start().strip_prefix('{')?.trim_start();
    inside.starts_with("\"pieces\"").then(|| parse(text))
}

fn parse(text: &str) -> serde_json::Result<Evidence> {
    let stored: StoredEvidence = serde_json::from_str(text)?;
    Ok(Evidence {
        pieces: stored.pieces.into_iter().map(Piece::from).collect(),
        image_version: stored.image_version,
        os: stored.os,
        api_server: stored.api_server,
        ..Evidence::default()
    })
}

impl From<StoredPiece> for Piece {
    fn from(stored: StoredPiece) -> Self {
        let StoredPiece { source, name, content } = stored;
        match content {
            StoredContent::Seen(text) => Self::seen(source, &name, &text),
            StoredContent::Missing(why) => Self::missing(source, &name, &why),
            StoredContent::NotAsked => Self::not_asked(source, &name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_stored_is_read_back() {
        let evidence = Evidence {
            pieces: vec![
                Piece::seen(Source::Extension, "a.json", "exit status=50 \"quoted\"\nline"),
                Piece::missing(Source::SerialLog, "boot.log", "the file is empty"),
                Piece::not_asked(Source::Arm, "vm"),
            ],
            image_version: Some("202601.27.0".parse().unwrap()),
            os: Some(Os::Linux),
            api_server: Some("cp.contoso.example".to_owned()),
            ..Evidence::default()
        };
        let stored = serde_json::to_string_pretty(&evidence).unwrap();
        assert_eq!(read(&stored).unwrap().unwrap(), evidence);
    }

    #[test]
    fn anything_else_is_just_text() {
        for text in ["", "{", "{\"error\": {}}", "log", "[{\"pieces\": []}]"] {
            assert!(read(text).is_none(), "{text}");
        }
    }

    #[test]
    fn evidence_that_is_damaged_is_no_evidence() {
        for text in ["{\"pieces\": 3}", "{\"pieces\": []} more", "{\"pieces\": [{\"source\": \"te"]
        {
            assert!(read(text).unwrap().is_err(), "{text}");
        }
    }
}
