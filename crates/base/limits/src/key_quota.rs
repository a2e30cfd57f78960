//! A service's state of one API key, and its decision on the key's next request.
//!
//! The order of the checks is part of the contract, since a client can observe it: a blocked key is not checked any
//! further; then the limiter decides, and a rejection counts against the key; then the nonce is checked, so a bad nonce
//! uses its slot all the same.

use crate::models::{LimitRejection, ServerLimiter};
use weir_base::Nanos;

/// Outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaDecision {
    /// The request is carried out.
    Accepted,
    /// The key was rejected too often, and is blocked for good.
    Blocked,
    /// Too many requests.
    Exceeded(LimitRejection),
    /// The nonce is missing, malformed or not above the last one; the request counts in the windows all the same.
    InvalidNonce,
}

impl QuotaDecision {
    /// Whether the request took its weight from the windows: then [`KeyQuota::finished`] is due after its response.
    pub fn consumed_slot(self) -> bool {
        matches!(self, Self::Accepted | Self::InvalidNonce)
    }
}

/// Number of a key's requests by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuotaCounts {
    /// Requests carried out.
    pub accepted: u64,
    /// Requests rejected because the key was blocked.
    pub blocked: u64,
    /// Requests rejected by the limiter.
    pub exceeded: u64,
    /// Requests rejected for their nonce.
    pub invalid_nonce: u64,
}

/// State of one key at a service.
#[derive(Clone, Debug)]
pub struct KeyQuota {
    limiter: ServerLimiter,
    last_nonce: i128,
    /// Number of rejections by the limiter that blocks the key; 0: never.
    block_after: u64,
    counts: QuotaCounts,
}

impl KeyQuota {
    /// State of a key without requests.
    pub fn new(limiter: ServerLimiter, block_after: u64) -> Self {
        Self { limiter, last_nonce: 0, block_after, counts: QuotaCounts::default() }
    }

    /// Whether the key is blocked.
    pub fn blocked(&self) -> bool {
        self.block_after > 0 && self.counts.exceeded >= self.block_after
    }

    /// Decides on a request at `now`; `nonce` is what [`parse_nonce`] returned.
    pub fn judge(&mut self, now: Nanos, weight: u64, nonce: Option<i128>) -> QuotaDecision {
        if self.blocked() {
            self.counts.blocked += 1;
            return QuotaDecision::Blocked;
        }
        if let Err(rejection) = self.limiter.judge(now, weight) {
            self.counts.exceeded += 1;
            return QuotaDecision::Exceeded(rejection);
        }
        let Some(nonce) = nonce.filter(|nonce| *nonce > self.last_nonce) else {
            self.counts.invalid_nonce += 1;
            return QuotaDecision::InvalidNonce;
        };
        self.last_nonce = nonce;
        self.counts.accepted += 1;
        QuotaDecision::Accepted
    }

    /// Ends a request that [took its slot](QuotaDecision::consumed_slot).
    pub fn finished(&mut self, weight: u64) {
        self.limiter.finished(weight);
    }

    /// The key's windows.
    pub fn limiter(&mut self) -> &mut ServerLimiter {
        &mut self.limiter
    }

    /// Outcomes of its requests so far.
    pub fn counts(&self) -> QuotaCounts {
        self.counts
    }
}

/// Parses a nonce as Python's `int()` does: spaces around it, a sign, underscores between digits; None beyond 128 bits.
pub fn parse_nonce(text: &str) -> Option<i128> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut groups = digits.split('_');
    if !groups.all(|group| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    text.replace('_', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{LimitModel, LimitWindow, RetryTime};
    use proptest::prelude::*;

    fn account(limit: &str, block_after: u64) -> KeyQuota {
        let window = LimitWindow::read(limit, LimitModel::SlidingLog).expect("valid");
        KeyQuota::new(ServerLimiter::new(&[window], Nanos::MILLI), block_after)
    }

    /// The reference workload's service, line by line: a ring of 20 times that starts with zeros.
    struct Ring {
        times_ms: [u64; 20],
        index: usize,
        rejections: u64,
        nonce: i128,
    }

    impl Ring {
        fn judge(&mut self, now_ms: u64, nonce: Option<i128>) -> &'static str {
            if self.rejections >= 10 {
                return "blocked";
            }
            if now_ms - self.times_ms[self.index] <= 1000 {
                self.rejections += 1;
                return "exceeded";
            }
            self.times_ms[self.index] = now_ms;
            self.index = (self.index + 1) % 20;
            match nonce {
                Some(nonce) if nonce > self.nonce => self.nonce = nonce,
                _ => return "nonce",
            }
            "accepted"
        }
    }

    fn name_of(judgement: QuotaDecision) -> &'static str {
        match judgement {
            QuotaDecision::Accepted => "accepted",
            QuotaDecision::Blocked => "blocked",
            QuotaDecision::Exceeded(_) => "exceeded",
            QuotaDecision::InvalidNonce => "nonce",
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        /// The ring starts with zeros, and times are milliseconds since 1970: a zero is always old.
        #[test]
        fn a_key_quota_decides_as_the_reference_workloads_service_does(
            start in 1_700_000_000_000_000_000..1_800_000_000_000_000_000_u64,
            steps in prop::collection::vec(
                (prop_oneof![3 => 0..2_000_000_u64, 6 => 30_000_000..90_000_000_u64, 1 => 900_000_000..1_100_000_000_u64],
                 prop_oneof![8 => Just(1_i128), 1 => -3..3_i128], prop::bool::weighted(0.9)), 1..150)
        ) {
            let mut account = account("20/1s", 10);
            let mut ring = Ring { times_ms: [0; 20], index: 0, rejections: 0, nonce: 0 };
            let (mut now, mut next, mut counted) = (start, 0, [0; 4]);
            for (gap_ns, growth, is_number) in steps {
                now += gap_ns;
                next += growth;
                let nonce = is_number.then_some(next);
                let expected = ring.judge(now / 1_000_000, nonce);
                prop_assert_eq!(account.blocked(), expected == "blocked");
                let judged = account.judge(Nanos(now), 1, nonce);
                prop_assert_eq!(name_of(judged), expected);
                counted[["accepted", "blocked", "exceeded", "nonce"].iter().position(|w| *w == expected).expect("known")] += 1;
            }
            let QuotaCounts { accepted, blocked, exceeded, invalid_nonce } = account.counts();
            prop_assert_eq!([accepted, blocked, exceeded, invalid_nonce], counted);
        }
    }

    #[test]
    fn ten_rejections_block_a_key_for_good() {
        let mut account = account("1/1s", 10);
        assert_eq!(account.judge(Nanos::ZERO, 1, Some(1)), QuotaDecision::Accepted);
        for _ in 0..10 {
            assert!(matches!(account.judge(Nanos::ZERO, 1, Some(2)), QuotaDecision::Exceeded(_)));
        }
        assert_eq!(account.judge(Nanos::from_secs(3600), 1, Some(2)), QuotaDecision::Blocked);
    }

    #[test]
    fn blocking_can_be_disabled() {
        let mut account = account("1/1s", 0);
        for _ in 0..100 {
            account.judge(Nanos::ZERO, 1, None);
        }
        assert!(!account.blocked());
    }

    #[test]
    fn a_bad_nonce_uses_its_slot_and_keeps_the_last_one() {
        let mut account = account("3/1s", 10);
        assert_eq!(account.judge(Nanos::ZERO, 1, Some(7)), QuotaDecision::Accepted);
        assert_eq!(account.judge(Nanos::ZERO, 1, Some(7)), QuotaDecision::InvalidNonce);
        assert_eq!(account.judge(Nanos::ZERO, 1, None), QuotaDecision::InvalidNonce);
        let retry = RetryTime::After(Nanos::from_millis(1001));
        assert_eq!(
            account.judge(Nanos::ZERO, 1, Some(8)),
            QuotaDecision::Exceeded(LimitRejection { window: 0, retry })
        );
        assert_eq!(account.judge(Nanos::from_millis(1001), 1, Some(8)), QuotaDecision::Accepted);
    }

    #[test]
    fn a_concurrency_slot_is_free_after_the_response() {
        let mut account = account("concurrency:1", 10);
        let judged = account.judge(Nanos::ZERO, 1, None);
        assert!(judged == QuotaDecision::InvalidNonce && judged.consumed_slot());
        assert!(!account.judge(Nanos::ZERO, 1, Some(1)).consumed_slot());
        account.finished(1);
        assert_eq!(account.judge(Nanos::ZERO, 1, Some(1)), QuotaDecision::Accepted);
    }

    #[test]
    fn a_nonce_is_what_python_parses_as_an_integer() {
        for (text, number) in [("1", 1), ("+7", 7), ("-7", -7), (" 007\n", 7), ("1_000", 1000)] {
            assert_eq!(parse_nonce(text), Some(number), "{text:?}");
        }
        assert_eq!(parse_nonce(&i128::MAX.to_string()), Some(i128::MAX));
        let beyond = "9".repeat(60);
        for text in ["", " ", "+", "1.0", "1e3", "0x1", "_1", "1_", "1__0", "+ 1", "+-1", "1 2", "one", &beyond] {
            assert_eq!(parse_nonce(text), None, "{text:?}");
        }
    }
}
