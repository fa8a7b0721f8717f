//! The time in which 10,000 VMs answer reads of their instance view, in process.

use std::hint::black_box;

use bringup_azure_sim::scenario::{Quirks, Scenario};
use bringup_azure_sim::simulator::Simulator;
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use http::Request;
use serde_json::json;

const VMS: usize = 10_000;
const GROUP: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines";

fn populated() -> Simulator {
    let scenario = Scenario {
        // Rate limits would distort the measurement.
        quirks: Quirks { throttling: false, ..Quirks::default() },
        ..Scenario::default()
    };
    let simulator = Simulator::manual(scenario);
    for index in 0..VMS {
        let body = json!({
            "location": "eastus",
            "properties": {
                "hardwareProfile": { "vmSize": "Standard_D4s_v5" },
                "osProfile": { "computerName": format!("vm{index}"), "adminPassword": "x" },
            },
        });
        simulator.answer(&request("PUT", &format!("vm{index}"), body.to_string().into()));
        let extension = json!({ "properties": { "publisher": "Microsoft.Azure.Extensions", "type": "CustomScript" } });
        simulator.answer(&request(
            "PUT",
            &format!("vm{index}/extensions/cse"),
            extension.to_string().into(),
        ));
    }
    simulator.advance(std::time::Duration::from_mins(30));
    assert_eq!(simulator.with(|azure| azure.nodes().len()), VMS, "all have joined");
    simulator
}

fn request(method: &str, path: &str, body: Bytes) -> Request<Bytes> {
    Request::builder()
        .method(method)
        .uri(format!("{GROUP}/{path}?api-version=2024-11-01"))
        .header("authorization", "Bearer bench")
        .body(body)
        .expect("a valid request")
}

fn read_instance_views(criterion: &mut Criterion) {
    let simulator = populated();
    let requests: Vec<_> = (0..VMS)
        .map(|index| request("GET", &format!("vm{index}/instanceView"), Bytes::new()))
        .collect();
    let mut group = criterion.benchmark_group("azure-sim");
    group.sample_size(10).throughput(Throughput::Elements(VMS as u64));
    group.bench_function("instance view reads over 10,000 VMs", |bencher| {
        bencher.iter(|| {
            for request in &requests {
                black_box(simulator.answer(request));
            }
        });
    });
    group.finish();
}

criterion_group!(benches, read_instance_views);
criterion_main!(benches);
