//! Prints completions and manual pages, generated from the table of commands.

use anyhow::Context as _;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Arguments;
use crate::failure::{Exit, Failure};
use crate::output;

/// Prints the completions for a shell.
pub(crate) fn completions(shell: Shell) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "bringup", &mut script);
    output::answer(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Fine)
}

/// Prints a manual page.
pub(crate) fn page(command: Option<&str>) -> Result<Exit, Failure> {
    let mut whole = Arguments::command();
    whole.build();
    let chosen = match command {
        None => whole,
        Some(name) => {
            let found = whole.get_subcommands().find(|known| known.get_name() == name).cloned();
            let names = || -> Vec<String> {
                let visible = whole.get_subcommands().filter(|known| !known.is_hide_set());
                visible.map(|known| known.get_name().to_owned()).collect()
            };
            found.ok_or_else(|| {
                Failure::usage(format!("bringup has no command `{name}`"))
                    .hint(format!("it has {}", names().join(", ")))
            })?
        }
    };
    // The name of a command's page, such as `bringup-diagnose`.
    let title = chosen.get_bin_name().unwrap_or("bringup").replace(' ', "-");
    let mut roff = Vec::new();
    clap_mangen::Man::new(chosen)
        .title(title)
        .source(concat!("bringup ", env!("CARGO_PKG_VERSION")))
        .render(&mut roff)
        .context("cannot write the manual page")?;
    output::answer(&String::from_utf8_lossy(&roff))?;
    Ok(Exit::Fine)
}
