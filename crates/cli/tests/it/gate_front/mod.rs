//! `weir gate` in front of misbehaving callers: neither the upstream nor other callers are affected.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the callers' clock is not the gate's")]

mod bytes;
mod grpc;
mod memory;
mod paths;
mod resends;
mod uploads;

use std::time::Duration;

use weir_testing::{Serving, Weir};

/// Timeout of waits; far above all expected times.
const PATIENCE: Duration = Duration::from_secs(120);

/// A gateway with this configuration.
fn configured(text: &str) -> Serving {
    configured_with(text, &[])
}

fn configured_with(text: &str, more: &[&str]) -> Serving {
    let weir = Weir::new();
    weir.write("gate.toml", text);
    Serving::gate_in(weir, &[&["--config", "gate.toml"], more].concat())
}

/// A configuration with one upstream and one policy for all paths, each with extra lines.
fn to(url: &str, upstream: &str, policy: &str) -> String {
    format!(
        "[upstreams.backend]\nurls = [\"{url}\"]\n{upstream}\n[policies.all]\n{policy}\n[[routes]]\n\
         match = {{ path = \"/{{*rest}}\" }}\npolicy = \"all\"\n"
    )
}
