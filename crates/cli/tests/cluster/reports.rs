//! `bringup reports` and `bringup report`.

use anyhow::Result;

use crate::common::fits;
use crate::example_cluster::{bringup, flat};

/// The names in a table.
fn names(table: &str) -> Vec<&str> {
    table.lines().skip(1).filter_map(|line| line.split_whitespace().next()).collect()
}

#[tokio::test]
async fn the_table_has_the_newest_first_and_fits_the_terminal() -> Result<()> {
    let ran = bringup(&["reports"]).await?;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("NAME  "), "{}", ran.out);
    assert_eq!(ran.out.lines().count(), 6, "{}", ran.out);
    let first = ran.out.lines().find(|line| line.contains("default-gone")).unwrap_or_default();
    assert!(flat(first).ends_with("BinaryMissing 211 202601.27.0 default 4m"), "{first}");
    assert_eq!(names(&ran.out)[3..], ["other-twice-0000007534", "other-twice-0000007533"]);
    fits(&ran.out);
    Ok(())
}

#[tokio::test]
async fn a_report_that_cannot_be_read_hides_no_other_and_is_named() -> Result<()> {
    let ran = bringup(&["reports"]).await?;
    assert_eq!((ran.code, names(&ran.out).len()), (0, 5), "{}", ran.out);
    assert!(ran.err.starts_with("note: cannot read team-a/unreadable-"), "{}", ran.err);
    assert!(ran.err.contains("skipping it: "), "{}", ran.err);
    Ok(())
}

#[tokio::test]
async fn filters_select() -> Result<()> {
    for (filter, count) in [
        (&["--nodepool", "other"][..], 2),
        (&["--image", "202601.27.0"], 3),
        (&["--since", "1h"], 3),
        (&["--since", "1d"], 4),
        (&["--cause", "binarymissing"], 5),
        (&["--cause", "BinaryMissing", "--nodepool", "other", "--since", "3h"], 1),
        (&["-n", "team-a"], 2),
    ] {
        let ran = bringup(&[&["reports"], filter].concat()).await?;
        assert_eq!((ran.code, names(&ran.out).len()), (0, count), "{filter:?}: {}", ran.out);
    }
    let none = bringup(&["reports", "--cause", "DiskFull"]).await?;
    assert_eq!(none.out, "None of the 5 reports in this cluster matches the filters.\n");
    let nowhere = bringup(&["reports", "-n", "default"]).await?;
    assert_eq!(nowhere.out, "No reports found in namespace default.\n");
    Ok(())
}

#[tokio::test]
async fn wide_adds_phase_confidence_zone_size_namespace_and_mode() -> Result<()> {
    let out = bringup(&["reports", "-o", "wide", "--nodepool", "other"]).await?.out;
    let row = flat(out.lines().nth(1).unwrap_or_default());
    assert_eq!(
        row,
        "team-a other-twice-0000007534 BinaryMissing 211 202512.03.0 other aks-other-twice Final \
         high Standard_D4s_v5 eastus-1 bootstrappingclient 2h"
    );
    Ok(())
}

#[tokio::test]
async fn lists_can_be_read_by_programs() -> Result<()> {
    let json = bringup(&["reports", "-o", "json"]).await?.json();
    assert_eq!((&json["kind"], json["items"].as_array().map(Vec::len)), (&"List".into(), Some(5)));
    assert_eq!(json["items"][0]["kind"], "BootstrapReport");
    let yaml = bringup(&["reports", "-o", "yaml"]).await?.out;
    assert!(yaml.starts_with("apiVersion: v1\nkind: List\nitems:\n"), "{yaml}");
    Ok(())
}

#[tokio::test]
async fn a_report_is_shown_by_its_name_or_its_beginning() -> Result<()> {
    for name in
        ["default-gone-0000007531", "bringup-system/default-gone-0000007531", "default-gone"]
    {
        let ran = bringup(&["report", name]).await?;
        assert_eq!(ran.code, 10, "{}", ran.err);
        assert!(ran.out.starts_with("FAILED: BinaryMissing, exit code 211"), "{}", ran.out);
        assert!(ran.out.contains("NodeClaim default-gone; diagnosed 4m ago."), "{}", ran.out);
        fits(&ran.out);
    }
    let json = bringup(&["report", "default-gone", "-o", "json"]).await?.json();
    assert_eq!(json["spec"]["targetRef"]["name"], "default-gone");
    Ok(())
}

#[tokio::test]
async fn a_report_that_is_not_there_or_not_the_only_one_is_64() -> Result<()> {
    let several = bringup(&["report", "other-twice"]).await?;
    assert_eq!(several.code, 64);
    assert!(flat(&several.err).contains("matches 2 reports"), "{}", several.err);
    let none = bringup(&["report", "default-gnoe-0000007531"]).await?;
    assert_eq!(none.code, 64);
    let said = flat(&none.err);
    assert!(said.contains("did you mean `default-gone-0000007531`?"), "{said}");
    Ok(())
}
