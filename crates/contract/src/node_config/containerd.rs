//! The configuration of containerd.

use super::Configuration;
use super::derived::{at_least, is_kubenet};
use super::environment::ContainerdSchema;
use super::toml_text::{Table, Toml};

/// The template of kubenet's network configuration, which containerd fills in.
pub(super) const KUBENET_TEMPLATE: &str = r#"{
  "cniVersion": "0.3.1",
  "name": "kubenet",
  "plugins": [{
    "type": "bridge",
    "bridge": "cbr0",
    "mtu": 1500,
    "addIf": "eth0",
    "isGateway": true,
    "ipMasq": false,
    "promiscMode": true,
    "hairpinMode": false,
    "ipam": {
      "type": "host-local",
      "ranges": [{{range $i, $range := .PodCIDRRanges}}{{if $i}}, {{end}}[{"subnet": "{{$range}}"}]{{end}}],
      "routes": [{{range $i, $route := .Routes}}{{if $i}}, {{end}}{"dst": "{{$route}}"}{{end}}]
    }
  },
  {
    "type": "portmap",
    "capabilities": {"portMappings": true},
    "externalSetMarkChain": "KUBE-MARK-MASQ"
  }]
}
"#;

/// The single CRI plugin of old containerd versions.
const CRI: &str = "io.containerd.grpc.v1.cri";
/// The plugin for images, which replaces a part of [`CRI`] in newer versions.
const IMAGES: &str = "io.containerd.cri.v1.images";
const RUNTIME: &str = "io.containerd.cri.v1.runtime";

const RUNC: &str = "io.containerd.runc.v2";
const NVIDIA: &str = "nvidia-container-runtime";

/// The scripts get both variants and choose one, because tags of the VM can disable the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    Gpu,
    NoGpu,
}

pub(super) fn config(config: &Configuration, schema: ContainerdSchema, variant: Variant) -> String {
    let (images, runtime) = match schema {
        ContainerdSchema::A => (CRI, CRI),
        ContainerdSchema::B => (IMAGES, RUNTIME),
    };
    let mut root = Table::default();
    root.set("version", 2).set("oom_score", -999);
    let directory = &config.kubelet_config().container_data_dir;
    if !directory.is_empty() {
        root.set("root", directory.as_str());
    }
    root.at(&["metrics"]).set("address", "0.0.0.0:10257");
    let pause = config.kube_binary_config().pod_infra_container_image_url.as_str();
    match schema {
        ContainerdSchema::A => {
            root.at(&["plugins", CRI]).set("sandbox_image", pause);
            if variant == Variant::Gpu {
                root.at(&["plugins", CRI]).set("enable_cdi", true);
            }
        }
        ContainerdSchema::B => {
            root.at(&["plugins", IMAGES, "pinned_images"]).set("sandbox", pause);
        }
    }
    let registry = root.at(&["plugins", images, "registry"]);
    registry.at(&["headers"]).set("X-Meta-Source-Client", ["azure/aks"]);
    if at_least(&config.kubernetes_version, [1, 22, 0]) {
        registry.set("config_path", "/etc/containerd/certs.d");
    }
    runtimes(root.at(&["plugins", runtime, "containerd"]), config, schema, variant);
    if is_kubenet(config) {
        root.at(&["plugins", runtime, "cni"])
            .set("bin_dir", "/opt/cni/bin")
            .set("conf_dir", "/etc/cni/net.d")
            .set("conf_template", "/etc/containerd/kubenet_template.conf");
    }
    let snapshots = match schema {
        ContainerdSchema::A => root.at(&["plugins", CRI, "containerd"]),
        ContainerdSchema::B => root.at(&["plugins", IMAGES]),
    };
    if config.is_kata {
        snapshots.set("snapshotter", "erofs").set("disable_snapshot_annotations", false);
    }
    // Both settings can apply together: pods in VMs name their own snapshotter, the others can stream.
    if config.enable_artifact_streaming {
        snapshots.set("snapshotter", "overlaybd").set("disable_snapshot_annotations", false);
        snapshot_plugin(&mut root, "overlaybd", "/run/overlaybd-snapshotter/overlaybd.sock");
    }
    if config.is_kata {
        kata(&mut root);
    }
    root.text()
}

fn runtimes(table: &mut Table, config: &Configuration, schema: ContainerdSchema, variant: Variant) {
    let gpu = variant == Variant::Gpu && config.gpu_config().enable_nvidia == Some(true);
    let name = if gpu { NVIDIA } else { "runc" };
    let program = format!("/usr/bin/{name}");
    table.set("default_runtime_name", name);
    for runtime in [name, "untrusted"] {
        table.at(&["runtimes", runtime]).set("runtime_type", RUNC);
        table.at(&["runtimes", runtime, "options"]).set("BinaryName", program.as_str());
    }
    let systemd = match schema {
        ContainerdSchema::A => config.needs_cgroupv2 == Some(true),
        ContainerdSchema::B => true,
    };
    if systemd {
        table.at(&["runtimes", name, "options"]).set("SystemdCgroup", true);
    }
}

/// The runtimes for pods in VMs. In both schemas, containerd reads them under the old name of the plugin.
fn kata(root: &mut Table) {
    let runtimes = root.at(&["plugins", CRI, "containerd", "runtimes"]);
    runtimes
        .at(&["kata"])
        .set("runtime_type", "io.containerd.kata.v2")
        .set("privileged_without_host_devices", true)
        .at(&["options"])
        .set("ConfigPath", "/usr/share/defaults/kata-containers/configuration.toml");
    runtimes
        .at(&["kata-cc"])
        .set("snapshotter", "tardev")
        .set("runtime_type", "io.containerd.kata-cc.v2")
        .set("privileged_without_host_devices", true)
        .set("pod_annotations", ["io.katacontainers.*"])
        .at(&["options"])
        .set(
            "ConfigPath",
            "/opt/confidential-containers/share/defaults/kata-containers/configuration-clh-snp.toml",
        );
    snapshot_plugin(root, "tardev", "/run/containerd/tardev-snapshotter.sock");
    root.at(&["plugins", "io.containerd.service.v1.diff-service"])
        .set("default", ["erofs", "walking"]);
    root.at(&["plugins", "io.containerd.differ.v1.erofs"])
        .set("mkfs_options", ["-T0", "--mkfs-time", "--sort=none"]);
}

fn snapshot_plugin(root: &mut Table, name: &str, address: &str) {
    root.at(&["proxy_plugins", name]).set("type", "snapshot").set("address", Toml::from(address));
}
