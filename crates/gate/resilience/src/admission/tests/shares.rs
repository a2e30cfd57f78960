//! Properties of connections' shares.

use proptest::prelude::*;

use crate::admission::{
    Admission, AdmissionConfig, AdmissionVerdict, CallArrival, ConcurrencyLimitConfig, ConnectionNumber, Priority,
    QueueAction, QueueTicket, ServiceOutcome, ServiceSample,
};
use weir_base::Nanos;

/// A pool, its calls in flight, and its queued calls, each with its caller.
struct SharedPool {
    admission: Admission,
    now: Nanos,
    running: Vec<Option<ConnectionNumber>>,
    queued: Vec<(QueueTicket, Option<ConnectionNumber>)>,
}

impl SharedPool {
    fn new(limit: u32, max_queued: u32) -> Self {
        let config = AdmissionConfig {
            limit: ConcurrencyLimitConfig::Fixed(limit),
            max_queue_wait: Nanos::NEVER,
            overload_queue_wait: Nanos::NEVER,
            max_queued,
        };
        let admission = Admission::new(&config, Nanos::ZERO);
        Self { admission, now: Nanos::ZERO, running: Vec::new(), queued: Vec::new() }
    }

    /// Whether the call runs at once.
    fn arrive(&mut self, connection: Option<ConnectionNumber>) -> bool {
        let call = CallArrival { deadline: Nanos::NEVER, priority: Priority::Normal, spread: 0, connection };
        let mut actions = Vec::new();
        let verdict = if self.admission.slots().try_acquire_within_share(&call) {
            AdmissionVerdict::Run
        } else {
            self.admission.arrive(self.now, &call, &mut actions)
        };
        self.apply(actions);
        match verdict {
            AdmissionVerdict::Run => self.running.push(connection),
            AdmissionVerdict::Wait(ticket, _) => self.queued.push((ticket, connection)),
            AdmissionVerdict::Reject(_) => {}
        }
        verdict == AdmissionVerdict::Run
    }

    fn apply(&mut self, actions: Vec<QueueAction>) {
        for action in actions {
            let (QueueAction::Run(ticket) | QueueAction::Reject(ticket, _)) = action;
            let at = self.queued.iter().position(|(other, _)| *other == ticket);
            let ended = at.map(|at| self.queued.remove(at));
            if let (QueueAction::Run(_), Some((_, connection))) = (action, ended) {
                self.running.push(connection);
            }
        }
    }

    fn end(&mut self, which: usize) {
        if self.running.is_empty() {
            return;
        }
        let connection = self.running.swap_remove(which % self.running.len());
        connection.iter().for_each(|connection| self.admission.slots().depart_share(*connection));
        let _ = self.admission.slots().release(ServiceOutcome::Responded);
        let sample =
            ServiceSample { started: self.now, in_flight_at_start: 1, lag: Nanos::ZERO, read_delay: Nanos::ZERO };
        let mut actions = Vec::new();
        self.admission.ended(self.now, &sample, ServiceOutcome::Responded, &mut actions);
        connection.iter().for_each(|connection| self.admission.slots().release_share(*connection));
        self.apply(actions);
    }

    fn held(&self, connection: Option<ConnectionNumber>) -> u32 {
        self.running.iter().filter(|other| **other == connection).count() as u32
    }
}

const ALONE: Option<ConnectionNumber> = Some(ConnectionNumber(1));

#[test]
fn a_connection_that_is_alone_may_use_all_slots() {
    let mut pool = SharedPool::new(200, 0);
    assert!((0..200).all(|_| pool.arrive(ALONE)));
    assert!(!pool.arrive(ALONE));
    (0..200).for_each(|_| pool.end(0));
    assert!((0..200).all(|_| pool.arrive(ALONE)), "also the second time");
}

#[test]
fn beside_others_some_slots_stay_free_for_them() {
    let mut pool = SharedPool::new(200, 0);
    assert!(pool.arrive(None));
    pool.end(0);
    let taken = (0..250).filter(|_| pool.arrive(ALONE)).count();
    assert_eq!(taken, 189);
    assert!((0..11).all(|_| pool.arrive(None)));
    assert!(!pool.arrive(None), "the limit holds for all");
}

#[test]
fn one_that_has_all_slots_crowds_others_out_until_they_have_some() {
    let mut pool = SharedPool::new(100, 0);
    (0..250).for_each(|_| _ = pool.arrive(ALONE));
    let crowds = |pool: &SharedPool| pool.admission.crowds_out_others(pool.now, ConnectionNumber(1));
    assert!(!crowds(&pool), "it is alone");
    assert!(!pool.arrive(None));
    assert!(crowds(&pool));
    (0..50).for_each(|_| pool.end(0));
    (0..250).for_each(|_| _ = pool.arrive(ALONE));
    assert_eq!(pool.held(ALONE), 95, "beside others");
    pool.now = Nanos::from_secs(2);
    assert!(pool.arrive(None) && !crowds(&pool));
}

#[test]
fn calls_beyond_the_share_wait_behind_others_and_run_when_those_are_gone() {
    let mut pool = SharedPool::new(20, 1000);
    assert!(pool.arrive(None));
    (0..30).for_each(|_| _ = pool.arrive(ALONE));
    assert_eq!((pool.held(ALONE), pool.queued.len()), (18, 12));
    assert!(pool.arrive(None), "though calls wait");
    assert!(!pool.arrive(None));
    let last = pool.running.iter().position(Option::is_some).unwrap_or_default();
    pool.end(last);
    assert_eq!((pool.held(None), pool.held(ALONE)), (3, 17), "the other call was first");
}

proptest! {
    /// With others there, no connection gets a slot beyond its share, and no call without a share waits beside a free
    /// slot; nothing is lost.
    #[test]
    fn shares_hold_for_any_order_of_calls(
        limit in 1_u32..60,
        max_queued in 0_u32..20,
        steps in prop::collection::vec((0_usize..5, any::<usize>(), 0_u64..100), 1..300),
    ) {
        let mut pool = SharedPool::new(limit, max_queued);
        // A caller of HTTP/1 has been there.
        pool.arrive(None);
        pool.end(0);
        for (what, which, pause_ms) in steps {
            pool.now += Nanos::from_millis(pause_ms);
            match what {
                0 => _ = pool.arrive(None),
                1 | 2 => {
                    let connection = Some(ConnectionNumber(what as u32));
                    let (held, free) = (pool.held(connection), limit - pool.running.len() as u32);
                    let runs = pool.arrive(connection);
                    prop_assert!(!runs || free > 0 && held < 16 * free, "{held} held, {free} free");
                }
                _ => pool.end(which),
            }
            let slots = pool.admission.slots();
            prop_assert_eq!(slots.in_flight() as usize, pool.running.len());
            prop_assert_eq!(slots.waiting() as usize, pool.queued.len());
            for number in [1, 2] {
                prop_assert_eq!(slots.held_by(ConnectionNumber(number)), pool.held(Some(ConnectionNumber(number))));
            }
            let is_full = pool.running.len() as u32 == limit;
            prop_assert!(is_full || pool.queued.iter().all(|(_, connection)| connection.is_some()));
        }
    }
}
