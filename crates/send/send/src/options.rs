//! Options of a sender.

use std::sync::Arc;

use rustls::ClientConfig;

use super::api_key::ApiKey;
use super::key_hosts::KeyHosts;
use super::response_rules::{ResponseCheck, ResponseRules};
use weir_base::Nanos;
use weir_delivery::dispatch::DispatchRules;
use weir_delivery::key_window::KeyLimit;

/// Options of a sender.
#[derive(Clone, Debug)]
pub struct Options {
    /// Rules of the dispatch. The epoch is set at the start; 2 ms are added to a given delay bound for the machines at
    /// both ends.
    pub rules: DispatchRules,
    /// Limits of single hosts, instead of those of the rules: host or host:port, and a limit; all of a host apply.
    pub host_limits: Vec<(String, KeyLimit)>,
    /// API keys; at least one.
    pub keys: Vec<ApiKey>,
    /// Hosts that the keys are sent to.
    pub key_hosts: KeyHosts,
    /// Classification of responses.
    pub response_rules: ResponseRules,
    /// Check of the content of responses with a status of success: one that fails counts as a failed attempt.
    pub response_check: Option<Arc<dyn ResponseCheck>>,
    /// Whether connections are reused.
    pub keepalive: bool,
    /// Timeout of name lookup, connection and TLS together.
    pub connect_timeout: Nanos,
    /// TLS configuration of all connections (see [`Tls::shared`](weir_net::tls::Tls::shared)); None for the system's
    /// certificates.
    pub tls: Option<Arc<ClientConfig>>,
    /// Maximum response body, in bytes; a longer one is a failure.
    pub max_body_bytes: usize,
    /// Whether responses are stored.
    pub keep_responses: bool,
    /// New TTLs for expired jobs; None: they have ended.
    pub ttl_extension: Option<TtlExtensionOptions>,
    /// Seed of the jitter of retries.
    pub seed: u64,
}

/// New TTLs for expired jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TtlExtensionOptions {
    /// Maximum extensions per job, in the run of a sender.
    pub max_times: u32,
    /// New TTL, in milliseconds.
    pub ttl_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rules: DispatchRules::default(),
            host_limits: Vec::new(),
            keys: vec![ApiKey::none()],
            key_hosts: KeyHosts::default(),
            response_rules: ResponseRules::default(),
            response_check: None,
            keepalive: true,
            connect_timeout: Nanos::from_secs(5),
            tls: None,
            max_body_bytes: 16 << 20,
            keep_responses: false,
            ttl_extension: None,
            seed: 1,
        }
    }
}

impl Options {
    /// Longest window plus delay: the time for which sends count.
    pub(super) fn history_span(&self) -> Nanos {
        let own = self.host_limits.iter().map(|(_, limit)| limit);
        let windows = self.rules.key.limits.iter().chain(own).map(|limit| limit.window.per());
        let longest = windows.max().unwrap_or_default();
        // A sliding window counter has two windows.
        if longest == Nanos::ZERO {
            longest
        } else {
            longest + longest + self.rules.key.delay_bound.unwrap_or_default()
        }
    }
}
