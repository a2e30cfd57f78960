//! Places that threads take from one another.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use weir::decide::Nanos;
use weir::decide::admit::{
    Admission, AdmissionConfig, AdmissionVerdict, CallArrival, ConcurrencyLimitConfig, Priority, ServiceOutcome,
};

#[test]
fn threads_that_come_and_go_lose_no_place_and_strand_nobody() {
    const THREADS: u64 = 4;
    const CALLS: u64 = 20_000;
    let terms = AdmissionConfig {
        limit: ConcurrencyLimitConfig::Fixed(3),
        max_queue_wait: Nanos::NEVER,
        ..AdmissionConfig::default()
    };
    let admission = Mutex::new(Admission::new(&terms, Nanos::ZERO));
    let room = admission.lock().unwrap().slots().clone();
    // Who has a place by hand-over and has not taken it yet.
    let (inside, owed, done) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    let call = CallArrival { deadline: Nanos::NEVER, priority: Priority::Normal, spread: 0 };
    let visit = |now: Nanos| {
        assert!(inside.fetch_add(1, SeqCst) < 3, "more are in than may be");
        std::hint::spin_loop();
        inside.fetch_sub(1, SeqCst);
        done.fetch_add(1, SeqCst);
        if room.release(ServiceOutcome::Failed) {
            let mut actions = Vec::new();
            admission.lock().unwrap().grant_slots(now, &mut actions);
            owed.fetch_add(actions.len() as u32, SeqCst);
        }
    };
    let redeem = |now: Nanos| {
        while owed.fetch_update(SeqCst, SeqCst, |owed| owed.checked_sub(1)).is_ok() {
            visit(now);
        }
    };
    let refused = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for turn in 0..CALLS {
                    let now = Nanos(turn);
                    let verdict = if room.try_acquire(call.rank()) {
                        AdmissionVerdict::Run
                    } else {
                        admission.lock().unwrap().arrive(now, &call, &mut Vec::new())
                    };
                    match verdict {
                        AdmissionVerdict::Run => visit(now),
                        AdmissionVerdict::Wait(..) => {}
                        AdmissionVerdict::Reject(_) => drop(refused.fetch_add(1, SeqCst)),
                    }
                    redeem(now);
                }
            });
        }
    });
    redeem(Nanos(CALLS));
    assert_eq!((room.in_flight(), room.waiting()), (0, 0));
    assert_eq!(u64::from(done.into_inner() + refused.into_inner()), THREADS * CALLS);
}
