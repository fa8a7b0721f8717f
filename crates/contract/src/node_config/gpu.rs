//! VM sizes with GPUs, and the drivers that they need.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Configuration;
use super::environment::{EnvironmentError, Host, refused};

/// Sizes with enclaves.
const SGX: &[&str] = &["Standard_DC2s", "Standard_DC4s"];
/// Sizes whose GPUs use one driver for graphics and computing.
const CONVERGED: &[&str] = &[
    "standard_nv6ads_a10_v5",
    "standard_nv12ads_a10_v5",
    "standard_nv18ads_a10_v5",
    "standard_nv36ads_a10_v5",
    "standard_nv72ads_a10_v5",
    "standard_nv36adms_a10_v5",
    "standard_nc8ads_a10_v4",
    "standard_nc16ads_a10_v4",
    "standard_nc32ads_a10_v4",
];
/// Sizes that need the newest driver for graphics and computing.
const GRID_V20: &[&str] = &[
    "standard_nc24lds_xl_rtxpro6000bse_v6",
    "standard_nc36ds_xl_rtxpro6000bse_v6",
    "standard_nc36lds_xl_rtxpro6000bse_v6",
    "standard_nc72ds_xl_rtxpro6000bse_v6",
    "standard_nc72lds_xl_rtxpro6000bse_v6",
    "standard_nc144ds_xl_rtxpro6000bse_v6",
    "standard_nc144lds_xl_rtxpro6000bse_v6",
    "standard_nc288ds_xl_rtxpro6000bse_v6",
    "standard_nc288lds_xl_rtxpro6000bse_v6",
    "standard_nc128ds_xl_rtxpro6000bse_v6",
    "standard_nc128lds_xl_rtxpro6000bse_v6",
    "standard_nc256ds_xl_rtxpro6000bse_v6",
    "standard_nc256lds_xl_rtxpro6000bse_v6",
    "standard_nc320ds_xl_rtxpro6000bse_v6",
    "standard_nc320lds_xl_rtxpro6000bse_v6",
];
/// Sizes whose GPUs are connected by a fabric.
const FABRIC: &[&str] = &[
    "standard_nd96asr_v4",
    "standard_nd112asr_a100_v4",
    "standard_nd120asr_a100_v4",
    "standard_nd96amsr_a100_v4",
    "standard_nd112amsr_a100_v4",
    "standard_nd120amsr_a100_v4",
    "standard_nd96ams_a100_v4",
    "standard_nd96ams_v4",
    "standard_nd46s_h100_v5",
    "standard_nd48s_h100_v5",
    "standard_nd50s_h100_v5",
    "standard_nd92is_h100_v5",
    "standard_nd96is_h100_v5",
    "standard_nd100is_h100_v5",
    "standard_nd92isr_h100_v5",
    "standard_nd96isr_h100_v5",
    "standard_nd100isr_h100_v5",
    "standard_nd96is_h200_v5",
    "standard_nd96isr_h200_v5",
    "standard_nd96isrf_h200_v5",
];

pub(super) fn has_sgx(size: &str) -> bool {
    SGX.contains(&size)
}

pub(super) fn needs_fabric_manager(size: &str) -> bool {
    listed(FABRIC, size)
}

fn listed(sizes: &[&str], size: &str) -> bool {
    sizes.iter().any(|listed| listed.eq_ignore_ascii_case(size))
}

/// The kinds of driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Driver {
    CudaLts,
    /// For the first generation of GPUs, with a version that no longer changes.
    Cuda,
    Grid,
    GridV20,
}

impl Driver {
    pub(super) fn of(size: &str) -> Self {
        let lower = size.to_ascii_lowercase();
        if listed(GRID_V20, size) {
            Self::GridV20
        } else if listed(CONVERGED, size) {
            Self::Grid
        } else if lower.starts_with("standard_nc") && !lower.contains("_v") {
            Self::Cuda
        } else {
            Self::CudaLts
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::CudaLts => "cuda-lts",
            Self::Cuda => "cuda",
            Self::Grid => "grid",
            Self::GridV20 => "grid-v20",
        }
    }
}

/// The version of a driver, and the suffix of its image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Versions {
    pub(super) driver: String,
    pub(super) image: String,
}

/// The driver to install. Only a node with GPUs needs one.
pub(super) fn versions(config: &Configuration, host: &Host) -> Result<Versions, EnvironmentError> {
    let driver = Driver::of(&config.vm_size);
    let found = match &host.components {
        Ok(components) => components.find(driver),
        Err(why) => Err(why.clone()),
    };
    match found {
        Ok(versions) => Ok(versions),
        Err(why) if needs_driver(config) => {
            Err(refused("GPU_DRIVER_VERSION", format!("failed to load GPU config: {why}")))
        }
        Err(_) => Ok(Versions::default()),
    }
}

pub(super) fn needs_driver(config: &Configuration) -> bool {
    let size = &config.vm_size;
    config.gpu_config().enable_nvidia == Some(true)
        || [CONVERGED, GRID_V20, FABRIC].iter().any(|sizes| listed(sizes, size))
}

/// The driver images that a node image contains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Components {
    images: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "GPUContainerImages", default)]
    images: Vec<Image>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    #[serde(rename = "downloadURL")]
    download_url: String,
    gpu_version: Latest,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Latest {
    latest_version: String,
}

impl Components {
    /// Reads `components.json`.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let file: File = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        let images = file.images.into_iter().map(|image| {
            let path = image.download_url.rsplit('/').next().unwrap_or_default();
            let name = path.split(':').next().unwrap_or_default();
            (name.to_owned(), image.gpu_version.latest_version)
        });
        Ok(Self { images: images.collect() })
    }

    fn find(&self, driver: Driver) -> Result<Versions, String> {
        let image = match driver {
            Driver::CudaLts | Driver::Cuda => "aks-gpu-cuda-lts",
            Driver::Grid => "aks-gpu-grid",
            Driver::GridV20 => "aks-gpu-grid-v20",
        };
        let latest = self.images.get(image).ok_or_else(|| format!("no image {image}"))?;
        let mut parts = latest.split('-');
        let (Some(version), Some(suffix), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(format!("the version of {image} has not two parts"));
        };
        let version = if driver == Driver::Cuda { "cuda-470.82.01" } else { version };
        Ok(Versions { driver: version.to_owned(), image: suffix.to_owned() })
    }
}
