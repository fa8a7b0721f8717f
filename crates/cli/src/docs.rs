//! `bringup docs`: the generated pages of the documentation. Causes and exit codes come from the rules and
//! the catalogue, commands from the table of arguments, custom resources from their definitions.

mod cli;
mod crds;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use bringup_contract::{Cause, Os};
use bringup_diagnosis::rule::{Sign, Strength};

use crate::explain::{self, CauseEntry, CodeEntry, os_in_words};
use crate::explain_text::when;
use crate::failure::{Exit, Failure};
use bringup_explain::words;

const MADE: &str = "<!-- Made by `bringup docs docs` from the rules and the catalogue. -->\n\n";

/// Writes the pages.
pub(crate) fn run(directory: &Path) -> Result<Exit, Failure> {
    let causes = directory.join("causes");
    fs::create_dir_all(&causes)
        .with_context(|| format!("cannot make the directory `{}`", causes.display()))?;
    for cause in Cause::ALL {
        write(&causes.join(format!("{cause}.md")), &cause_page(*cause))?;
    }
    write(&causes.join("README.md"), &index())?;
    write(&directory.join("codes.md"), &codes_page())?;
    write(&directory.join("cli.md"), &cli::page())?;
    write(&directory.join("crds.md"), &crds::page()?)?;
    Ok(Exit::Fine)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

/// The remedy comes first: readers of a runbook need it most.
fn cause_page(cause: Cause) -> String {
    let entry = explain::cause_entry(cause);
    let rule = explain::rule_of(cause);
    let family = format!("{:?}", entry.family).to_lowercase();
    let mut page = format!("{MADE}# {cause}\n\n{}\n", entry.meaning);
    let _ = write!(
        page,
        "\n| who has to act | try again | area | in your cluster |\n|---|---|---|---|\n| {} | {} | {family} | `bringup reports --cause {cause}` |\n",
        entry.owner,
        words::retry(entry.retryable),
    );
    let Some(rule) = rule else { return page };
    for (heading, text) in [
        ("What to do", rule.remedy),
        ("Looks like", rule.looks_like),
        ("Why the code misleads", rule.misleads),
    ] {
        let _ = write!(page, "\n## {heading}\n\n{text}\n");
    }
    page.push_str(&codes_of(&entry));
    page.push_str(SIGNS);
    let mut signs: Vec<&Sign> = rule.signs.iter().collect();
    signs.sort_by_key(|sign| sign.rank);
    for sign in signs {
        let _ = writeln!(page, "| {} | {} | {} |", sign.rank, strength(sign.strength), parts(sign));
    }
    page
}

const SIGNS: &str = "
## Signs

Signs are what is peculiar to this cause; wordings that several causes share, such as `connection refused`, are not listed.
A sign is found when one line has all its parts, in upper or lower case. Of several signs, the one with the lowest
rank decides.

| rank | proves it | parts of one line |
|---|---|---|
";

fn codes_of(entry: &CauseEntry) -> String {
    if entry.codes.is_empty() {
        return String::new();
    }
    let mut text = "\n## Exit codes it was seen with\n\n".to_owned();
    for code in &entry.codes {
        let name =
            code.constant.map_or_else(|| "no constant".to_owned(), |name| format!("`{name}`"));
        let _ = writeln!(text, "- {} {}: {name}", os_in_words(code.os), code.code);
    }
    text
}

fn strength(strength: Strength) -> &'static str {
    match strength {
        Strength::Strong => "yes",
        Strength::Fair => "speaks for it",
        Strength::Weak => "points to it",
    }
}

fn parts(sign: &Sign) -> String {
    let quoted = |parts: &[&str]| -> String {
        let parts: Vec<String> = parts.iter().map(|part| format!("`{}`", cell(part))).collect();
        parts.join(", ")
    };
    let mut text = quoted(sign.all);
    for (label, parts) in [("without", sign.none), ("elsewhere in the text one of", sign.near)] {
        if !parts.is_empty() {
            let _ = write!(text, "; {label} {}", quoted(parts));
        }
    }
    if sign.again {
        text.push_str("; after an earlier boot or attempt to join");
    }
    if !sign.codes.is_empty() {
        let codes: Vec<String> = sign.codes.iter().map(ToString::to_string).collect();
        let _ = write!(text, "; with exit code {}", codes.join(", "));
    }
    text
}

/// A `|` would end the cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn index() -> String {
    let mut page = format!(
        "{MADE}# Causes\n\nEvery verdict names one of these causes. Its page says what to do, how it looks, and why the exit code\nmisleads; `bringup explain CAUSE` prints the same.\n\n| cause | what was found | who has to act |\n|---|---|---|\n"
    );
    for cause in Cause::ALL {
        let entry = explain::cause_entry(*cause);
        let title = cell(entry.title.unwrap_or("the evidence does not tell"));
        let _ = writeln!(page, "| [{cause}]({cause}.md) | {title} | {} |", entry.owner);
    }
    page
}

fn codes_page() -> String {
    let mut page = format!(
        "{MADE}# Exit codes\n\nWhat each exit code of AKS's bootstrap scripts means, and on images of which dates. `bringup explain CODE`\nprints the same with what to do.\n"
    );
    let codes = explain::all_codes();
    for os in [Os::Linux, Os::Windows] {
        let _ = write!(page, "\n## {}\n", os_in_words(os));
        for code in codes.iter().filter(|code| code.os == os) {
            page.push_str(&code_section(code));
        }
    }
    page
}

fn code_section(code: &CodeEntry) -> String {
    let mut text = format!("\n### {}\n\n", code.code);
    for meaning in &code.meanings {
        let name = if meaning.name.starts_with('(') {
            meaning.name.to_owned()
        } else {
            format!("`{}`", meaning.name)
        };
        let _ = write!(
            text,
            "- {name}: {} Images: {}. Seen: {}.",
            markup_free(meaning.meaning),
            when(meaning),
            meaning.surfaces.words(),
        );
        let logged: Vec<String> = meaning.texts.iter().map(|text| format!("`{text}`")).collect();
        if !logged.is_empty() {
            let _ = write!(text, " In log: {}.", logged.join(", "));
        }
        text.push('\n');
    }
    if let Some(misleading) = code.misleading {
        let _ = write!(text, "\nMisleads: {}\n", markup_free(misleading));
    }
    if !code.candidate_causes.is_empty() {
        let links = code.candidate_causes.iter().map(|entry| entry.reason);
        let links: Vec<String> =
            links.map(|cause| format!("[{cause}](causes/{cause}.md)")).collect();
        let _ = write!(text, "\nSeen with {}.\n", links.join(", "));
    }
    text
}

/// Escapes characters with a meaning in Markdown: texts of the catalogue are plain.
fn markup_free(text: &str) -> String {
    text.replace('<', "\\<").replace('*', "\\*")
}
