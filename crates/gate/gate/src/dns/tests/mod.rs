//! DNS by examples, and against naive oracles.
#![allow(clippy::unwrap_used, reason = "a failed precondition fails the test")]

mod files;
mod messages;
mod schedules;
mod services;

use super::name::DnsName;

fn name(text: &str) -> DnsName {
    DnsName::new(text).unwrap()
}
