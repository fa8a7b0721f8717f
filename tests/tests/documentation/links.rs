//! Links lead somewhere, and every page is in the table of contents.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::{pages, prose, root};

/// The addresses by which pages link to files outside `docs`, so that the links work on the site too.
const REPOSITORY: [&str; 2] = [
    "https://github.com/bringup-dev/bringup/blob/main/",
    "https://github.com/bringup-dev/bringup/tree/main/",
];

/// The targets of `[text](target)` and `![text](target)`.
fn links(page: &str) -> Vec<String> {
    let text = prose(page);
    let parts = text.split("](").skip(1);
    parts.filter_map(|part| part.split(')').next()).map(str::to_owned).collect()
}

/// The anchor that GitHub and mdBook give a heading.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = page.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let text = line.trim_start_matches('#').trim().to_lowercase();
        let kept =
            text.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_link_leads_somewhere() -> Result<()> {
    let mut broken = Vec::new();
    for (name, page) in pages()? {
        for link in links(&page) {
            let inside = REPOSITORY.iter().find_map(|prefix| link.strip_prefix(prefix));
            if inside.is_none() && (link.contains("://") || link.starts_with("mailto:")) {
                continue;
            }
            let (file, anchor) = inside.unwrap_or(&link).split_once('#').unwrap_or((&link, ""));
            let file = inside.map_or(file, |inside| inside.split('#').next().unwrap_or(inside));
            let folder = if inside.is_some() {
                Path::new("")
            } else {
                name.parent().unwrap_or(Path::new(""))
            };
            let target = if file.is_empty() { name.clone() } else { folder.join(file) };
            let path = root().join(&target);
            let leads = path.exists()
                && (anchor.is_empty()
                    || anchors(&std::fs::read_to_string(&path)?).contains(anchor));
            let leaves = name.starts_with("docs")
                && inside.is_none()
                && file.starts_with("../")
                && !path.canonicalize().is_ok_and(|path| {
                    path.starts_with(root().join("docs").canonicalize().unwrap_or_default())
                });
            if !leads || leaves {
                broken.push(format!("{}: {link}", name.display()));
            }
        }
    }
    assert!(broken.is_empty(), "broken links:\n{}", broken.join("\n"));
    Ok(())
}

#[test]
fn every_page_is_in_the_table_of_contents() -> Result<()> {
    let summary = std::fs::read_to_string(root().join("docs/SUMMARY.md"))?;
    let listed: BTreeSet<String> = links(&summary).into_iter().collect();
    for (name, _) in pages()? {
        let Ok(inside) = name.strip_prefix("docs") else { continue };
        let inside = inside.display().to_string();
        assert!(
            inside == "SUMMARY.md" || listed.contains(&inside),
            "docs/SUMMARY.md lacks {inside}"
        );
    }
    Ok(())
}
