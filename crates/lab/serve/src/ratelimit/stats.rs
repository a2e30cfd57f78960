//! Statistics of all keys: `/stats` as JSON, and `/metrics` for Prometheus.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use serde::Serialize;

use super::accounts::KeyAccounts;
use weir_base::Nanos;
use weir_limits::key_quota::QuotaCounts;
use weir_limits::models::LimitWindow;
use weir_machine::lock::lock;

/// Body of `GET /stats`.
#[derive(Debug, Serialize)]
struct RateLimitStats<'a> {
    accepted: u64,
    rejected: RejectionCounts,
    windows: Vec<PeakUsage>,
    keys: BTreeMap<&'a str, KeyStats>,
}

/// Rejections by reason.
#[derive(Debug, Serialize)]
struct RejectionCounts {
    invalid_key: u64,
    invalid_weight: u64,
    blocked: u64,
    rate_limited: u64,
    invalid_nonce: u64,
}

#[derive(Debug, Serialize)]
struct KeyStats {
    accepted: u64,
    rejected: KeyRejectionCounts,
    /// Whether it is blocked now.
    blocked: bool,
    windows: Vec<PeakUsage>,
}

#[derive(Debug, Serialize)]
struct KeyRejectionCounts {
    blocked: u64,
    rate_limited: u64,
    invalid_nonce: u64,
}

/// Usage of a window, now and at its peak; at the top of the statistics, the highest of all keys.
#[derive(Debug, Serialize)]
struct PeakUsage {
    window: String,
    limit: u64,
    /// Highest usage at any time.
    peak: u64,
    /// Usage now.
    used: u64,
}

impl KeyAccounts {
    /// Body of `GET /stats`, on one line.
    pub(super) fn stats_json(&self, now: Nanos) -> String {
        let keys: BTreeMap<&str, KeyStats> = self
            .keys
            .iter()
            .map(|(key, account)| {
                let mut account = lock(account);
                let QuotaCounts { accepted, blocked, exceeded, invalid_nonce } = account.counts();
                let usages = account.limiter().usages(now);
                let windows = usages.iter().zip(account.limiter().peaks());
                let windows = windows.map(|(usage, (window, peak))| PeakUsage {
                    window: window.to_string(),
                    limit: window.limit(),
                    peak,
                    used: usage.used,
                });
                let windows = windows.collect();
                let rejected = KeyRejectionCounts { blocked, rate_limited: exceeded, invalid_nonce };
                (key.as_str(), KeyStats { accepted, rejected, blocked: account.blocked(), windows })
            })
            .collect();
        let sum = |of: fn(&KeyStats) -> u64| keys.values().map(of).sum();
        let mut windows: Vec<PeakUsage> = Vec::new();
        for (number, of_key) in keys.values().flat_map(|key| key.windows.iter().enumerate()) {
            match windows.get_mut(number) {
                Some(highest) => {
                    highest.peak = highest.peak.max(of_key.peak);
                    highest.used = highest.used.max(of_key.used);
                }
                None => windows.push(PeakUsage { window: of_key.window.clone(), ..*of_key }),
            }
        }
        let stats = RateLimitStats {
            accepted: sum(|key| key.accepted),
            rejected: RejectionCounts {
                invalid_key: self.invalid_key.load(Ordering::Relaxed),
                invalid_weight: self.invalid_weight.load(Ordering::Relaxed),
                blocked: sum(|key| key.rejected.blocked),
                rate_limited: sum(|key| key.rejected.rate_limited),
                invalid_nonce: sum(|key| key.rejected.invalid_nonce),
            },
            windows,
            keys,
        };
        // Plain numbers and strings are always JSON.
        serde_json::to_string(&stats).unwrap_or_default() + "\n"
    }

    /// Sums of all keys' counts, and the peak of each window over all keys.
    fn totals(&self) -> (QuotaCounts, Vec<(LimitWindow, u64)>) {
        let mut sum = QuotaCounts::default();
        let mut windows: Vec<(LimitWindow, u64)> = Vec::new();
        for account in self.keys.values() {
            let mut account = lock(account);
            let QuotaCounts { accepted, blocked, exceeded, invalid_nonce } = account.counts();
            sum.accepted += accepted;
            sum.blocked += blocked;
            sum.exceeded += exceeded;
            sum.invalid_nonce += invalid_nonce;
            for (number, (window, peak)) in account.limiter().peaks().enumerate() {
                match windows.get_mut(number) {
                    Some((_, highest)) => *highest = peak.max(*highest),
                    None => windows.push((window, peak)),
                }
            }
        }
        (sum, windows)
    }
}

impl Collector for KeyAccounts {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let (counts, windows) = self.totals();
        let help = "Requests by outcome";
        let mut requests = encoder.encode_descriptor("ratelimit_requests", help, None, MetricType::Counter)?;
        for (outcome, count) in [
            ("accepted", counts.accepted),
            ("invalid_key", self.invalid_key.load(Ordering::Relaxed)),
            ("invalid_weight", self.invalid_weight.load(Ordering::Relaxed)),
            ("blocked", counts.blocked),
            ("rate_limited", counts.exceeded),
            ("invalid_nonce", counts.invalid_nonce),
        ] {
            ConstCounter::new(count).encode(requests.encode_family(&[("outcome", outcome)])?)?;
        }
        let help = "Highest usage of a rate-limit window by any key";
        let mut peaks = encoder.encode_descriptor("ratelimit_window_peak", help, None, MetricType::Gauge)?;
        for (window, highest) in windows {
            let labels = [("window", window.to_string()), ("limit", window.limit().to_string())];
            ConstGauge::new(i64::try_from(highest).unwrap_or(i64::MAX)).encode(peaks.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
