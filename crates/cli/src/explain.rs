//! `bringup explain`: explains an exit code, a constant or a cause.

use anyhow::Context as _;
use bringup_contract::arm::{self, ArmCode};
use bringup_contract::exit_code::{AS_OF, Catalogue, Code, Lookup, Meaning, Surfaces};
use bringup_contract::{Cause, Family, ImageVersion, Os, Retryable};
use bringup_diagnosis::rule::Rule;
use bringup_diagnosis::rules::RULES;
use jiff::civil::Date;
use serde::Serialize;

use crate::args::ExplainForm;
use crate::failure::{Exit, Failure};
use crate::request::{Explain, Topics};
use crate::{explain_text, output};

/// The least similarity of a suggested name, from 0 to 1.
const ALIKE: f64 = 0.8;

/// The explanation of a topic.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Explanation {
    pub(crate) topic: String,
    pub(crate) image_version: Option<ImageVersion>,
    pub(crate) codes: Vec<CodeEntry>,
    /// The error code of ARM, if the topic is one.
    pub(crate) arm_code: Option<&'static str>,
    pub(crate) cause: Option<CauseEntry>,
}

/// An exit code on one operating system.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CodeEntry {
    pub(crate) os: Os,
    pub(crate) code: i32,
    /// The current name, or the name on the image; several if the name is ambiguous.
    pub(crate) constants: Vec<&'static str>,
    pub(crate) meanings: Vec<MeaningEntry>,
    pub(crate) misleading: Option<&'static str>,
    pub(crate) texts: &'static [String],
    pub(crate) candidate_causes: Vec<CauseEntry>,
}

/// A current or former meaning of a number.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MeaningEntry {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) origin: Option<&'static str>,
    pub(crate) valid_from: Option<Date>,
    pub(crate) valid_to: Option<Date>,
    pub(crate) standing: Standing,
    pub(crate) surfaces: Surfaces,
    pub(crate) can_surface: bool,
    /// Texts that accompany only this meaning in the log.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(crate) texts: &'static [String],
    /// Whether the code has this meaning on the image; `None` without an image.
    #[serde(skip)]
    pub(crate) on_image: Option<bool>,
}

/// Whether a meaning is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Standing {
    /// The meaning is valid now.
    Current,
    /// The meaning was only proposed; no image uses it.
    Proposed,
    /// The meaning is no longer valid.
    Past,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CauseEntry {
    pub(crate) reason: Cause,
    pub(crate) family: Family,
    pub(crate) owner: &'static str,
    pub(crate) retryable: Retryable,
    pub(crate) meaning: &'static str,
    pub(crate) title: Option<&'static str>,
    pub(crate) remedy: Option<&'static str>,
    /// The exit codes that this cause has been observed with.
    pub(crate) codes: Vec<CodeName>,
}

/// A code with its name.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CodeName {
    pub(crate) os: Os,
    pub(crate) code: i32,
    pub(crate) constant: Option<&'static str>,
}

pub(crate) fn run(options: &Explain) -> Result<Exit, Failure> {
    let text = match (&options.topics, options.form) {
        (Topics::These(topics), form) => return each(topics, options, form),
        (Topics::Everything, form) => {
            let codes = list(&options.systems, options.image);
            let causes: Vec<CauseEntry> = Cause::ALL.iter().map(|one| cause_entry(*one)).collect();
            match form {
                ExplainForm::Text => explain_text::list(&codes, &causes),
                ExplainForm::Json => {
                    json(&serde_json::json!({ "codes": codes, "causes": causes }))?
                }
            }
        }
    };
    output::answer(&text)?;
    Ok(Exit::Fine)
}

/// Prints the explanation of each topic. If one is unknown, the command fails after it has printed the others.
fn each(topics: &[String], options: &Explain, form: ExplainForm) -> Result<Exit, Failure> {
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    for topic in topics {
        match explain(topic, &options.systems, options.image) {
            Ok(explanation) => found.push(explanation),
            Err(failure) => unknown.push(failure),
        }
    }
    if !found.is_empty() {
        let text = match form {
            ExplainForm::Text => {
                found.iter().map(explain_text::one).collect::<Vec<String>>().join("\n")
            }
            ExplainForm::Json if topics.len() == 1 => json(&found[0])?,
            ExplainForm::Json => json(&found)?,
        };
        output::answer(&text)?;
    }
    let Some(last) = unknown.pop() else { return Ok(Exit::Fine) };
    unknown.iter().for_each(output::failure);
    Err(last)
}

fn json(value: &impl Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value).context("cannot serialize the answer to JSON")? + "\n")
}

fn list(systems: &[Os], image: Option<ImageVersion>) -> Vec<CodeEntry> {
    let codes = systems.iter().flat_map(|os| Catalogue::of(*os).codes().map(|code| (*os, code)));
    codes.map(|(os, code)| code_entry(os, code, image)).collect()
}

fn explain(
    topic: &str,
    systems: &[Os],
    image: Option<ImageVersion>,
) -> Result<Explanation, Failure> {
    let known = |wanted: &dyn Fn(&Code) -> bool| -> Vec<CodeEntry> {
        let all = systems.iter().flat_map(|os| Catalogue::of(*os).codes().map(|code| (*os, code)));
        let found = all.filter(|(_, code)| wanted(code));
        found.map(|(os, code)| code_entry(os, code, image)).collect()
    };
    let named = |code: &Code| code.meanings.iter().any(|one| one.name.eq_ignore_ascii_case(topic));
    let codes = match topic.parse::<i32>() {
        Ok(number) => known(&|code| code.code == number),
        Err(_) => known(&named),
    };
    let cause = topic.parse::<Cause>().ok();
    let arm = ArmCode::find(topic);
    if codes.is_empty() && cause.is_none() && arm.is_none() {
        return Err(unknown(topic, systems));
    }
    Ok(Explanation {
        topic: topic.to_owned(),
        image_version: image,
        codes,
        arm_code: arm.map(|code| code.code),
        cause: cause.or(arm.and_then(|code| code.cause)).map(cause_entry),
    })
}

fn code_entry(os: Os, code: &'static Code, image: Option<ImageVersion>) -> CodeEntry {
    let on_image = image.map(|_| match Catalogue::of(os).lookup(code.code, image) {
        Lookup::Exact(meaning) => vec![meaning],
        Lookup::Ambiguous(found) => found,
        Lookup::Unknown => Vec::new(),
    });
    let entry = |meaning: &'static Meaning| MeaningEntry {
        // Meanings of one name differ in their dates.
        on_image: on_image.as_ref().map(|found| found.contains(&meaning)),
        ..meaning_entry(meaning)
    };
    let mut meanings: Vec<MeaningEntry> = code.meanings.iter().map(entry).collect();
    meanings.reverse();
    meanings.sort_by_key(|meaning| meaning.standing);
    let constants = if let Some(found) = &on_image {
        found.iter().map(|one| one.name.as_str()).collect()
    } else {
        let current = || meanings.iter().filter(|one| one.standing == Standing::Current);
        let any_surfaces = current().any(|one| one.can_surface);
        let mut names: Vec<&str> =
            current().filter(|one| one.can_surface || !any_surfaces).map(|one| one.name).collect();
        names.dedup();
        names
    };
    let causes = Catalogue::of(os).candidate_causes(code.code, image);
    CodeEntry {
        os,
        code: code.code,
        constants,
        meanings,
        misleading: code.misleading.as_deref(),
        texts: &code.texts,
        candidate_causes: causes.into_iter().map(cause_entry).collect(),
    }
}

fn meaning_entry(meaning: &'static Meaning) -> MeaningEntry {
    MeaningEntry {
        name: &meaning.name,
        meaning: &meaning.meaning,
        origin: meaning.origin.as_deref(),
        valid_from: meaning.valid_from,
        valid_to: meaning.valid_to,
        standing: if meaning.origin.as_deref().is_some_and(|one| one.starts_with("proposal")) {
            Standing::Proposed
        } else if meaning.valid_to.is_none_or(|to| to > AS_OF) {
            Standing::Current
        } else {
            Standing::Past
        },
        surfaces: meaning.surfaces,
        can_surface: meaning.surfaces.can(),
        texts: &meaning.texts,
        on_image: None,
    }
}

/// A cause with the text of its rule and the codes it has been observed with.
pub(crate) fn cause_entry(cause: Cause) -> CauseEntry {
    let rule = rule_of(cause);
    let codes = [Os::Linux, Os::Windows].into_iter().flat_map(|os| {
        let all = Catalogue::of(os).codes();
        let known = all.filter(move |code| code.candidate_causes.contains(&cause));
        let recent = known.filter(move |code| {
            Catalogue::of(os).candidate_causes(code.code, None).contains(&cause)
        });
        recent.map(move |code| {
            let meanings = code.meanings.iter().rev().filter(|one| !one.is_proposal());
            let newest = meanings
                .filter(|one| one.candidate_causes().contains(&cause))
                .min_by_key(|one| meaning_entry(one).standing);
            CodeName { os, code: code.code, constant: newest.and_then(Meaning::constant) }
        })
    });
    CauseEntry {
        reason: cause,
        family: cause.family(),
        owner: cause.owner(),
        retryable: cause.retryable(),
        meaning: cause.meaning(),
        title: rule.map(|rule| rule.title),
        remedy: rule.map(|rule| rule.remedy),
        codes: codes.collect(),
    }
}

/// The rule that finds a cause.
pub(crate) fn rule_of(cause: Cause) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.cause == cause)
}

/// All codes of all systems.
pub(crate) fn all_codes() -> Vec<CodeEntry> {
    list(&[Os::Linux, Os::Windows], None)
}

fn unknown(topic: &str, systems: &[Os]) -> Failure {
    let list = "`bringup explain --list` lists all codes and causes";
    let Ok(number) = topic.parse::<i32>() else {
        let failure = Failure::usage(format!(
            "`{topic}` is not a known exit code, constant, ARM error code or cause"
        ));
        return match near(topic).as_slice() {
            [] => failure.hint(list),
            names => failure.hint(format!("similar names: {}; {list}", names.join(", "))),
        };
    };
    let on: Vec<&str> = systems.iter().map(|os| os_in_words(*os)).collect();
    let failure = Failure::usage(format!("exit code {number} is not known on {}", on.join(" or ")));
    let elsewhere = [Os::Linux, Os::Windows]
        .into_iter()
        .find(|os| !systems.contains(os) && Catalogue::of(*os).code(number).is_some());
    if let Some(os) = elsewhere {
        return failure.hint(format!("{} has this exit code: omit --os", os_in_words(os)));
    }
    let numbers = systems.iter().flat_map(|os| Catalogue::of(*os).codes().map(|code| code.code));
    match numbers.min_by_key(|known| known.abs_diff(number)) {
        Some(nearest) => failure.hint(format!("the nearest known exit code is {nearest}; {list}")),
        None => failure.hint(list),
    }
}

/// The most similar names.
fn near(topic: &str) -> Vec<&'static str> {
    let bare = |name: &str| -> String {
        let name = name.to_ascii_lowercase();
        let short = name.strip_prefix("windows_cse_error_").or_else(|| name.strip_prefix("err_"));
        short.unwrap_or(&name).to_owned()
    };
    let wanted = bare(topic);
    let constants = [Os::Linux, Os::Windows].into_iter().flat_map(|os| Catalogue::of(os).codes());
    let constants = constants.flat_map(|code| &code.meanings).filter_map(Meaning::constant);
    let causes = Cause::ALL.iter().map(|cause| cause.reason());
    let arm = arm::CODES.iter().map(|code| code.code);
    let mut alike: Vec<(f64, &str)> = constants
        .chain(causes)
        .chain(arm)
        .map(|name| {
            let known = bare(name);
            let part = wanted.len() > 3 && known.contains(&wanted);
            (if part { 1.0 } else { strsim::jaro_winkler(&wanted, &known) }, name)
        })
        .filter(|(score, _)| *score >= ALIKE)
        .collect();
    alike.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(right.1)));
    alike.dedup_by_key(|(_, name)| *name);
    alike.into_iter().take(3).map(|(_, name)| name).collect()
}

/// The name of a system.
pub(crate) fn os_in_words(os: Os) -> &'static str {
    match os {
        Os::Linux => "Linux",
        Os::Windows => "Windows",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &[Os] = &[Os::Linux, Os::Windows];

    #[test]
    fn a_constant_that_has_moved_is_found_at_each_of_its_numbers() {
        let found = explain("err_imds_fetch_failed", BOTH, None).unwrap();
        assert_eq!(found.codes.iter().map(|code| code.code).collect::<Vec<_>>(), [231, 234]);
    }

    #[test]
    fn the_image_decides_what_a_number_is_called() {
        let image = Some("202601.27.0".parse().unwrap());
        let found = explain("231", BOTH, image).unwrap();
        assert_eq!(found.codes[0].constants, ["ERR_IMDS_FETCH_FAILED"]);
        let causes = |found: &Explanation| -> Vec<Cause> {
            found.codes[0].candidate_causes.iter().map(|entry| entry.reason).collect()
        };
        assert_eq!(causes(&found), [Cause::ImdsUnreachable]);
        assert_eq!(causes(&explain("232", BOTH, image).unwrap()), []);
        assert_eq!(
            explain("231", BOTH, None).unwrap().codes[0].constants,
            ["ERR_ORAS_PULL_SYSEXT_FAIL"]
        );
    }

    #[test]
    fn a_proposal_is_never_what_a_number_is_called() {
        assert_eq!(
            explain("232", BOTH, None).unwrap().codes[0].constants,
            ["ERR_SYSEXT_VERSION_ID_NOT_FOUND"]
        );
    }

    #[test]
    fn a_mistyped_name_is_answered_with_near_ones() {
        assert_eq!(near("ERR_ORAS_PULL_NETWORK_TIMOUT")[0], "ERR_ORAS_PULL_NETWORK_TIMEOUT");
        assert_eq!(near("BinaryMising")[0], "BinaryMissing");
        assert!(near("qqqq").is_empty());
    }
}
