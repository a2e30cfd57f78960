//! History of a key's sends before a crash.

use super::super::job::UnixMs;
use super::super::state::State;
use super::super::store::{JobFilter, Store, StoreError};
use crate::api_key::ApiKey;
use weir_base::Nanos;
use weir_delivery::key_window::KeyHistory;

/// Spans up to this are waited for instead of looked up.
const MAX_WAITED_WINDOW: Nanos = Nanos::from_secs(10);
/// Jobs per read.
const PAGE_JOBS: usize = 1000;

/// History that counts after a crash for windows of this span. Short windows are waited for; for long ones the store's
/// jobs show the sends. A job that may have been sent with an unknown key counts for all keys as sent now; one with
/// several attempts counts as if all were at the time of the last.
pub(super) fn history_after_crash(
    store: &dyn Store,
    key: &ApiKey,
    memory: Nanos,
    now: UnixMs,
) -> Result<KeyHistory, StoreError> {
    if memory <= MAX_WAITED_WINDOW {
        return Ok(KeyHistory { hold_for: memory, ..KeyHistory::default() });
    }
    let ms = |length: i64| u64::try_from(length).unwrap_or(0);
    let (mut sent, mut after) = (Vec::new(), 0);
    loop {
        let page = store.list(&JobFilter::default(), after, PAGE_JOBS)?;
        let Some(last) = page.last() else { break };
        after = last.number;
        for entry in &page {
            let weight = u64::from(entry.job.weight.max(1));
            let Some(last) = &entry.status.last_attempt else {
                // It has an attempt, and was leased or released since: the time of its last send is unknown.
                sent.extend((0..entry.status.attempts).map(|_| (Nanos::ZERO, weight)));
                continue;
            };
            let ago = Nanos(ms(now.0.saturating_sub(last.sent_at.0)).saturating_mul(Nanos::MILLI.0));
            if entry.status.maybe_sent && matches!(entry.status.state, State::Queued | State::Leased) {
                sent.push((Nanos::ZERO, weight));
            } else if ago <= memory && last.key.as_deref().is_some_and(|name| key.matches(name)) {
                sent.extend((0..entry.status.attempts.max(1)).map(|_| (ago, weight)));
            }
        }
    }
    Ok(KeyHistory { sent, ..KeyHistory::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Job, StoredAttempt};
    use crate::store::{
        ClaimRequest, JobChange, JobLane, JobOrder, JobStep, LaneClaim, MemoryStore, QueueBounds, RecordRequest,
    };

    #[test]
    fn what_was_sent_within_the_longest_window_counts() {
        let store = MemoryStore::new(QueueBounds::default(), JobOrder::Fifo);
        store.submit(vec![Job::default(); 3]).wait().unwrap();
        store.start_sending(UnixMs(0)).unwrap();
        let claim = || {
            let wants = vec![LaneClaim { lane: JobLane::default(), max_jobs: 2 }];
            ClaimRequest {
                now: UnixMs(0),
                lease_duration: Nanos::NEVER,
                lanes: wants,
                max_bytes: u64::MAX,
                marks_sent: false,
            }
        };
        let claimed = store.claim(claim()).wait().unwrap();
        let sent = [("a", 1_000), ("b", 2_000)];
        let changes = claimed.jobs.iter().zip(sent).map(|((lease, _), (key, at))| JobChange {
            lease: *lease,
            at: UnixMs(at),
            reason: String::new(),
            step: JobStep::Done,
            attempt: Some(StoredAttempt { key: Some(key.to_owned()), sent_at: UnixMs(at), status: Some(200) }),
            response: None,
        });
        let record = RecordRequest { changes: changes.collect(), key_states: Vec::new() };
        store.record(record).wait().unwrap();
        let minute = Nanos::from_secs(60);
        let key = |name: &str| ApiKey::named(name, "secret");
        let of = |name, now| history_after_crash(&store, &key(name), minute, UnixMs(now)).unwrap().sent;
        assert_eq!(of("a", 31_000), [(Nanos::from_secs(30), 1)]);
        assert_eq!(of("b", 32_000), [(Nanos::from_secs(30), 1)]);
        assert_eq!(of("c", 31_000), []);
        assert_eq!(of("a", 62_000), [], "the window has let it go");
        let third = store.claim(claim()).wait().unwrap().jobs.remove(0).0;
        let (attempt, step) = (Some(StoredAttempt::at(UnixMs(3_000))), JobStep::Retrying { retry_at: UnixMs(0) });
        let dead = JobChange { lease: third, at: UnixMs(3_000), reason: String::new(), step, attempt, response: None };
        store.record(RecordRequest { changes: vec![dead], key_states: Vec::new() }).wait().unwrap();
        store.claim(claim()).wait().unwrap();
        assert_eq!(of("c", 31_000), [(Nanos::ZERO, 1)], "it was tried, and a claim has forgotten when");
        let short = history_after_crash(&store, &key("a"), Nanos::SECOND, UnixMs(1_500)).unwrap();
        assert_eq!((short.hold_for, short.sent.len()), (Nanos::SECOND, 0));
    }
}
