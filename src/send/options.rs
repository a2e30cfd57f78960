//! How to send.

use std::sync::Arc;

use rustls::ClientConfig;

use super::credential::Credential;
use super::judge::Judge;
use crate::decide::Nanos;
use crate::decide::dispatch::Rules;
use crate::decide::window::Limit;

/// How to send.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is decided by. The epoch is set when sending begins; to a way in that is given 2 ms are added for what the
    /// machines at both ends take.
    pub rules: Rules,
    /// Hosts that have limits of their own, in place of those of the rules: host or host:port, and a limit; several hold
    /// all.
    pub host_limits: Vec<(String, Limit)>,
    /// The keys; at least one.
    pub keys: Vec<Credential>,
    /// What answers mean.
    pub judge: Judge,
    /// A new connection for each request.
    pub fresh: bool,
    /// How long name, connection and TLS may take together.
    pub connect_timeout: Nanos,
    /// What all TLS connections share (see [`Tls::shared`](crate::http::tls::Tls::shared)); None is the machine's own
    /// certificates.
    pub tls: Option<Arc<ClientConfig>>,
    /// More of an answer's body than so many bytes is a failure.
    pub most_body: usize,
    /// Keep the answers' bodies in the store.
    pub keep_answers: bool,
    /// Jobs that expire get this TTL and go on, so often at most; None: they have ended.
    pub renew: Option<Renewal>,
    /// Spreads the waits of jobs that failed together.
    pub seed: u64,
}

/// Another TTL for jobs that expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// So often for each job, as long as the sender runs.
    pub times: u32,
    /// In milliseconds.
    pub ttl_ms: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rules: Rules::default(),
            host_limits: Vec::new(),
            keys: vec![Credential::none()],
            judge: Judge::default(),
            fresh: false,
            connect_timeout: Nanos::from_secs(5),
            tls: None,
            most_body: 16 << 20,
            keep_answers: false,
            renew: None,
            seed: 1,
        }
    }
}

impl Options {
    /// The longest time that counts in a window, and what a request may take to it.
    pub(super) fn memory(&self) -> Nanos {
        let own = self.host_limits.iter().map(|(_, limit)| limit);
        let windows = self.rules.key.limits.iter().chain(own).map(|limit| limit.window.per());
        let longest = windows.max().unwrap_or_default();
        // A sliding counter looks at two windows.
        if longest == Nanos::ZERO { longest } else { longest + longest + self.rules.key.way_in.unwrap_or_default() }
    }
}
