//! What became of all requests, as JSON and for Prometheus.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use serde::Serialize;

use super::book::{KeyAccounts, lock_account};
use crate::decide::Nanos;
use crate::decide::account::QuotaCounts;
use crate::decide::limit::LimitWindow;

/// The answer to `GET /stats`.
#[derive(Debug, Serialize)]
struct ExchangeStats<'a> {
    accepted: u64,
    #[serde(rename = "refused")]
    rejected: RejectionCounts,
    windows: Vec<PeakUsage>,
    keys: BTreeMap<&'a str, KeyStats>,
}

/// By reason.
#[derive(Debug, Serialize)]
struct RejectionCounts {
    invalid_key: u64,
    invalid_weight: u64,
    blocked: u64,
    exceeded: u64,
    invalid_nonce: u64,
}

#[derive(Debug, Serialize)]
struct KeyStats {
    accepted: u64,
    #[serde(rename = "refused")]
    rejected: KeyRejectionCounts,
    /// Whether it is blocked now.
    blocked: bool,
    windows: Vec<PeakUsage>,
}

#[derive(Debug, Serialize)]
struct KeyRejectionCounts {
    blocked: u64,
    exceeded: u64,
    invalid_nonce: u64,
}

/// How close a window came to its limit; of several keys, the one that came closest.
#[derive(Debug, Serialize)]
struct PeakUsage {
    window: String,
    limit: u64,
    /// The most that was ever in it at once.
    #[serde(rename = "closest")]
    peak: u64,
    /// What is in it now.
    used: u64,
}

impl KeyAccounts {
    /// The answer to `GET /stats`, on one line.
    pub(super) fn stats_json(&self, now: Nanos) -> String {
        let keys: BTreeMap<&str, KeyStats> = self
            .keys
            .iter()
            .map(|(key, account)| {
                let mut account = lock_account(account);
                let QuotaCounts { accepted, blocked, exceeded, invalid_nonce } = account.counts();
                let standings = account.limiter().usages(now);
                let windows = standings.iter().zip(account.limiter().peaks());
                let windows = windows.map(|(standing, (window, closest))| PeakUsage {
                    window: window.to_string(),
                    limit: window.limit(),
                    peak: closest,
                    used: standing.used,
                });
                let windows = windows.collect();
                let refused = KeyRejectionCounts { blocked, exceeded, invalid_nonce };
                (key.as_str(), KeyStats { accepted, rejected: refused, blocked: account.blocked(), windows })
            })
            .collect();
        let sum = |of: fn(&KeyStats) -> u64| keys.values().map(of).sum();
        let mut windows: Vec<PeakUsage> = Vec::new();
        for (number, of_a_key) in keys.values().flat_map(|key| key.windows.iter().enumerate()) {
            match windows.get_mut(number) {
                Some(most) => {
                    most.peak = most.peak.max(of_a_key.peak);
                    most.used = most.used.max(of_a_key.used);
                }
                None => windows.push(PeakUsage { window: of_a_key.window.clone(), ..*of_a_key }),
            }
        }
        let stats = ExchangeStats {
            accepted: sum(|key| key.accepted),
            rejected: RejectionCounts {
                invalid_key: self.invalid_key.load(Ordering::Relaxed),
                invalid_weight: self.invalid_weight.load(Ordering::Relaxed),
                blocked: sum(|key| key.rejected.blocked),
                exceeded: sum(|key| key.rejected.exceeded),
                invalid_nonce: sum(|key| key.rejected.invalid_nonce),
            },
            windows,
            keys,
        };
        // Plain numbers and strings are always JSON.
        serde_json::to_string(&stats).unwrap_or_default() + "\n"
    }

    /// All keys' counts, and of each window the most that was ever in it for any key.
    fn totals(&self) -> (QuotaCounts, Vec<(LimitWindow, u64)>) {
        let mut sum = QuotaCounts::default();
        let mut windows: Vec<(LimitWindow, u64)> = Vec::new();
        for account in self.keys.values() {
            let mut account = lock_account(account);
            let QuotaCounts { accepted, blocked, exceeded, invalid_nonce } = account.counts();
            sum.accepted += accepted;
            sum.blocked += blocked;
            sum.exceeded += exceeded;
            sum.invalid_nonce += invalid_nonce;
            for (number, (window, closest)) in account.limiter().peaks().enumerate() {
                match windows.get_mut(number) {
                    Some((_, most)) => *most = closest.max(*most),
                    None => windows.push((window, closest)),
                }
            }
        }
        (sum, windows)
    }
}

impl Collector for KeyAccounts {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let (counts, windows) = self.totals();
        let help = "Requests for the exchange, by what became of them";
        let mut requests = encoder.encode_descriptor("exchange_requests", help, None, MetricType::Counter)?;
        for (outcome, count) in [
            ("accepted", counts.accepted),
            ("invalid_key", self.invalid_key.load(Ordering::Relaxed)),
            ("invalid_weight", self.invalid_weight.load(Ordering::Relaxed)),
            ("blocked", counts.blocked),
            ("exceeded", counts.exceeded),
            ("invalid_nonce", counts.invalid_nonce),
        ] {
            ConstCounter::new(count).encode(requests.encode_family(&[("outcome", outcome)])?)?;
        }
        let help = "The most that was ever in a window of any key at once";
        let mut closest = encoder.encode_descriptor("exchange_window_closest", help, None, MetricType::Gauge)?;
        for (window, most) in windows {
            let labels = [("window", window.to_string()), ("limit", window.limit().to_string())];
            ConstGauge::new(i64::try_from(most).unwrap_or(i64::MAX)).encode(closest.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
