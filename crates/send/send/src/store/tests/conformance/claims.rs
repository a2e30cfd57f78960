//! Claims: order, bounds, expiry and due retries.

use super::*;

#[test]
fn higher_priorities_go_first_and_then_first_in_first_out() {
    roomy(|store| {
        let with = |id, priority| Job { priority, ..job(id) };
        submit(&store, vec![with("a", 0), with("b", 5), with("c", -1), with("d", 5)]);
        assert_eq!(ids(&claim(&store, any(3))), ["b", "d", "a"]);
        assert_eq!(ids(&claim(&store, any(3))), ["c"]);
        assert!(claim(&store, any(3)).is_empty());
    });
}

#[test]
fn by_deadline_the_earliest_deadline_goes_first() {
    each(QueueBounds::default(), JobOrder::Deadline, |store| {
        let with = |id, ms| Job { expires_at: Some(NOW.plus_ms(ms)), ..job(id) };
        submit(&store, vec![job("never"), with("b", 50), with("c", 20), with("d", 50)]);
        assert_eq!(ids(&claim(&store, any(9))), ["c", "b", "d", "never"]);
    });
}

#[test]
fn jobs_of_a_blocked_key_do_not_block_others() {
    roomy(|store| {
        let with = |id, hint: &str| Job { key_hint: Some(hint.into()), ..job(id) };
        submit(&store, vec![with("a", "slow"), with("b", "slow"), with("c", "quick"), job("d")]);
        let hints = [(None, 1), (Some("quick".into()), 1), (Some("slow".into()), 2)];
        assert_eq!(store.queued_by_key().unwrap(), hints);
        let wants = [Some("quick"), None].map(|hint| LaneClaim { lane: here(hint), max_jobs: 9 });
        assert_eq!(ids(&claim(&store, ClaimRequest { lanes: wants.to_vec(), ..any(0) })), ["c", "d"]);
    });
}

#[test]
fn a_claim_ends_at_its_bytes() {
    roomy(|store| {
        submit(&store, vec![job("a"), job("b"), job("c")]);
        let most_bytes = job("a").bytes() + 1;
        assert_eq!(ids(&claim(&store, ClaimRequest { max_bytes: most_bytes, ..any(9) })), ["a", "b"]);
    });
}

#[test]
fn an_expired_job_is_not_claimed() {
    roomy(|store| {
        submit(&store, vec![Job { expires_at: Some(NOW.plus_ms(10)), ..job("a") }, job("b")]);
        let early = store.claim(at(9, any(0))).wait().unwrap();
        assert_eq!((early.next_due, early.expired.len()), (Some(NOW.plus_ms(10)), 0));
        let late = store.claim(at(10, any(9))).wait().unwrap();
        assert_eq!((ids(&late.jobs), late.next_due), (vec!["b"], None));
        assert_eq!(late.expired, [detail(&store, "a").entry]);
        assert_eq!(status(&store, "a").state, State::Expired);
        assert_eq!(detail(&store, "a").history.len(), 1);
        check_counts(&store);
    });
}

#[test]
fn a_retrying_job_is_claimed_when_it_is_due_and_not_before() {
    roomy(|store| {
        submit(&store, vec![job("a")]);
        let lease = claim(&store, any(1))[0].0;
        record(&store, change(lease, JobStep::Retrying { retry_at: NOW.plus_ms(100) }, attempt(503)));
        let dead = status(&store, "a");
        assert_eq!((dead.state, dead.retry_at, dead.attempts), (State::Retrying, Some(NOW.plus_ms(100)), 1));
        let early = store.claim(at(99, any(1))).wait().unwrap();
        assert_eq!((early.jobs.len(), early.next_due), (0, Some(NOW.plus_ms(100))));
        let claimed = claim(&store, at(100, any(1)));
        assert_eq!((claimed[0].1.status.attempts, claimed[0].1.status.retry_at), (1, None));
        record(&store, change(claimed[0].0, JobStep::DeadLettered, attempt(503)));
        let found = detail(&store, "a");
        assert_eq!((found.entry.status.state, found.entry.status.attempts), (State::DeadLettered, 2));
        let states: Vec<_> = found.history.iter().map(|event| (event.state, event.attempt.clone())).collect();
        assert_eq!(states, [(State::Retrying, attempt(503)), (State::DeadLettered, attempt(503))]);
        check_counts(&store);
    });
}
