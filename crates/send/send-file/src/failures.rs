//! Failed requests by cause, and the most frequent one with its body, masked.

use bytes::Bytes;

use weir_base::number_text::count;
use weir_base::terminal_text::{beginning, single_line};
use weir_request::secret_mask::SecretMask;
use weir_send::{AttemptRecord, JobDefaults, Options};

/// Maximum number of distinct causes; further ones are not counted.
const MAX_CAUSES: usize = 64;
/// Longest beginning of a body that is kept, and that is shown, in bytes.
const MAX_KEPT_BYTES: usize = 4096;
const MAX_SHOWN_BYTES: usize = 120;
/// Failures of one cause from which on a running delivery reports it.
const MIN_NOTED: u64 = 10;

/// Counts of failed requests.
#[derive(Debug, Default)]
pub(super) struct FailureCounts {
    causes: Vec<FailureCause>,
    mask: SecretMask,
    /// Whether the sender keeps the order of nonces.
    is_ordered: bool,
    is_noted: bool,
}

/// Failures with the same outcome, counted together.
#[derive(Debug)]
struct FailureCause {
    /// Status, or the failure or failed check in prose.
    outcome: Result<u16, String>,
    count: u64,
    /// Body of its first response that has one.
    body: Bytes,
}

/// Most frequent failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopFailure {
    /// `status 400`, or the failure in prose.
    pub(super) cause: String,
    /// Requests.
    pub(super) count: u64,
    /// Beginning of a body of it, masked, on one line; empty without one.
    pub(super) body: String,
    /// Remedy for the user, if one is known.
    pub(super) remedy: Option<&'static str>,
}

impl FailureCounts {
    /// Counts without failures, which show none of the secrets of a sender.
    pub(super) fn new(sender: &Options, defaults: &JobDefaults) -> Self {
        let mut mask = SecretMask::default();
        sender.keys.iter().for_each(|key| mask.add(key.secret()));
        defaults.headers.iter().for_each(|(name, value)| mask.add_named(name, value));
        Self { mask, is_ordered: sender.rules.key.ordered, ..Self::default() }
    }

    pub(super) fn record(&mut self, attempt: &AttemptRecord) {
        if attempt.succeeded {
            return;
        }
        let kept = || attempt.failure_body.slice(..attempt.failure_body.len().min(MAX_KEPT_BYTES));
        let outcome = match &attempt.failed_check {
            Some(check) => Err(check.clone()),
            None => attempt.outcome.clone(),
        };
        if let Some(known) = self.causes.iter_mut().find(|cause| cause.outcome == outcome) {
            known.count += 1;
            if known.body.is_empty() {
                known.body = kept();
            }
        } else if self.causes.len() < MAX_CAUSES {
            self.causes.push(FailureCause { outcome, count: 1, body: kept() });
        }
    }

    /// Most frequent failure; None without one.
    pub(super) fn top(&self) -> Option<TopFailure> {
        self.causes.iter().max_by_key(|cause| cause.count).map(|cause| self.shown(cause))
    }

    /// The most frequent failure as a note, once, when there are some. Rate-limiting is expected.
    pub(super) fn note(&mut self) -> Option<String> {
        let is_fault = |cause: &&FailureCause| cause.outcome != Ok(429) && cause.count >= MIN_NOTED;
        let cause = self.causes.iter().filter(is_fault).max_by_key(|cause| cause.count).filter(|_| !self.is_noted)?;
        let note = format!("requests fail: {}", self.shown(cause).text());
        self.is_noted = true;
        Some(note)
    }

    fn shown(&self, cause: &FailureCause) -> TopFailure {
        let whole = String::from_utf8_lossy(&cause.body);
        let masked = single_line(self.mask.text(&whole).trim());
        let shown = beginning(&masked, MAX_SHOWN_BYTES);
        let body = if shown.len() < masked.len() { format!("{shown}...") } else { masked.clone() };
        let is_of_nonces = cause.outcome.is_ok() && whole.to_ascii_lowercase().contains("nonce");
        TopFailure {
            cause: match &cause.outcome {
                Ok(status) => format!("status {status}"),
                Err(why) => single_line(&self.mask.text(why)),
            },
            count: cause.count,
            body,
            remedy: (is_of_nonces && !self.is_ordered).then_some("--ordered keeps nonces in order"),
        }
    }
}

impl TopFailure {
    /// One line: `27,236 x status 400: {"error":"invalid nonce"}; --ordered keeps nonces in order`.
    pub(super) fn text(&self) -> String {
        let body = if self.body.is_empty() { String::new() } else { format!(": {}", self.body) };
        let remedy = self.remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default();
        format!("{} x {}{body}{remedy}", count(self.count), self.cause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_base::Nanos;
    use weir_send::{ApiKey, UnixMs};

    fn attempt(outcome: Result<u16, &str>, body: &'static str) -> AttemptRecord {
        AttemptRecord {
            key: 0,
            sent_at: UnixMs(0),
            lateness: None,
            service_time: Nanos::ZERO,
            outcome: outcome.map_err(str::to_owned),
            failed_check: None,
            request_id: None,
            succeeded: outcome == Ok(200),
            is_retry: false,
            failure_body: Bytes::from_static(body.as_bytes()),
        }
    }

    fn counts(ordered: bool) -> FailureCounts {
        let mut options = Options { keys: vec![ApiKey::new("a-very-SECRET-key-1")], ..Options::default() };
        options.rules.key.ordered = ordered;
        FailureCounts::new(&options, &JobDefaults::default())
    }

    #[test]
    fn the_most_frequent_failure_has_its_body_without_secrets_and_a_remedy() {
        let mut failures = counts(false);
        assert_eq!((failures.top(), failures.note()), (None, None));
        failures.record(&attempt(Ok(200), ""));
        failures.record(&attempt(Err("connection refused"), ""));
        let body = "{\"error\":\"Invalid Nonce\",\n\"token\":\"t0psecret\",\"k\":\"a-very-SECRET-key-1\"}";
        (0..9).for_each(|_| failures.record(&attempt(Ok(400), body)));
        assert_eq!(failures.note(), None);
        failures.record(&attempt(Ok(400), ""));
        let text = "10 x status 400: {\"error\":\"Invalid Nonce\", \"token\":\"***\",\"k\":\"***\"}; --ordered keeps nonces in order";
        assert_eq!(failures.top().unwrap().text(), text);
        assert_eq!(failures.note().unwrap(), format!("requests fail: {text}"));
        assert_eq!(failures.note(), None, "once");
    }

    #[test]
    fn an_ordered_sender_needs_no_such_remedy_and_rate_limiting_is_expected() {
        let mut failures = counts(true);
        (0..20).for_each(|_| failures.record(&attempt(Ok(429), "slow down, nonce")));
        assert_eq!((failures.top().unwrap().remedy, failures.note()), (None, None));
        assert_eq!(failures.top().unwrap().text(), "20 x status 429: slow down, nonce");
    }

    #[test]
    fn many_causes_and_long_bodies_take_bounded_memory() {
        let mut failures = counts(false);
        for status in 100..1000 {
            failures.record(&AttemptRecord { failure_body: vec![b'x'; 100_000].into(), ..attempt(Ok(status), "") });
        }
        assert!(failures.causes.len() == MAX_CAUSES && failures.top().unwrap().body.len() < 130);
    }
}
