//! The queue in memory: what holds beyond the suite of all stores.

use super::*;
use crate::send::store::Want;

#[test]
fn a_store_that_forgets_has_neither_the_job_nor_its_name_after_the_end() {
    let store = Memory::new(Bounds::default(), Order::FirstIn).forgetting(&[State::Done]);
    store.start_sending(UnixMs(0)).unwrap();
    for round in 1..=3 {
        let job = Job { id: Some("a".into()), ..Job::default() };
        assert_eq!(store.submit(vec![job]).wait(), Ok(vec![Receipt::Accepted(round)]));
        let wants = vec![Want { lane: Lane::default(), most: 1 }];
        let claim = Claim { now: UnixMs(0), lease: Nanos::NEVER, wants, most_bytes: u64::MAX, sending: true };
        let (lease, _) = store.claim(claim).wait().unwrap().jobs.remove(0);
        let step = if round == 2 { Step::Graveyard } else { Step::Done };
        let change = Change { lease, at: UnixMs(1), reason: "so".into(), step, attempt: None, answer: None };
        let record = Record { changes: vec![change], keys: Vec::new() };
        assert_eq!(store.record(record).wait(), Ok(Recorded::default()));
        if round == 2 {
            assert_eq!(store.counts().unwrap().of(State::Graveyard), 1, "others are kept");
            store.purge(Filter::default()).wait().unwrap();
        }
        assert_eq!(store.list(&Filter::default(), 0, 9).unwrap(), []);
    }
    assert_eq!(store.counts().unwrap(), Counts::default());
}
