// SPDX-License-Identifier: Apache-2.0
//! Works for a while under Pyroscope's SDK for Rust. Arguments: endpoint, service, seconds.

use pyroscope::backend::{pprof_backend, BackendConfig, PprofConfig};
use pyroscope::pyroscope::PyroscopeAgentBuilder;
use std::time::{Duration, Instant};

const SAMPLES_PER_SECOND: u32 = 100;

#[inline(never)]
fn work(end: Instant) -> f64 {
    let mut sum = 0.0;
    while Instant::now() < end {
        for i in 0..10_000 {
            sum += std::hint::black_box(f64::from(i)).sin();
        }
    }
    sum
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, endpoint, service, seconds] = arguments.as_slice() else {
        return Err("expected an endpoint, a service and a number of seconds".into());
    };
    let agent = PyroscopeAgentBuilder::new(
        endpoint,
        service,
        SAMPLES_PER_SECOND,
        "pyroscope-rs",
        env!("CARGO_PKG_VERSION"),
        pprof_backend(PprofConfig::default(), BackendConfig::default()),
    )
    .tags(vec![("region", "eu")])
    .build()?;
    let running = agent.start()?;
    std::hint::black_box(work(Instant::now() + Duration::from_secs(seconds.parse()?)));
    running.stop()?.shutdown();
    Ok(())
}
