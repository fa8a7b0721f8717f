//! A serial console: two boots, the noise of a kernel, colours, carriage returns, a tail of NUL.

use bringup_diagnosis::{Diagnosis, Evidence, Piece, Source, diagnose};

/// What a boot says before cloud-init. A kernel that is well speaks of errors, too.
const BOOTS: &[&str] = &[
    "[    0.000000] Linux version 6.8.0-1021-azure (buildd@lcy02-amd64-051) (gcc 13.2.0) #25-Ubuntu SMP",
    "[    0.000000] Command line: BOOT_IMAGE=/boot/vmlinuz-6.8.0-1021-azure root=PARTUUID=4f1a ro console=ttyS0 panic=-1",
    "[    0.231190] ACPI BIOS Error (bug): Could not resolve symbol [\\_SB.PCI0], AE_NOT_FOUND",
    "[    0.602114] RAS: Correctable Errors collector initialized.",
    "[    1.114027] EXT4-fs (sda1): mounted filesystem with ordered data mode. Quota mode: none.",
    "\u{1b}[0;32m[  OK  ]\u{1b}[0m Reached target \u{1b}[0;1;39mlocal-fs.target\u{1b}[0m - Local File Systems.",
    "[    4.200000] cloud-init[611]: Cloud-init v. 25.1 running 'init-local' at Mon, 02 Mar 2026 14:30:35 +0000. Up 4.20 seconds.",
];
/// What cloud-init says before it runs the user's commands.
const STAGES: &[&str] = &[
    "[    6.104411] cloud-init[704]: Cloud-init v. 25.1 running 'init' at Mon, 02 Mar 2026 14:30:37 +0000. Up 6.10 seconds.",
    "[    6.110027] cloud-init[704]: ci-info: |  0   |  0.0.0.0  |  10.1.0.1  |  0.0.0.0  |  eth0  |  UG  |",
    "\u{1b}[0;32m[  OK  ]\u{1b}[0m Started \u{1b}[0;1;39mcontainerd.service\u{1b}[0m - containerd container runtime.",
    "[   12.420993] cloud-init[1045]: Cloud-init v. 25.1 running 'modules:final' at Mon, 02 Mar 2026 14:30:43 +0000. Up 12.42 seconds.",
    "[   13.000871] audit: type=1400 audit(1772461844.001:12): apparmor=\"STATUS\" operation=\"profile_load\" name=\"runc\"",
];
/// The kernel goes on talking while a script runs.
const NOISE: &str = "[   62.771904] hv_balloon: Max. dynamic memory size: 8192 MB";
const FINISHED: &str = "[   72.500000] cloud-init[1045]: Cloud-init v. 25.1 finished at Mon, 02 Mar 2026 14:31:42 +0000. Datasource DataSourceAzure [seed=/dev/sr0].  Up 72.50 seconds";

/// A machine that was reset once before cloud-init came far, and in whose second boot these lines
/// stand before cloud-init ends.
pub(crate) fn boot(lines: &[&str]) -> Vec<u8> {
    raw(&[BOOTS, BOOTS, STAGES, lines, &[NOISE, FINISHED]].concat())
}

/// A machine's only boot, up to the end of cloud-init.
pub(crate) fn only_boot(lines: &[&str]) -> Vec<u8> {
    raw(&[BOOTS, STAGES, lines, &[NOISE, FINISHED]].concat())
}

/// A boot that is not over yet, or of which the end was not shown.
pub(crate) fn open_boot(lines: &[&str]) -> Vec<u8> {
    raw(&[BOOTS, STAGES, lines, &[NOISE]].concat())
}

/// Two boots, each with its own lines; cloud-init ends in the second one.
pub(crate) fn two_boots(first: &[&str], second: &[&str]) -> Vec<u8> {
    raw(&[BOOTS, STAGES, first, BOOTS, STAGES, second, &[FINISHED]].concat())
}

/// Lines as the console stores them.
pub(crate) fn raw(lines: &[&str]) -> Vec<u8> {
    let mut bytes = lines.join("\r\n").into_bytes();
    bytes.extend(b"\r\n");
    bytes.extend([0; 4096]);
    bytes
}

/// What is made of the bytes of a console.
pub(crate) fn diagnosed(bytes: &[u8]) -> Diagnosis {
    let text = String::from_utf8_lossy(bytes);
    let pieces = vec![Piece::seen(Source::SerialLog, "serial log", &text)];
    diagnose(&Evidence { pieces, ..Evidence::default() })
}
