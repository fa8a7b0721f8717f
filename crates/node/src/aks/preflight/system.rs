//! The disk and the image.

use bringup_contract::Cause;
use serde_json::json;

use super::{Finding, State, Subject};
use crate::host::linux::store;

/// With less free space than this many bytes or inodes, nothing can be written.
const LEAST_BYTES: u64 = 16 << 20;
const LEAST_INODES: u64 = 100;
/// With less free space than this many bytes, a download may fail.
const FEW_BYTES: u64 = 2 << 30;

pub(super) fn disk(subject: &Subject) -> Finding {
    let volumes: Vec<(&str, u64, u64)> = ["/", "/var", "/opt", "/run"]
        .into_iter()
        .filter_map(|place| {
            let volume = rustix::fs::statvfs(subject.root.at(place)).ok()?;
            // Some file systems do not count inodes.
            let inodes = if volume.f_files == 0 { u64::MAX } else { volume.f_favail };
            Some((place, volume.f_bavail.saturating_mul(volume.f_frsize), inodes))
        })
        .collect();
    let (state, what) = judge(&volumes);
    let data = volumes.iter().map(
        |(place, bytes, inodes)| json!({"path": place, "bytesFree": bytes, "inodesFree": inodes}),
    );
    let finding = Finding::new("disk", state, &what, data.collect());
    if state == State::Ok { finding } else { finding.because(Cause::DiskFull) }
}

fn judge(volumes: &[(&str, u64, u64)]) -> (State, String) {
    let full = volumes
        .iter()
        .find(|(_, bytes, inodes)| *bytes < LEAST_BYTES || *inodes < LEAST_INODES)
        .map(|volume| (State::Fatal, volume));
    // /run is in memory; more than two gigabytes are unusual there.
    let few = || {
        let mut disks = volumes.iter().filter(|(place, _, _)| *place != "/run");
        disks.find(|(_, bytes, _)| *bytes < FEW_BYTES).map(|volume| (State::Warn, volume))
    };
    match full.or_else(few) {
        Some((state, (place, bytes, inodes))) => {
            (state, format!("{place} has {} MiB and {inodes} inodes left", bytes >> 20))
        }
        None => (State::Ok, "there is room".to_owned()),
    }
}

pub(super) fn image(subject: &Subject) -> Finding {
    let os_release = store::head(&subject.root.os_release(), 16 * 1024).unwrap_or_default();
    let name = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    let name = name.map(|name| name.trim_matches('"')).unwrap_or_default();
    let data = json!({"osRelease": os_release});
    if subject.root.image_marker().exists() {
        return Finding::new("image", State::Ok, name, data);
    }
    let detail = format!("{name}: /opt/azure/vhd-install.complete is absent");
    Finding::new("image", State::Warn, &detail, data).because(Cause::ImageContractDrift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_fatal_and_a_small_one_is_odd() {
        let state = |bytes, inodes| judge(&[("/", 9 << 30, 9_999), ("/var", bytes, inodes)]).0;
        assert_eq!(state(9 << 30, 9_999), State::Ok);
        assert_eq!(state(1 << 30, 9_999), State::Warn);
        assert_eq!(state(1 << 20, 9_999), State::Fatal);
        assert_eq!(state(9 << 30, 5), State::Fatal);
        assert_eq!(judge(&[("/run", 1 << 30, 9_999)]).0, State::Ok);
    }
}
