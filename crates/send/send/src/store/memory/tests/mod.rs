//! The queue in memory: what holds beyond the suite of all stores.

use super::*;
use crate::store::{JobChange, JobStep, LaneClaim};

#[test]
fn a_store_that_forgets_has_neither_the_job_nor_its_name_after_the_end() {
    let store = MemoryStore::new(QueueBounds::default(), JobOrder::Fifo).discarding(&[State::Done]);
    store.start_sending(UnixMs(0)).unwrap();
    for round in 1..=3 {
        let job = Job { id: Some("a".into()), ..Job::default() };
        assert_eq!(store.submit(vec![job]).wait(), Ok(vec![Receipt::Accepted(round)]));
        let wants = vec![LaneClaim { lane: JobLane::default(), max_jobs: 1 }];
        let claim = ClaimRequest {
            now: UnixMs(0),
            lease_duration: Nanos::NEVER,
            lanes: wants,
            max_bytes: u64::MAX,
            marks_sent: true,
        };
        let (lease, _) = store.claim(claim).wait().unwrap().jobs.remove(0);
        let step = if round == 2 { JobStep::DeadLettered } else { JobStep::Done };
        let change = JobChange { lease, at: UnixMs(1), reason: "so".into(), step, attempt: None, response: None };
        let record = RecordRequest { changes: vec![change], key_states: Vec::new() };
        assert_eq!(store.record(record).wait(), Ok(RecordReply::default()));
        if round == 2 {
            assert_eq!(store.counts().unwrap().jobs_in(State::DeadLettered), 1, "others are kept");
            store.purge(JobFilter::default()).wait().unwrap();
        }
        assert_eq!(store.list(&JobFilter::default(), 0, 9).unwrap(), []);
    }
    assert_eq!(store.counts().unwrap(), JobCounts::default());
}
