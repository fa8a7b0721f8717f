//! The page about commands: their help texts.

use std::fmt::Write as _;

use clap::{Command, CommandFactory as _};

use crate::args::Arguments;

pub(super) fn page() -> String {
    let mut whole = Arguments::command();
    whole.build();
    let mut page = "<!-- Made by `bringup docs docs` from the table of arguments. -->\n\n# CLI\n\nThe help of every command of `bringup`. `bringup completions SHELL` prints completions, `bringup man COMMAND`\na manual page. As `kubectl-bringup` in PATH, it is also `kubectl bringup`.\n".to_owned();
    add(&mut page, &whole);
    page
}

fn add(page: &mut String, command: &Command) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let help = command.clone().color(clap::ColorChoice::Never).render_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(page, "\n## {name}\n\n```text\n{}\n```\n", lines.join("\n").trim_end());
    let shown = command.get_subcommands().filter(|known| !known.is_hide_set());
    for subcommand in shown.filter(|known| known.get_name() != "help") {
        add(page, subcommand);
    }
}
