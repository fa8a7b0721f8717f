//! What was typed becomes what it means, here and nowhere else.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use bringup_contract::{ImageVersion, Os};
use clap_complete::Shell;

use crate::args::{
    Arguments, Command, DiagnoseArguments, DiagnoseForm, ExplainArguments, ExplainForm,
    TypedPlatform,
};
use crate::controller::ControllerArguments;
use crate::failure::Failure;

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Request {
    Explain(Explain),
    Diagnose(Diagnose),
    Controller(Box<ControllerArguments>),
    Completions(Shell),
    Man(Option<String>),
    Docs { directory: PathBuf, rules: PathBuf },
}

/// What is to be explained, and how.
#[derive(Debug)]
pub(crate) struct Explain {
    pub(crate) topic: Topic,
    pub(crate) systems: Vec<Os>,
    pub(crate) image: Option<ImageVersion>,
    pub(crate) form: ExplainForm,
}

/// One thing, or all.
#[derive(Debug)]
pub(crate) enum Topic {
    Everything,
    One(String),
}

/// What is to be diagnosed, and how.
#[derive(Debug)]
pub(crate) struct Diagnose {
    pub(crate) inputs: Vec<Input>,
    pub(crate) about: About,
    pub(crate) image: Option<ImageVersion>,
    pub(crate) form: DiagnoseForm,
    pub(crate) store: Option<PathBuf>,
}

/// Where a text is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    StandardInput,
    File(PathBuf),
}

/// A text to be read, and whether it was said what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) place: Place,
    pub(crate) serial: bool,
}

/// What the evidence is said to be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    NotSaid,
    Machine(Os),
    Azure,
}

impl TryFrom<Arguments> for Request {
    type Error = Failure;

    fn try_from(arguments: Arguments) -> Result<Self, Failure> {
        match arguments.command {
            Command::Explain(typed) => Ok(Self::Explain(typed.into())),
            Command::Diagnose(typed) => diagnose(typed).map(Self::Diagnose),
            Command::Controller(typed) => Ok(Self::Controller(typed)),
            Command::Completions { shell } => Ok(Self::Completions(shell)),
            Command::Man { command } => Ok(Self::Man(command)),
            Command::Docs { directory, rules } => Ok(Self::Docs { directory, rules }),
        }
    }
}

impl From<ExplainArguments> for Explain {
    fn from(typed: ExplainArguments) -> Self {
        Self {
            topic: typed.what.map_or(Topic::Everything, Topic::One),
            systems: typed.os.map_or_else(|| vec![Os::Linux, Os::Windows], |os| vec![os.into()]),
            image: typed.image_version,
            form: typed.output,
        }
    }
}

fn diagnose(typed: DiagnoseArguments) -> Result<Diagnose, Failure> {
    let place = |path: PathBuf| {
        if path == Path::new("-") { Place::StandardInput } else { Place::File(path) }
    };
    let files = typed.files.into_iter().map(|path| Input { place: place(path), serial: false });
    let serial =
        typed.serial_log.into_iter().map(|path| Input { place: place(path), serial: true });
    let mut inputs: Vec<Input> = files.chain(serial).collect();
    if inputs.is_empty() {
        if std::io::stdin().is_terminal() {
            return Err(Failure::usage("there is nothing to diagnose")
                .hint("name a file, or pipe a log or an answer of `az … -o json` into it"));
        }
        inputs.push(Input { place: Place::StandardInput, serial: false });
    }
    if inputs.iter().filter(|input| input.place == Place::StandardInput).count() > 1 {
        return Err(Failure::usage("the standard input (`-`) can be read only once"));
    }
    Ok(Diagnose {
        inputs,
        about: match typed.platform {
            TypedPlatform::Auto => About::NotSaid,
            TypedPlatform::Linux => About::Machine(Os::Linux),
            TypedPlatform::Windows => About::Machine(Os::Windows),
            TypedPlatform::Arm => About::Azure,
        },
        image: typed.image_version,
        form: typed.output,
        store: typed.evidence_out,
    })
}
