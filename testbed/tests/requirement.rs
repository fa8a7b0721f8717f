//! Requirements that must be met, and the programs that are missing.

use bringup_testbed::requirement::{is_named, missing_program};

#[test]
fn only_whole_names_of_the_list_are_required() {
    assert!(is_named("guest", "karpenter, guest"));
    assert!(!is_named("guest", "guests"));
    assert!(!is_named("guest", ""));
}

#[test]
fn a_program_in_no_folder_of_the_path_is_missing() {
    assert_eq!(missing_program(&["sh", "no-such-program"]), Some("no-such-program"));
}
