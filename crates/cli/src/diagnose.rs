//! `bringup diagnose`: diagnoses evidence from files.

use anyhow::Context as _;
use bringup_contract::Os;
use bringup_diagnosis::diagnosis::Platform;
use bringup_diagnosis::{Diagnosis, Evidence, Piece, Source};
use bringup_explain::Explanation;

use crate::args::AnswerForm;
use crate::failure::{Exit, Failure};
use crate::input::{self, Document};
use crate::request::{About, Diagnose};
use crate::{output, private_file, signatures, sniff, stored};

/// Reads the evidence, diagnoses it, stores it if requested, and prints the answer.
pub(crate) fn run(options: &Diagnose) -> Result<Exit, Failure> {
    let evidence = gather(input::read(&options.inputs)?, options)?;
    if let Some(path) = &options.store {
        let mut stored =
            serde_json::to_string_pretty(&evidence).context("cannot serialize the evidence")?;
        stored.push('\n');
        private_file::write(path, stored.as_bytes())
            .with_context(|| format!("cannot write the evidence to `{}`", path.display()))?;
    }
    let mut diagnosis = bringup_diagnosis::diagnose(&evidence);
    if options.about == About::Azure {
        diagnosis.platform.get_or_insert(Platform::Arm);
    }
    output::answer(&answer(&diagnosis, &evidence, options.form)?)?;
    Ok(Exit::from(&diagnosis))
}

fn gather(texts: Vec<Document>, options: &Diagnose) -> Result<Evidence, Failure> {
    let mut evidence = Evidence::default();
    for text in texts {
        match stored::read(&text.text) {
            Some(Err(error)) => {
                return Err(Failure::input(format!(
                    "cannot parse the stored evidence in `{}`",
                    text.name
                ))
                .detail(error.to_string())
                .hint("store it again with --evidence-out"));
            }
            Some(Ok(mut known)) => {
                evidence.pieces.append(&mut known.pieces);
                evidence.image_version = evidence.image_version.or(known.image_version);
                evidence.os = evidence.os.or(known.os);
                evidence.api_server = evidence.api_server.or(known.api_server);
            }
            None => evidence.pieces.push(piece(&text, options.about)),
        }
    }
    evidence.signatures = signatures::read(options.signatures.as_deref())?;
    evidence.image_version = options.image.or(evidence.image_version);
    evidence.os = said_os(options.about).or(evidence.os);
    Ok(evidence)
}

fn said_os(about: About) -> Option<Os> {
    match about {
        About::Machine(os) => Some(os),
        About::NotSaid | About::Azure => None,
    }
}

fn piece(text: &Document, about: About) -> Piece {
    let source = match (text.serial, sniff::source_of(&text.name, &text.text)) {
        (true, _) => Source::SerialLog,
        (false, Source::Text) if about == About::Azure => Source::Arm,
        (false, guessed) => guessed,
    };
    if text.text.is_empty() {
        return Piece::missing(source, &text.name, "the file is empty");
    }
    Piece::seen(source, &text.name, &text.text)
}

fn answer(diagnosis: &Diagnosis, evidence: &Evidence, form: AnswerForm) -> anyhow::Result<String> {
    match form {
        AnswerForm::Text => Ok(output::explained(&Explanation::of_diagnosis(diagnosis, evidence))),
        AnswerForm::Json => {
            let json = serde_json::to_string_pretty(diagnosis)
                .context("cannot serialize the answer to JSON")?;
            Ok(json + "\n")
        }
        AnswerForm::Yaml => {
            serde_saphyr::to_string(diagnosis).context("cannot serialize the answer to YAML")
        }
    }
}
