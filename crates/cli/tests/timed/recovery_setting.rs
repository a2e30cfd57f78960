//! A service whose fate is known by construction, and tests of its recovery.
#![allow(clippy::panic, reason = "a test that cannot go on fails")]

use serde_json::Value;
use weir_testing::{Output, Weir};

/// 2 slots of 20 ms: 100/s. Requests whose callers have gone are served all the same.
pub(super) const SERVICE: [&str; 9] =
    ["work", "--mix", "good=1", "--delay", "20ms", "--slots", "2", "--max-queue", "100000"];

/// At 45/s, which with all retries is 135/s, and a spike that leaves 8 s of work to a service of 100/s. A stall of the host
/// for half a second leaves less work than the second after which clients give up.
pub(super) const RETRY_STORM: [&str; 6] = ["--load", "45", "--trigger", "spike:8x,3s", "--timeout", "1s"];

/// Verdict on a service, as JSON, and the output.
pub(super) fn test_recovery(url: &str, args: &[&str]) -> (Value, Output) {
    let of_all = ["capacity", url, "--recovery", "--step-time", "4s", "--format", "json", "-q"];
    let output = Weir::new().run(&[&of_all, args].concat());
    let value = serde_json::from_str(&output.stdout).unwrap_or_else(|why| panic!("{why}: {output:?}"));
    (value, output)
}
