//! Submissions to a full queue.

use super::*;

#[test]
fn jobs_that_fit_are_accepted_though_the_store_is_closed_at_once() {
    roomy(|store| {
        // More than any store submits in one transaction.
        let jobs: Vec<Job> = (0..12_000).map(|number| job(&number.to_string())).collect();
        let tickets = [store.submit(jobs), store.submit(vec![job("last")])];
        let name = format!("{store:?}");
        drop(store);
        for (ticket, count) in tickets.into_iter().zip([12_000, 1]) {
            assert_eq!(ticket.wait().map(|receipts| receipts.len()), Ok(count), "{name}");
        }
    });
}

#[test]
fn a_submission_waits_while_the_queue_is_full_and_is_accepted_in_parts() {
    for bounds in [
        QueueBounds { jobs: 2, ..QueueBounds::default() },
        QueueBounds { bytes: 2 * job("a").bytes(), ..QueueBounds::default() },
    ] {
        each(bounds, JobOrder::Fifo, |store| {
            submit(&store, vec![job("a")]);
            let mut waits = Box::pin(store.submit(vec![job("b"), job("c"), job("d")]));
            let mut later = Box::pin(store.submit(vec![job("e")]));
            let gone = store.submit(vec![job("f")]);
            drop(gone);
            let still = |ticket: &mut std::pin::Pin<Box<StoreFuture<_>>>| {
                matches!(ticket.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending)
            };
            for expected in ["a", "b"] {
                let claimed = claim(&store, any(1));
                assert_eq!(ids(&claimed), [expected]);
                assert!(still(&mut waits) && still(&mut later), "leased jobs take room, too");
                assert_eq!(store.counts().unwrap().open_jobs(), 2);
                record(&store, change(claimed[0].0, JobStep::Done, None));
            }
            assert_eq!(Pin::into_inner(waits).wait().unwrap(), [2, 3, 4].map(Receipt::Accepted));
            assert!(still(&mut later));
            let lease = claim(&store, any(1))[0].0;
            record(&store, change(lease, JobStep::DeadLettered, None));
            assert_eq!(Pin::into_inner(later).wait().unwrap(), [Receipt::Accepted(5)]);
            assert!(store.inspect(&JobSelector::Id("f".into())).unwrap().is_none(), "who gave up is not in");
            check_counts(&store);
        });
    }
}

#[test]
fn a_job_that_never_fits_is_rejected_and_those_before_it_are_accepted() {
    each(QueueBounds { bytes: 200, ..QueueBounds::default() }, JobOrder::Fifo, |store| {
        let mut large = job("large");
        large.request.body = vec![b'x'; 200];
        let bytes = large.bytes();
        let told = store.submit(vec![job("a"), large, job("b")]).wait().unwrap_err();
        assert_eq!(told, StoreError::TooLarge { index: 1, bytes, max_bytes: 200 });
        assert_eq!(submit(&store, vec![job("c")]), [Receipt::Accepted(2)]);
        assert_eq!(check_counts(&store).open_jobs(), 2);
    });
}
