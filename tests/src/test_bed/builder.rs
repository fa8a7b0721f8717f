//! Builds a test bed with the options that a test needs.

use std::path::Path;

use anyhow::{Context as _, Result};
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::scenario::{self, Scenario};
use bringup_azure_sim::simulator::Simulator;
use bringup_objects::{flex, report};
use bringup_observe::Settings;
use bringup_observe::claims::NodeClassKind;
use bringup_testbed::{ControlPlane, CrdSet};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};

use super::endpoints::Endpoints;
use super::{Plane, TestBed, shared, shared_with_machines};
use crate::NAMESPACE;
use crate::nodes::NodeFollower;
use crate::stand_in_karpenter::StandInKarpenter;

/// The definitions of a management cluster.
pub(super) const WITH_MACHINES: [CrdSet; 3] =
    [CrdSet::KarpenterAzure, CrdSet::ClusterApi, CrdSet::ClusterApiAzure];

/// The options of a test bed.
///
/// Without further options: a cluster of its own in which bringup is installed but does not run, Karpenter's
/// definitions, an Azure in which all VMs are healthy, and Nodes for the VMs that join.
#[must_use]
pub struct Builder {
    name: Option<String>,
    scenario: Result<Scenario>,
    pace: Pace,
    behind: SignedDuration,
    choice: Choice,
    definitions: Vec<CrdSet>,
    observed: Observed,
    has_nodes: bool,
    has_endpoints: bool,
    is_installed: bool,
}

/// The choice of a control plane.
enum Choice {
    /// A part of the shared control plane if the test bed has a name, else a control plane of its own.
    ByName,
    Own,
    Given(Box<ControlPlane>),
}

/// The objects that become Nodes in the cluster.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Observed {
    NodeClaims,
    /// NodeClaims and the Machines of Cluster API.
    Machines,
    /// NodeClaims and flex machines.
    Flex,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            name: None,
            scenario: Ok(Scenario::default()),
            pace: Pace::Real,
            behind: SignedDuration::ZERO,
            choice: Choice::ByName,
            definitions: vec![CrdSet::KarpenterAzure],
            observed: Observed::NodeClaims,
            has_nodes: true,
            has_endpoints: false,
            is_installed: true,
        }
    }
}

impl Builder {
    /// Uses a part of the control plane that all tests of a program share: a namespace, a class and a pool of
    /// this name, and claims and Nodes whose names begin with it.
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }

    /// Like [`Self::named`], on a control plane of its own, for a test that would disturb others.
    pub fn own_control_plane(mut self) -> Self {
        self.choice = Choice::Own;
        self
    }

    /// Uses this control plane, which already has the definitions of other projects.
    pub fn on(mut self, control_plane: ControlPlane) -> Self {
        self.choice = Choice::Given(Box::new(control_plane));
        self
    }

    /// Sets the scenario: the contents of Azure, and the behaviour of VMs.
    pub fn scenario(mut self, text: &str) -> Self {
        self.scenario = scenario::parse("the test's", text).map_err(Into::into);
        self
    }

    /// Sets the scenario from a file.
    pub fn scenario_file(mut self, path: &Path) -> Self {
        self.scenario = scenario::load(path).map_err(Into::into);
        self
    }

    /// Sets how Azure's clock moves, which is the controllers' clock too. By default the clock follows the
    /// wall clock, plus all jumps.
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Starts Azure's clock this much behind the wall clock, with which the API server stamps objects: so
    /// objects do not look old while minutes pass in Azure.
    pub fn behind(mut self, behind: SignedDuration) -> Self {
        self.behind = behind;
        self
    }

    /// Installs these definitions instead of Karpenter's.
    pub fn definitions(mut self, definitions: &[CrdSet]) -> Self {
        self.definitions = definitions.to_vec();
        self
    }

    /// Installs Cluster API's definitions as well; controllers observe the Machines in the namespace with the
    /// test bed's name.
    pub fn machines(mut self) -> Self {
        self.observed = Observed::Machines;
        self.definitions = WITH_MACHINES.to_vec();
        self
    }

    /// Installs the definitions of flex machines as well, on a control plane of its own: a flex controller
    /// runs the machines of the whole cluster.
    pub fn flex(mut self) -> Self {
        self.observed = Observed::Flex;
        self
    }

    /// Creates no Nodes for VMs that join.
    pub fn without_nodes(mut self) -> Self {
        self.has_nodes = false;
        self
    }

    /// Lets other processes reach Azure, and VMs run programs.
    pub fn endpoints(mut self) -> Self {
        self.has_endpoints = true;
        self
    }

    /// Installs neither bringup's definitions nor the controller's namespace.
    pub fn not_installed(mut self) -> Self {
        self.is_installed = false;
        self
    }

    /// Starts the test bed.
    pub async fn start(self) -> Result<TestBed> {
        Box::pin(self.launch()).await
    }

    async fn launch(self) -> Result<TestBed> {
        let start = Timestamp::now() - self.behind;
        // A clock that does not follow the wall clock starts at the scenario's start.
        let scenario = Scenario { start, ..self.scenario.context("read the scenario")? };
        let azure = Simulator::new(scenario, self.pace, start);
        let is_shared = self.name.is_some() && self.observed != Observed::Flex;
        let control_plane = match self.choice {
            Choice::Given(given) => {
                given.install_definitions([report::definition()]).await?;
                Plane::Own(given)
            }
            Choice::ByName if is_shared && self.observed == Observed::Machines => {
                Plane::Shared(shared_with_machines().await?)
            }
            Choice::ByName if is_shared => Plane::Shared(shared().await?),
            _ if self.is_installed => Plane::own(self::control_plane(&self.definitions).await?),
            _ => {
                let builder = ControlPlane::builder().crds(self.definitions.iter().copied());
                Plane::own(builder.start().await.context("start the control plane")?)
            }
        };
        let plane = control_plane.get();
        let client = plane.client();
        if self.observed == Observed::Flex {
            plane.install_definitions(flex::definitions()).await?;
        }
        let (namespace, class, prefix) = match &self.name {
            None => (NAMESPACE.to_owned(), "AKSNodeClass".to_owned(), String::new()),
            Some(name) => {
                (format!("bringup-{name}"), format!("Class{name}"), format!("aks-{name}-"))
            }
        };
        if self.is_installed {
            create_namespace(&client, &namespace).await?;
        }
        let mut settings = Settings::new(&namespace, "test-0");
        settings.scopes = crate::scopes();
        let karpenter = StandInKarpenter::new(client.clone(), azure.clone(), &class);
        let group = "karpenter.azure.com".to_owned();
        settings.classes = vec![NodeClassKind { group, kind: class }];
        if let Some(name) = &self.name {
            if self.observed == Observed::Machines {
                create_namespace(&client, name).await?;
                settings.machines = true;
                settings.only_namespace = Some(name.clone());
            } else if !self.definitions.is_empty() {
                karpenter.create_pool(name).await?;
            }
        }
        let nodes =
            self.has_nodes.then(|| NodeFollower::start(azure.clone(), client.clone(), &prefix));
        let endpoints = if self.has_endpoints {
            Some(Endpoints::start(&azure, plane.directory()).await?)
        } else {
            None
        };
        let name = self.name.unwrap_or_else(|| "default".to_owned());
        Ok(TestBed {
            client,
            azure,
            karpenter,
            settings,
            name,
            control_plane,
            endpoints,
            _nodes: nodes,
        })
    }
}

/// A control plane with these definitions and the definition of reports.
pub(super) async fn control_plane(definitions: &[CrdSet]) -> Result<ControlPlane> {
    let builder = ControlPlane::builder().crds(definitions.iter().copied());
    let control_plane = builder.start().await.context("start the control plane")?;
    control_plane.install_definitions([report::definition()]).await?;
    Ok(control_plane)
}

async fn create_namespace(client: &Client, name: &str) -> Result<()> {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &namespace).await.context("create the namespace")?;
    Ok(())
}
