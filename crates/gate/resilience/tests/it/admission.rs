//! Slots of admission, taken and returned by several threads.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::sync::{Barrier, Mutex};

use weir_base::Nanos;
use weir_resilience::admission::{
    Admission, AdmissionConfig, AdmissionVerdict, CallArrival, ConcurrencyLimitConfig, Priority, ServiceOutcome,
};

#[test]
fn no_slot_is_lost_and_no_call_stranded_between_threads() {
    const THREADS: u64 = 4;
    const CALLS: u64 = 20_000;
    const LIMIT: u32 = 1;
    let config = AdmissionConfig {
        limit: ConcurrencyLimitConfig::Fixed(LIMIT),
        max_queue_wait: Nanos::NEVER,
        ..AdmissionConfig::default()
    };
    let admission = Mutex::new(Admission::new(&config, Nanos::ZERO));
    let slots = admission.lock().unwrap().slots().clone();
    // Calls with a granted slot that have not run yet.
    let (running, granted, done) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    let call = CallArrival { deadline: Nanos::NEVER, priority: Priority::Normal, spread: 0, connection: None };
    let run = |now: Nanos| {
        assert!(running.fetch_add(1, SeqCst) < LIMIT, "more calls run than the limit");
        // Otherwise calls hardly ever overlap, and none waits. Not for ever: the other threads may have ended.
        if now.0.is_multiple_of(16) {
            (0..100).take_while(|_| slots.waiting() == 0).for_each(|_| std::thread::yield_now());
        }
        running.fetch_sub(1, SeqCst);
        done.fetch_add(1, SeqCst);
        if slots.release(ServiceOutcome::Failed) {
            let mut actions = Vec::new();
            admission.lock().unwrap().grant_slots(now, &mut actions);
            granted.fetch_add(actions.len() as u32, SeqCst);
        }
    };
    let run_granted = |now: Nanos| {
        while granted.fetch_update(SeqCst, SeqCst, |count| count.checked_sub(1)).is_ok() {
            run(now);
        }
    };
    let begin = Barrier::new(THREADS as usize);
    let (rejected, waited) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                begin.wait();
                for turn in 0..CALLS {
                    let now = Nanos(turn);
                    let verdict = if slots.try_acquire(call.rank()) {
                        AdmissionVerdict::Run
                    } else {
                        admission.lock().unwrap().arrive(now, &call, &mut Vec::new())
                    };
                    match verdict {
                        AdmissionVerdict::Run => run(now),
                        AdmissionVerdict::Wait(..) => drop(waited.fetch_add(1, SeqCst)),
                        AdmissionVerdict::Reject(_) => drop(rejected.fetch_add(1, SeqCst)),
                    }
                    run_granted(now);
                }
            });
        }
    });
    run_granted(Nanos(CALLS));
    assert_eq!((slots.in_flight(), slots.waiting()), (0, 0));
    assert!(waited.into_inner() > 100, "nothing was tested");
    assert_eq!(u64::from(done.into_inner() + rejected.into_inner()), THREADS * CALLS);
}
