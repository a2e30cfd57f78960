//! How to send.

use std::sync::Arc;

use rustls::ClientConfig;

use super::credential::ApiKey;
use super::judge::ResponseRules;
use crate::decide::Nanos;
use crate::decide::dispatch::DispatchRules;
use crate::decide::window::KeyLimit;

/// How to send.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is decided by. The epoch is set when sending begins; to a way in that is given 2 ms are added for what the
    /// machines at both ends take.
    pub rules: DispatchRules,
    /// Hosts that have limits of their own, in place of those of the rules: host or host:port, and a limit; several hold
    /// all.
    pub host_limits: Vec<(String, KeyLimit)>,
    /// The keys; at least one.
    pub keys: Vec<ApiKey>,
    /// What answers mean.
    pub response_rules: ResponseRules,
    /// A new connection for each request.
    pub keepalive: bool,
    /// How long name, connection and TLS may take together.
    pub connect_timeout: Nanos,
    /// What all TLS connections share (see [`Tls::shared`](crate::http::tls::Tls::shared)); None is the machine's own
    /// certificates.
    pub tls: Option<Arc<ClientConfig>>,
    /// More of an answer's body than so many bytes is a failure.
    pub max_body_bytes: usize,
    /// Keep the answers' bodies in the store.
    pub keep_responses: bool,
    /// Jobs that expire get this TTL and go on, so often at most; None: they have ended.
    pub ttl_extension: Option<TtlExtensionOptions>,
    /// Spreads the waits of jobs that failed together.
    pub seed: u64,
}

/// Another TTL for jobs that expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TtlExtensionOptions {
    /// So often for each job, as long as the sender runs.
    pub max_times: u32,
    /// In milliseconds.
    pub ttl_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rules: DispatchRules::default(),
            host_limits: Vec::new(),
            keys: vec![ApiKey::none()],
            response_rules: ResponseRules::default(),
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
    /// The longest time that counts in a window, and what a request may take to it.
    pub(super) fn history_span(&self) -> Nanos {
        let own = self.host_limits.iter().map(|(_, limit)| limit);
        let windows = self.rules.key.limits.iter().chain(own).map(|limit| limit.window.per());
        let longest = windows.max().unwrap_or_default();
        // A sliding counter looks at two windows.
        if longest == Nanos::ZERO {
            longest
        } else {
            longest + longest + self.rules.key.delay_bound.unwrap_or_default()
        }
    }
}
