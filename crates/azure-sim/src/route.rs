//! The resource that a path addresses. ARM ignores the case of every segment.

use std::fmt;

use http::Method;

/// The ID of a resource. An ID preserves the casing of its first PUT and compares without regard to case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) subscription: String,
    pub(crate) group: String,
    /// Provider, types and names, such as `Microsoft.Compute/virtualMachines/a`.
    pub(crate) tail: String,
}

/// An [`Id`] in lower case, used as a map key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(pub(crate) String);

impl Id {
    pub(crate) fn new(subscription: &str, group: &str, tail: impl Into<String>) -> Self {
        Self { subscription: subscription.to_owned(), group: group.to_owned(), tail: tail.into() }
    }

    pub(crate) fn key(&self) -> Key {
        Key(self.to_string().to_ascii_lowercase())
    }

    pub(crate) fn name(&self) -> &str {
        self.tail.rsplit('/').next().unwrap_or_default()
    }

    /// The id of another resource in the same group.
    pub(crate) fn beside(&self, tail: impl Into<String>) -> Self {
        Self::new(&self.subscription, &self.group, tail)
    }

    /// Parses an id from a request body.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let segments: Vec<&str> = text.trim_matches('/').split('/').collect();
        match segments.as_slice() {
            [subscriptions, subscription, groups, group, providers, tail @ ..]
                if subscriptions.eq_ignore_ascii_case("subscriptions")
                    && groups.eq_ignore_ascii_case("resourceGroups")
                    && providers.eq_ignore_ascii_case("providers")
                    && tail.len() >= 3 =>
            {
                Some(Self::new(subscription, group, tail.join("/")))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { subscription, group, tail } = self;
        write!(formatter, "/subscriptions/{subscription}/resourceGroups/{group}/providers/{tail}")
    }
}

/// The scope of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) subscription: String,
    pub(crate) group: Option<String>,
}

impl Scope {
    pub(crate) fn holds(&self, id: &Id) -> bool {
        id.subscription.eq_ignore_ascii_case(&self.subscription)
            && self.group.as_deref().is_none_or(|group| id.group.eq_ignore_ascii_case(group))
    }
}

/// The target of a path. `Vm` is also an instance of a uniform scale set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Vm(Id),
    VmInstanceView(Id),
    Vms(Scope),
    Extension(Id, String),
    Extensions(Id),
    BootDiagnostics(Id),
    RunCommandAction(Id),
    Restart(Id),
    RunCommand(Id, String),
    RunCommands(Id),
    ScaleSet(Id),
    ScaleSetInstanceView(Id),
    ScaleSetVms(Id),
    ScaleSets(Scope),
    Nic(Id),
    Nics(Scope),
    PublicIp(Id),
    PublicIps(Scope),
    Disk(Id),
    Disks(Scope),
    Subnet(Id),
    VirtualNetwork(Id),
    ImageVersions(Vec<String>),
    Skus,
    Usages { subscription: String, location: String },
    Operation { id: String, results: bool },
    ActivityLog(String),
    ResourceGraph,
    Machine(Id),
    Machines(Id),
    ResourceGroup(Scope),
    Blob(String),
}

impl Target {
    /// The target of the path, if it has one.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let names: Vec<&str> = path.trim_matches('/').split('/').collect();
        let lower: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        match lower.as_slice() {
            ["subscriptions", _, "resourcegroups", _] => Some(Self::ResourceGroup(Scope {
                subscription: names[1].to_owned(),
                group: Some(names[3].to_owned()),
            })),
            ["subscriptions", _, "resourcegroups", _, "providers", tail @ ..] => {
                let scope =
                    Scope { subscription: names[1].to_owned(), group: Some(names[3].to_owned()) };
                Self::in_group(scope, &names[5..], tail)
            }
            ["subscriptions", _, "providers", tail @ ..] => {
                Self::in_subscription(names[1], &names[3..], tail)
            }
            ["providers", "microsoft.resourcegraph", "resources"] => Some(Self::ResourceGraph),
            ["bootdiagnostics", _, _] => Some(Self::Blob(lower[1..].join("/"))),
            _ => None,
        }
    }

    fn in_group(scope: Scope, names: &[&str], lower: &[&str]) -> Option<Self> {
        let group = scope.group.clone().unwrap_or_default();
        let id = |count: usize| Id::new(&scope.subscription, &group, names[..count].join("/"));
        Some(match lower {
            ["microsoft.compute", "virtualmachines", rest @ ..] => match rest {
                [] => Self::Vms(scope),
                [_] => Self::Vm(id(3)),
                [_, rest @ ..] => return Self::under_vm(id(3), &names[3..], rest),
            },
            ["microsoft.compute", "virtualmachinescalesets", rest @ ..] => match rest {
                [] => Self::ScaleSets(scope),
                [_] => Self::ScaleSet(id(3)),
                [_, "instanceview"] => Self::ScaleSetInstanceView(id(3)),
                [_, "virtualmachines"] => Self::ScaleSetVms(id(3)),
                [_, "virtualmachines", _] => Self::Vm(id(5)),
                [_, "virtualmachines", _, rest @ ..] => {
                    return Self::under_vm(id(5), &names[5..], rest);
                }
                _ => return None,
            },
            ["microsoft.compute", "disks"] => Self::Disks(scope),
            ["microsoft.compute", "disks", _] => Self::Disk(id(3)),
            ["microsoft.network", "networkinterfaces"] => Self::Nics(scope),
            ["microsoft.network", "networkinterfaces", _] => Self::Nic(id(3)),
            ["microsoft.network", "publicipaddresses"] => Self::PublicIps(scope),
            ["microsoft.network", "publicipaddresses", _] => Self::PublicIp(id(3)),
            ["microsoft.network", "virtualnetworks", _] => Self::VirtualNetwork(id(3)),
            ["microsoft.network", "virtualnetworks", _, "subnets", _] => Self::Subnet(id(5)),
            ["microsoft.containerservice", "managedclusters", _, "agentpools", _, "machines"] => {
                Self::Machines(id(5))
            }
            [
                "microsoft.containerservice",
                "managedclusters",
                _,
                "agentpools",
                _,
                "machines",
                _,
            ] => Self::Machine(id(7)),
            _ => return None,
        })
    }

    fn under_vm(vm: Id, names: &[&str], lower: &[&str]) -> Option<Self> {
        Some(match lower {
            ["instanceview"] => Self::VmInstanceView(vm),
            ["extensions"] => Self::Extensions(vm),
            ["extensions", _] => Self::Extension(vm, names[1].to_owned()),
            ["retrievebootdiagnosticsdata"] => Self::BootDiagnostics(vm),
            ["runcommand"] => Self::RunCommandAction(vm),
            ["restart"] => Self::Restart(vm),
            ["runcommands"] => Self::RunCommands(vm),
            ["runcommands", _] => Self::RunCommand(vm, names[1].to_owned()),
            _ => return None,
        })
    }

    fn in_subscription(subscription: &str, names: &[&str], lower: &[&str]) -> Option<Self> {
        let scope = || Scope { subscription: subscription.to_owned(), group: None };
        Some(match lower {
            ["microsoft.compute", "virtualmachines"] => Self::Vms(scope()),
            ["microsoft.compute", "virtualmachinescalesets"] => Self::ScaleSets(scope()),
            ["microsoft.compute", "disks"] => Self::Disks(scope()),
            ["microsoft.compute", "skus"] => Self::Skus,
            ["microsoft.network", "networkinterfaces"] => Self::Nics(scope()),
            ["microsoft.network", "publicipaddresses"] => Self::PublicIps(scope()),
            ["microsoft.compute", "locations", _, "usages"] => Self::Usages {
                subscription: subscription.to_owned(),
                location: names[2].to_owned(),
            },
            [
                "microsoft.compute",
                "locations",
                _,
                "publishers",
                publisher,
                "artifacttypes",
                "vmimage",
                "offers",
                offer,
                "skus",
                sku,
                "versions",
            ] => Self::ImageVersions([publisher, offer, sku].map(|part| (*part).to_owned()).into()),
            [_, "locations", _, which @ ("operations" | "operationresults"), _] => {
                Self::Operation { id: names[4].to_owned(), results: *which == "operationresults" }
            }
            ["microsoft.insights", "eventtypes", "management", "values"] => {
                Self::ActivityLog(subscription.to_owned())
            }
            _ => return None,
        })
    }

    /// The name of a kind of call, used for counting.
    pub(crate) fn call(&self, method: &Method) -> &'static str {
        let verb = |put, get, delete| match method.as_str() {
            "PUT" => put,
            "DELETE" => delete,
            _ => get,
        };
        match self {
            Self::Vm(_) => verb("PutVm", "GetVm", "DeleteVm"),
            Self::VmInstanceView(_) => "GetInstanceView",
            Self::Vms(_) => "ListVms",
            Self::Extension(..) => verb("PutExtension", "GetExtension", "DeleteExtension"),
            Self::Extensions(_) => "ListExtensions",
            Self::BootDiagnostics(_) => "RetrieveBootDiagnostics",
            Self::RunCommandAction(_) => "RunCommand",
            Self::Restart(_) => "RestartVm",
            Self::RunCommands(_) => "ListRunCommands",
            Self::RunCommand(..) => verb("PutRunCommand", "GetRunCommand", "DeleteRunCommand"),
            Self::ScaleSet(_) => verb("PutScaleSet", "GetScaleSet", "DeleteScaleSet"),
            Self::ScaleSetInstanceView(_) => "GetScaleSetInstanceView",
            Self::ScaleSetVms(_) => "ListScaleSetVms",
            Self::ScaleSets(_) => "ListScaleSets",
            Self::Nic(_) => verb("PutNic", "GetNic", "DeleteNic"),
            Self::Nics(_) => "ListNics",
            Self::PublicIp(_) => verb("PutPublicIp", "GetPublicIp", "DeletePublicIp"),
            Self::PublicIps(_) => "ListPublicIps",
            Self::Disk(_) => verb("PutDisk", "GetDisk", "DeleteDisk"),
            Self::Disks(_) => "ListDisks",
            Self::Subnet(_) => "GetSubnet",
            Self::VirtualNetwork(_) => "GetVirtualNetwork",
            Self::ImageVersions(_) => "ListImageVersions",
            Self::Skus => "ListSkus",
            Self::Usages { .. } => "GetUsages",
            Self::Operation { .. } => "GetOperation",
            Self::ActivityLog(_) => "ListActivity",
            Self::ResourceGraph => "QueryResourceGraph",
            Self::Machine(_) => verb("PutMachine", "GetMachine", "DeleteMachine"),
            Self::Machines(_) => "ListMachines",
            Self::ResourceGroup(_) => {
                verb("PutResourceGroup", "GetResourceGroup", "DeleteResourceGroup")
            }
            Self::Blob(_) => "GetBlob",
        }
    }
}

/// Subscription and resource group of a path, if it has them.
pub(crate) fn place(path: &str) -> (Option<&str>, Option<&str>) {
    let mut segments = path.trim_matches('/').split('/');
    let mut after = |word: &str| {
        segments
            .next()
            .is_some_and(|segment| segment.eq_ignore_ascii_case(word))
            .then(|| segments.next())?
    };
    let subscription = after("subscriptions");
    let group = subscription.and_then(|_| after("resourceGroups"));
    (subscription, group)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: &str = "/subscriptions/s/resourceGroups/G/providers";

    #[test]
    fn segments_match_in_any_case_and_names_keep_their_case() {
        let path = format!(
            "{}/microsoft.COMPUTE/VirtualMachines/Vm-A/INSTANCEVIEW",
            GROUP.to_uppercase().replace("/S/", "/s/")
        );
        let Some(Target::VmInstanceView(id)) = Target::parse(&path) else { panic!("{path}") };
        assert_eq!(id.name(), "Vm-A");
        assert_eq!(id.group, "G");
    }

    #[test]
    fn an_instance_of_a_uniform_scale_set_is_a_vm() {
        let path = format!(
            "{GROUP}/Microsoft.Compute/virtualMachineScaleSets/set/virtualMachines/0/extensions/e"
        );
        let Some(Target::Extension(vm, name)) = Target::parse(&path) else { panic!("{path}") };
        assert_eq!((vm.name(), name.as_str()), ("0", "e"));
        assert_eq!(Id::parse(&vm.to_string()), Some(vm));
    }

    #[test]
    fn the_place_of_a_path_is_its_subscription_and_group() {
        assert_eq!(place("/Subscriptions/s/resourcegroups/g/x"), (Some("s"), Some("g")));
        assert_eq!(place("/subscriptions/s/providers/x"), (Some("s"), None));
        assert_eq!(place("/providers/x"), (None, None));
    }

    #[test]
    fn an_unknown_path_has_no_target() {
        for path in [
            "/",
            "/subscriptions",
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/x",
        ] {
            assert_eq!(Target::parse(path), None, "{path}");
        }
    }
}
