//! `docs/walks.md` leads a reader through the code: every function that it names is in the file that it
//! names.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

/// The walks, and how many rows each may have.
const WALKS: [(&str, usize); 2] = [
    ("A failing NodeClaim, from the watch to its condition", 16),
    ("An AzureFlexMachine, from the gRPC request to Running", 14),
];

/// File and function of a row `| step | `file` | `function` |`.
fn step(row: &str) -> Option<(&str, &str)> {
    let mut cells = row.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").skip(1);
    let mut next = || cells.next()?.strip_prefix('`')?.strip_suffix('`');
    Some((next()?, next()?))
}

#[test]
fn every_function_of_the_walks_is_in_its_file_and_no_walk_is_too_long() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let text = std::fs::read_to_string(root.join("docs/walks.md"))?;
    for (title, most) in WALKS {
        let (_, walk) = text.split_once(&format!("## {title}\n")).with_context(|| title)?;
        let walk = walk.split("\n## ").next().unwrap_or_default();
        let steps: Vec<_> = walk.lines().filter_map(step).collect();
        ensure!((8..=most).contains(&steps.len()), "{title}: {} rows", steps.len());
        for (file, function) in steps {
            let source =
                std::fs::read_to_string(root.join(file)).with_context(|| file.to_owned())?;
            let begins = [format!("fn {function}("), format!("fn {function}<")];
            let found = begins.iter().any(|begin| source.contains(begin.as_str()));
            ensure!(found, "{title}: there is no fn {function} in {file}");
        }
    }
    Ok(())
}
