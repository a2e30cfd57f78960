//! What a key may have sent before a crash, as far as its windows still count it.

use super::super::credential::Credential;
use super::super::job::UnixMs;
use super::super::state::State;
use super::super::store::{Filter, Store, StoreError};
use crate::decide::Nanos;
use crate::decide::window::History;

/// To wait for so long is quicker than to look at all jobs.
const SHORT: Nanos = Nanos::from_secs(10);
/// So many jobs are looked at together.
const PAGE: usize = 1000;

/// What counts after a crash in windows that look back so far. Short windows are waited for; for long ones it is looked up
/// which jobs were sent in that time. A job that may have been sent, nobody knows by which key, counts for all of them,
/// as if it had been now; one that was sent several times, as if all of them had been the last time.
pub(super) fn history(store: &dyn Store, key: &Credential, memory: Nanos, now: UnixMs) -> Result<History, StoreError> {
    if memory <= SHORT {
        return Ok(History { held_for: memory, ..History::default() });
    }
    let ms = |length: i64| u64::try_from(length).unwrap_or(0);
    let (mut sent, mut after) = (Vec::new(), 0);
    loop {
        let page = store.list(&Filter::default(), after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = last.number;
        for entry in &page {
            let weight = u64::from(entry.job.weight.max(1));
            let Some(last) = &entry.status.last else {
                // It was tried, and has been leased or given back since: when it was sent last is not known any more.
                sent.extend((0..entry.status.tries).map(|_| (Nanos::ZERO, weight)));
                continue;
            };
            let ago = Nanos(ms(now.0.saturating_sub(last.sent.0)).saturating_mul(Nanos::MILLI.0));
            if entry.status.maybe_sent && matches!(entry.status.state, State::Queued | State::Leased) {
                sent.push((Nanos::ZERO, weight));
            } else if ago <= memory && last.key.as_deref().is_some_and(|name| key.is(name)) {
                sent.extend((0..entry.status.tries.max(1)).map(|_| (ago, weight)));
            }
        }
    }
    Ok(History { sent, ..History::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::send::job::{Attempt, Job};
    use crate::send::store::{Bounds, Change, Claim, Lane, Memory, Order, Record, Step, Want};

    #[test]
    fn what_was_sent_within_the_longest_window_counts() {
        let store = Memory::new(Bounds::default(), Order::FirstIn);
        store.submit(vec![Job::default(); 3]).wait().unwrap();
        store.start_sending(UnixMs(0)).unwrap();
        let claim = || {
            let wants = vec![Want { lane: Lane::default(), most: 2 }];
            Claim { now: UnixMs(0), lease: Nanos::NEVER, wants, most_bytes: u64::MAX, sending: false }
        };
        let claimed = store.claim(claim()).wait().unwrap();
        let sent = [("a", 1_000), ("b", 2_000)];
        let changes = claimed.jobs.iter().zip(sent).map(|((lease, _), (key, at))| Change {
            lease: *lease,
            at: UnixMs(at),
            reason: String::new(),
            step: Step::Done,
            attempt: Some(Attempt { key: Some(key.to_owned()), sent: UnixMs(at), code: Some(200) }),
            answer: None,
        });
        let record = Record { changes: changes.collect(), keys: Vec::new() };
        store.record(record).wait().unwrap();
        let minute = Nanos::from_secs(60);
        let key = |name: &str| Credential::named(name, "secret");
        let of = |name, now| history(&store, &key(name), minute, UnixMs(now)).unwrap().sent;
        assert_eq!(of("a", 31_000), [(Nanos::from_secs(30), 1)]);
        assert_eq!(of("b", 32_000), [(Nanos::from_secs(30), 1)]);
        assert_eq!(of("c", 31_000), []);
        assert_eq!(of("a", 62_000), [], "the window has let it go");
        let third = store.claim(claim()).wait().unwrap().jobs.remove(0).0;
        let (attempt, step) = (Some(Attempt::at(UnixMs(3_000))), Step::Dead { retry_at: UnixMs(0) });
        let dead = Change { lease: third, at: UnixMs(3_000), reason: String::new(), step, attempt, answer: None };
        store.record(Record { changes: vec![dead], keys: Vec::new() }).wait().unwrap();
        store.claim(claim()).wait().unwrap();
        assert_eq!(of("c", 31_000), [(Nanos::ZERO, 1)], "it was tried, and a claim has forgotten when");
        let short = history(&store, &key("a"), Nanos::SECOND, UnixMs(1_500)).unwrap();
        assert_eq!((short.held_for, short.sent.len()), (Nanos::SECOND, 0));
    }
}
