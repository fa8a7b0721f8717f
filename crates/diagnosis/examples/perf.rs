use std::time::Instant;
fn main() {
    let line = "[   13.261278] cloud-init[1899]: + some trace of a script with words and numbers 12345 in it, nothing special here\n";
    let big = line.repeat(8 * 1024 * 1024 / line.len());
    let t = Instant::now();
    let small="failed to execute command: command terminated with exit status=1\n[stdout]\n{ \"ExitCode\": \"211\", \"Output\": \"".to_owned()+&"+ local path=/opt/azure/containers\\n".repeat(200)+"timeout: failed to run command 'oras': No such file or directory\\n\", \"Error\": \"\" }\n\n[stderr]\n";
    let e = bringup_diagnosis::Evidence::of_text(&small);
    println!("first small: redact {:?} ({} bytes)", t.elapsed(), small.len());
    let t = Instant::now();
    bringup_diagnosis::diagnose(&e);
    println!("first diagnose {:?}", t.elapsed());
    let t = Instant::now();
    for _ in 0..100 {
        let e = bringup_diagnosis::Evidence::of_text(&small);
        std::hint::black_box(e);
    }
    println!("small redact {:?}", t.elapsed() / 100);
    let t = Instant::now();
    for _ in 0..100 {
        std::hint::black_box(bringup_diagnosis::diagnose(&e));
    }
    println!("small diagnose {:?}", t.elapsed() / 100);
    let t = Instant::now();
    let e = bringup_diagnosis::Evidence::of_text(&big);
    println!("big redact {:?}", t.elapsed());
    let t = Instant::now();
    bringup_diagnosis::diagnose(&e);
    println!("big diagnose {:?}", t.elapsed());
    let t = Instant::now();
    std::hint::black_box(bringup_contract::cse::read(&big));
    println!("cse {:?}", t.elapsed());
    let t = Instant::now();
    std::hint::black_box(bringup_contract::arm::stated(&big));
    println!("arm {:?}", t.elapsed());
    let t = Instant::now();
    std::hint::black_box(bringup_contract::ImageVersion::find(&big));
    println!("image {:?}", t.elapsed());
    let t = Instant::now();
    let p = bringup_diagnosis::matcher::pages(&e);
    println!("pages {:?}", t.elapsed());
    let t = Instant::now();
    std::hint::black_box(bringup_diagnosis::matcher::find(&p, None));
    println!("find {:?}", t.elapsed());
}
