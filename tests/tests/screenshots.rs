//! The screens in the documentation show what the demo prints. `make screenshots` draws them anew.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use bringup_end_to_end::process::built;

/// The text of a screen, without the parts that differ from run to run: numbers, and names that end in a
/// hash.
fn text(svg: &str) -> Vec<String> {
    let lines = svg.split("<tspan x=").skip(1).map(|line| {
        let pieces =
            line.split('<').map(|piece| piece.split_once('>').map_or("", |(_, text)| text));
        let line: String = pieces.collect();
        let words = line.split_whitespace().map(|word| match word.rsplit_once('-') {
            Some((name, hash))
                if hash.len() == 10 && hash.bytes().all(|it| it.is_ascii_hexdigit()) =>
            {
                name
            }
            _ => word,
        });
        let line = words.collect::<Vec<_>>().join(" ");
        line.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect()
    });
    let lines: Vec<String> = lines.collect();
    lines.into_iter().map(|line: String| line.replace("00", "0").replace("00", "0")).collect()
}

#[test]
fn the_screens_in_the_documentation_are_what_the_demo_prints() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let demo = Command::new(env!("CARGO_BIN_EXE_bringup-demo"))
        .env("BRINGUP", built("BRINGUP", "bringup")?)
        .env("BRINGUP_SCREENSHOTS", folder.path())
        .output()
        .context("run the demo")?;
    ensure!(demo.status.success(), "the demo failed: {}", String::from_utf8_lossy(&demo.stderr));
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images/why.svg");
    let kept = text(&std::fs::read_to_string(kept)?);
    let drawn = text(&std::fs::read_to_string(folder.path().join("why.svg"))?);
    assert!(kept.iter().any(|line| line.contains("FAILED: BinaryMissing")), "{kept:#?}");
    assert_eq!(kept, drawn, "docs/images/why.svg is stale: run `make screenshots`");
    Ok(())
}
