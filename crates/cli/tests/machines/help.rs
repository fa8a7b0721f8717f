//! A user at a terminal, in the management cluster.

use anyhow::Result;
use bringup_end_to_end::test_bed::shared_with_machines;
use bringup_testbed::User;

use crate::program::{Ran, ran};
use crate::terminal::{self, Terminal};

impl Terminal {
    /// Runs bringup as the administrator.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Result<Ran> {
        Ok(ran(&mut self.bringup(shared_with_machines().await?.admin(), arguments)))
    }
}

/// Runs bringup as `user`, without Azure.
pub(crate) fn bringup_as(user: &User, arguments: &[&str]) -> Ran {
    ran(&mut terminal::bringup(user, arguments))
}

/// Whether a text has these parts, line breaks aside: they depend on the length of names.
pub(crate) fn assert_contains(text: &str, parts: &[&str]) {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(flat.contains(part), "`{part}` in\n{text}");
    }
}
