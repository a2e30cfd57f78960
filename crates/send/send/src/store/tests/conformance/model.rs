//! Random operations on all stores, with the same results.

use proptest::prelude::{Just, ProptestConfig, Strategy, prop_assert_eq, prop_oneof, proptest};

use super::*;

/// Operation on a store.
#[derive(Clone, Debug)]
enum Act {
    Submit(u8, i32, Option<u64>, bool),
    Claim(usize, bool, bool),
    Record(usize, u8),
    Retry,
    Purge(u8),
    Later(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0..12_u8, -1..2, proptest::option::of(0..40_u64), any_bool()).prop_map(|(a, b, c, d)| Act::Submit(a, b, c, d)),
        4 => (0..4_usize, any_bool(), any_bool()).prop_map(|(a, b, c)| Act::Claim(a, b, c)),
        6 => (0..6_usize, 0..6_u8).prop_map(|(a, b)| Act::Record(a, b)),
        1 => Just(Act::Retry),
        1 => (0..6_u8).prop_map(Act::Purge),
        2 => (0..20_u64).prop_map(Act::Later),
    ];
    proptest::collection::vec(act, 1..60)
}

fn any_bool() -> impl Strategy<Value = bool> {
    proptest::bool::ANY
}

/// Executes the operations; returns their results and the state after each.
fn perform(store: &Arc<dyn Store>, acts: &[Act]) -> Vec<String> {
    let mut told = Vec::new();
    let mut now = NOW;
    let mut leases: Vec<JobLease> = Vec::new();
    let hint = |with: bool| with.then(|| "k".to_owned());
    for act in acts {
        let said = match *act {
            Act::Submit(id, priority, ttl, hinted) => {
                let expires = ttl.map(|ms| now.plus_ms(ms));
                let job = Job {
                    expires_at: expires,
                    priority,
                    created_at: now,
                    key_hint: hint(hinted),
                    ..job(&id.to_string())
                };
                format!("{:?}", submit(store, vec![job]))
            }
            Act::Claim(most, hinted, sending) => {
                let wants = vec![
                    LaneClaim { lane: here(hint(hinted).as_deref()), max_jobs: most },
                    LaneClaim { lane: here(None), max_jobs: 1 },
                ];
                let claimed =
                    store.claim(ClaimRequest { now, lanes: wants, marks_sent: sending, ..any(0) }).wait().unwrap();
                leases.extend(claimed.jobs.iter().map(|(lease, _)| *lease));
                let jobs: Vec<_> = claimed.jobs.into_iter().map(|(_, entry)| entry).collect();
                format!("{jobs:?} {:?} {:?}", claimed.expired, claimed.next_due)
            }
            Act::Record(nth, what) => {
                let Some(&lease) = leases.get(nth) else { continue };
                let retry_at = now.plus_ms(7);
                let steps = [
                    JobStep::Sent,
                    JobStep::Done,
                    JobStep::Retrying { retry_at },
                    JobStep::DeadLettered,
                    JobStep::Expired,
                    JobStep::Released,
                ];
                let step = steps[usize::from(what)];
                let attempt = attempt(200).filter(|_| matches!(what, 1..4));
                format!("{:?}", record(store, JobChange { at: now, ..change(lease, step, attempt) }).stale.len())
            }
            Act::Retry => {
                let retried = store.retry(JobFilter::default(), Some(now.plus_ms(9)), now).wait().unwrap();
                retried.to_string()
            }
            Act::Purge(state) => {
                let filter = JobFilter::of(&[State::ALL[usize::from(state)]]);
                store.purge(filter).wait().unwrap().to_string()
            }
            Act::Later(ms) => {
                now = now.plus_ms(ms);
                String::new()
            }
        };
        told.push(format!("{act:?}: {said}"));
        check_counts(store);
    }
    let all = store.list(&JobFilter::default(), 0, usize::MAX).unwrap();
    told.extend(all.iter().map(|entry| {
        let found = store.inspect(&JobSelector::Number(entry.number)).unwrap().unwrap();
        assert_eq!(found.entry, *entry);
        format!("{found:?}")
    }));
    told.push(format!("{:?}", store.queued_by_key().unwrap()));
    told
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn whatever_happens_all_stores_say_the_same(acts in acts()) {
        let mut said: Vec<Vec<String>> = Vec::new();
        let all = std::cell::RefCell::new(&mut said);
        roomy(|store| all.borrow_mut().push(perform(&store, &acts)));
        for other in &said[1..] {
            prop_assert_eq!(&said[0], other);
        }
    }
}
