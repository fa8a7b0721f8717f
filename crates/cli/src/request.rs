//! Converts the command line to requests; no other module interprets it.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use bringup_contract::{Cause, ImageVersion, Os};
use bringup_observe::profile::Kind;
use clap_complete::Shell;
use jiff::SignedDuration;

use crate::args::{
    AnswerForm, Arguments, ClusterArguments, Command, DiagnoseArguments, ExplainArguments,
    ExplainForm, ListForm, ReportArguments, ReportsArguments, TypedPlatform, WhyArguments,
};
use crate::azure::AzureArguments;
use crate::boot_log::BootLogArguments;
use crate::cluster::Choice;
use crate::controller::ControllerArguments;
use crate::failure::Failure;
use crate::flex::FlexCommand;
use crate::machine_health_check::MachineHealthCheckArguments;
use crate::nodeconfig::NodeConfigCommand;

/// The action of a command.
#[derive(Debug)]
pub(crate) enum Request {
    Explain(Explain),
    Diagnose(Diagnose),
    Why(Box<Why>),
    BootLog(Box<BootLogArguments>),
    Reports(Reports),
    Report(Report),
    Controller(Box<ControllerArguments>),
    Flex(Box<FlexCommand>),
    NodeConfig(NodeConfigCommand),
    MachineHealthCheck(MachineHealthCheckArguments),
    Completions(Shell),
    Man(Option<String>),
    Docs { directory: PathBuf },
}

/// The options of `explain`.
#[derive(Debug)]
pub(crate) struct Explain {
    pub(crate) topics: Topics,
    pub(crate) systems: Vec<Os>,
    pub(crate) image: Option<ImageVersion>,
    pub(crate) form: ExplainForm,
}

/// Some topics, or all.
#[derive(Debug)]
pub(crate) enum Topics {
    Everything,
    These(Vec<String>),
}

/// The options of `diagnose`.
#[derive(Debug)]
pub(crate) struct Diagnose {
    pub(crate) inputs: Vec<Input>,
    pub(crate) about: About,
    pub(crate) image: Option<ImageVersion>,
    pub(crate) form: AnswerForm,
    pub(crate) store: Option<PathBuf>,
    pub(crate) signatures: Option<PathBuf>,
}

/// The options of `why`.
#[derive(Debug)]
pub(crate) struct Why {
    pub(crate) name: String,
    pub(crate) cluster: Choice,
    pub(crate) azure: AzureArguments,
    pub(crate) signatures: Option<PathBuf>,
    pub(crate) machine_deadline: SignedDuration,
    pub(crate) form: AnswerForm,
}

/// The options of `reports`.
#[derive(Debug)]
pub(crate) struct Reports {
    pub(crate) wanted: Wanted,
    pub(crate) cluster: Choice,
    /// Whether to show namespaces even if they are not needed.
    pub(crate) all_namespaces: bool,
    pub(crate) form: ListForm,
}

/// The filter for reports; `None` matches every value.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) kind: Option<Kind>,
    pub(crate) cluster: Option<String>,
    pub(crate) pool: Option<String>,
    pub(crate) image: Option<String>,
    pub(crate) since: Option<SignedDuration>,
    pub(crate) cause: Option<Cause>,
}

/// The options of `report`.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) cluster: Choice,
    pub(crate) form: AnswerForm,
}

/// The source of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    StandardInput,
    File(PathBuf),
}

/// An input, and its kind if the user named one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) place: Place,
    pub(crate) serial: bool,
}

/// The object that the evidence describes, according to the user.
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
            Command::Why(typed) => Ok(Self::Why(Box::new((*typed).into()))),
            Command::BootLog(typed) => Ok(Self::BootLog(typed)),
            Command::Reports(typed) => Ok(Self::Reports(typed.into())),
            Command::Report(typed) => Ok(Self::Report(typed.into())),
            Command::Controller(typed) => Ok(Self::Controller(typed)),
            Command::Flex(typed) => Ok(Self::Flex(typed)),
            Command::NodeConfig(typed) => Ok(Self::NodeConfig(typed)),
            Command::MachineHealthCheck(typed) => Ok(Self::MachineHealthCheck(typed)),
            Command::Completions { shell } => Ok(Self::Completions(shell)),
            Command::Man { command } => Ok(Self::Man(command)),
            Command::Docs { directory } => Ok(Self::Docs { directory }),
        }
    }
}

impl From<ExplainArguments> for Explain {
    fn from(typed: ExplainArguments) -> Self {
        Self {
            topics: if typed.list { Topics::Everything } else { Topics::These(typed.what) },
            systems: typed.os.map_or_else(|| vec![Os::Linux, Os::Windows], |os| vec![os.into()]),
            image: typed.image_version,
            form: typed.output,
        }
    }
}

impl From<ClusterArguments> for Choice {
    fn from(typed: ClusterArguments) -> Self {
        let ClusterArguments { kubeconfig, context, namespace } = typed;
        Self { kubeconfig, context, namespace }
    }
}

impl From<WhyArguments> for Why {
    fn from(typed: WhyArguments) -> Self {
        let WhyArguments { name, output: form, signatures, machine_deadline, cluster, azure } =
            typed;
        Self { name, cluster: cluster.into(), azure, signatures, machine_deadline, form }
    }
}

impl From<ReportsArguments> for Reports {
    fn from(typed: ReportsArguments) -> Self {
        let ReportsArguments { kind, of_cluster, nodepool: pool, image, since, cause, .. } = typed;
        Self {
            wanted: Wanted {
                kind: kind.map(Into::into),
                cluster: of_cluster,
                pool,
                image,
                since,
                cause,
            },
            cluster: typed.cluster.into(),
            all_namespaces: typed.all_namespaces,
            form: typed.output,
        }
    }
}

impl From<ReportArguments> for Report {
    fn from(typed: ReportArguments) -> Self {
        Self { name: typed.name, cluster: typed.cluster.into(), form: typed.output }
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
            return Err(Failure::usage("no input to diagnose").hint(
                "pass a file, or pipe a log or the output of `az ... -o json` into the command",
            ));
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
        signatures: typed.signatures,
    })
}
