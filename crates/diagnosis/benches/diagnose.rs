//! How long a diagnosis takes, redaction included: an extension message of 8 KiB and a serial
//! log of 8 MiB.

use std::fmt::Write as _;
use std::hint::black_box;

use bringup_diagnosis::{Evidence, diagnose};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// An extension message whose result is a trace of a failing registry login.
fn message() -> String {
    let mut log = String::new();
    while log.len() < 7_000 {
        log.push_str("+ for i in $(seq 1 $retries)\\n++ timeout 60 oras repo ls registry.example --registry-config /etc/oras/config.yaml\\n+ output='timeout: failed to run command ‘oras’: No such file or directory'\\n+ '[' 127 -eq 0 ']'\\n");
    }
    format!(
        "failed to execute command: command terminated with exit status=1\n[stdout]\n{{ \"ExitCode\": \"211\", \"Output\": \"{log}+ exit 211\", \"Error\": \"\", \"ExecDuration\": \"18\", \"KernelStartTime\": \"Tue 2026-01-27 14:30:33 UTC\" }}\n\n[stderr]\n"
    )
}

/// A serial log: kernel noise, services, cloud-init, and at its end a join that fails.
fn serial_log() -> String {
    let mut log = String::with_capacity(8 * 1024 * 1024 + 512);
    let mut second = 0_u32;
    while log.len() < 8 * 1024 * 1024 {
        second += 1;
        let _ = write!(
            log,
            "[ {second:>5}.004711] systemd[1]: Started session-{second}.scope - Session {second} of User azureuser.\r\n\
             [ {second:>5}.118203] cloud-init[1102]: + local path=/opt/azure/containers/step-{second}\r\n\
             [ {second:>5}.902117] kernel: hv_netvsc 000d3a-1 eth0: VF slot {second} added\r\n"
        );
    }
    log.push_str("[ 99999.118203] cloud-init[1102]: error execution phase preflight: couldn't validate the identity of the API Server: could not find a JWS signature in the cluster-info ConfigMap for token ID \"uvwxyz\"\r\n");
    log
}

fn benches(criterion: &mut Criterion) {
    for (name, text) in
        [("extension message, 8 KiB", message()), ("serial log, 8 MiB", serial_log())]
    {
        let mut group = criterion.benchmark_group("diagnosis");
        group.sample_size(20).throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(diagnose(&Evidence::of_text(black_box(&text)))));
        });
        group.finish();
    }
}

criterion_group!(all, benches);
criterion_main!(all);
