//! Slots, flow estimates, and admission in front of a service in virtual time.

pub(crate) mod oracle;
mod shares;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::abandoned::AbandonedCalls;
use super::service_rate::{ServiceFlow, ServiceRate};
use super::*;

#[test]
fn a_slot_beyond_the_limit_is_taken_by_force_only() {
    let slots = Slots::new(2);
    assert!(slots.try_acquire(0) && slots.try_acquire(0) && !slots.try_acquire(0));
    slots.force_acquire();
    assert_eq!(slots.in_flight(), 3);
    assert!(!slots.release(ServiceOutcome::Responded));
    assert!(!slots.try_acquire(0), "the forced call has to end first");
    assert!(!slots.release(ServiceOutcome::Responded));
    assert!(slots.try_acquire(0));
}

/// Flow estimates for an upstream of 0.2 ms while twenty callers keep all its slots taken, after a time `before` with
/// one call each `every`.
fn burst_after(before: Nanos, every: Nanos) -> Vec<ServiceFlow> {
    const SERVICE: Nanos = Nanos(200_000);
    let (mut rate, slots) = (ServiceRate::new(Nanos::ZERO), Slots::new(20));
    let one = |rate: &mut ServiceRate, now: Nanos| {
        assert!(!slots.release(ServiceOutcome::Responded));
        rate.record(now, SERVICE);
        rate.update(now, &slots);
    };
    let mut now = Nanos::ZERO;
    while every < Nanos::NEVER && now + every < before {
        now += every;
        assert!(slots.try_acquire(0));
        one(&mut rate, now + SERVICE);
    }
    now = before;
    assert!((0..20).all(|_| slots.try_acquire(0)));
    let mut flows = Vec::new();
    for _ in 0..5000 {
        // One of the twenty ends each hundredth of a millisecond, and another arrives.
        now += Nanos(SERVICE.0 / 20);
        one(&mut rate, now);
        assert!(slots.try_acquire(0));
        flows.push(rate.flow(20));
    }
    flows
}

#[test]
fn a_pause_before_a_burst_does_not_count_as_what_the_upstream_can_do() {
    let never = Nanos::NEVER;
    for (before_ms, every) in [(10, never), (39, never), (60, never), (99, never), (5_000, never)]
        .into_iter()
        .chain([5, 15, 19, 21, 30, 45, 90].map(|every_ms| (2_000, Nanos::from_millis(every_ms))))
    {
        let flows = burst_after(Nanos::from_millis(before_ms), every);
        // 100,000 responses per second: a queue of eighty takes a millisecond. Less than five is not a reason to
        // reject.
        let longest = flows.iter().map(|flow| flow.wait_for(80)).max().expect("flows");
        assert!(longest < Nanos::from_millis(5), "{before_ms} ms, one each {every:?}: {longest:?}");
        let last = flows.last().expect("flows").per_s;
        assert!((80_000.0..120_000.0).contains(&last), "{before_ms} ms, one each {every:?}: {last} per second");
    }
}

/// Service with a number of slots, first come first served, and admission in front of it, in virtual time.
pub(super) struct StationModel {
    pub(super) admission: Admission,
    slots: usize,
    seed: u64,
    /// End, start and concurrency of the calls in service.
    done_at: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    queue: VecDeque<(Nanos, u32)>,
    pub(super) rejected: u64,
    pub(super) responded: u64,
    now: Nanos,
}

impl StationModel {
    pub(super) fn new(slots: usize) -> Self {
        let admission = Admission::new(&AdmissionConfig::default(), Nanos::ZERO);
        let (done_at, queue) = (BinaryHeap::new(), VecDeque::new());
        Self { admission, slots, seed: 1, done_at, queue, rejected: 0, responded: 0, now: Nanos::ZERO }
    }

    fn unit(&mut self) -> f64 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.seed >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn fill(&mut self) {
        while self.done_at.len() < self.slots {
            let Some((started, in_flight)) = self.queue.pop_front() else { return };
            let service_time = Nanos::from_millis(50 + (100.0 * self.unit()) as u64);
            self.done_at.push(Reverse((self.now + service_time, started.0, in_flight)));
        }
    }

    fn send(&mut self) {
        self.queue.push_back((self.now, self.admission.slots().in_flight()));
        self.fill();
    }

    fn apply(&mut self, actions: Vec<QueueAction>) {
        for action in actions {
            match action {
                QueueAction::Run(_) => self.send(),
                QueueAction::Reject(..) => self.rejected += 1,
            }
        }
    }

    /// Poisson arrivals at a rate for a time, of `priorities` in turn. Counts arrivals and admitted calls by priority.
    pub(super) fn run(
        &mut self,
        per_s: f64,
        seconds: f64,
        priorities: &[Priority],
        arrived: &mut [u64; 4],
        admitted: &mut [u64; 4],
    ) {
        let end = self.now + Nanos::from_secs_f64(seconds);
        let mut next = self.now;
        for turn in 0_usize.. {
            next += Nanos::from_secs_f64(-self.unit().ln() / per_s);
            if next > end {
                break;
            }
            while let Some(Reverse((at, started, in_flight))) =
                self.done_at.peek().copied().filter(|done| done.0.0 <= next)
            {
                self.done_at.pop();
                self.now = at;
                self.fill();
                self.responded += 1;
                let _ = self.admission.slots().release(ServiceOutcome::Responded);
                let mut actions = Vec::new();
                self.admission.ended(
                    at,
                    &ServiceSample {
                        started: Nanos(started),
                        in_flight_at_start: in_flight,
                        lag: Nanos::ZERO,
                        read_delay: Nanos::ZERO,
                    },
                    ServiceOutcome::Responded,
                    &mut actions,
                );
                self.apply(actions);
            }
            self.now = next;
            let priority = priorities[turn % priorities.len()];
            arrived[priority.index()] += 1;
            let call =
                CallArrival { deadline: Nanos::NEVER, priority, spread: (256.0 * self.unit()) as u8, connection: None };
            let mut actions = Vec::new();
            let verdict = if self.admission.slots().try_acquire(call.rank()) {
                AdmissionVerdict::Run
            } else {
                self.admission.arrive(next, &call, &mut actions)
            };
            self.apply(actions);
            match verdict {
                AdmissionVerdict::Run => self.send(),
                AdmissionVerdict::Wait(..) => {}
                AdmissionVerdict::Reject(_) => self.rejected += 1,
            }
            admitted[priority.index()] += u64::from(!matches!(verdict, AdmissionVerdict::Reject(_)));
        }
    }
}

fn load(station: &mut StationModel, per_s: f64, seconds: f64) {
    station.run(per_s, seconds, &[Priority::Normal], &mut [0; 4], &mut [0; 4]);
}

#[test]
fn the_limit_of_an_overloaded_service_is_about_its_slots() {
    for slots in [20, 50, 200] {
        let mut station = StationModel::new(slots);
        let capacity = slots as f64 * 10.0;
        load(&mut station, 2.0 * capacity, 20.0);
        let before = station.responded;
        let mut limits = 0.0;
        for _ in 0..20 {
            load(&mut station, 2.0 * capacity, 1.0);
            limits += f64::from(station.admission.slots().limit()) / 20.0;
        }
        let (limit, goodput) = (limits / slots as f64, (station.responded - before) as f64 / (20.0 * capacity));
        assert!((0.9..1.3).contains(&limit), "{slots} slots, limit {limit}");
        assert!(goodput > 0.9, "{slots} slots, goodput {goodput}");
    }
}

#[test]
fn calls_to_a_service_without_a_limit_are_never_rejected() {
    let mut station = StationModel::new(usize::MAX);
    for per_s in [10.0, 1000.0, 100.0, 3000.0, 20.0] {
        load(&mut station, per_s, 10.0);
    }
    assert_eq!(station.rejected, 0);
    assert!(station.admission.adaptive().is_some_and(|limit| limit.gradient() > 0.8));
}

#[test]
fn critical_calls_are_served_while_the_capacity_suffices_for_them() {
    let mut station = StationModel::new(50);
    let all = [Priority::Critical, Priority::Low, Priority::Normal, Priority::Low];
    load(&mut station, 250.0, 10.0);
    // Three times the capacity; a quarter of the calls is critical.
    station.run(1500.0, 10.0, &all, &mut [0; 4], &mut [0; 4]);
    let (mut arrived, mut admitted) = ([0; 4], [0; 4]);
    station.run(1500.0, 20.0, &all, &mut arrived, &mut admitted);
    let admitted_fraction = |priority: Priority| admitted[priority.index()] as f64 / arrived[priority.index()] as f64;
    assert!(admitted_fraction(Priority::Critical) > 0.99, "{}", admitted_fraction(Priority::Critical));
    assert!(admitted_fraction(Priority::Low) < 0.1, "{}", admitted_fraction(Priority::Low));
    assert!(
        station.admission.slots().shed_threshold()
            <= CallArrival { deadline: Nanos::NEVER, priority: Priority::Critical, spread: 0, connection: None }.rank()
    );
}

#[test]
fn an_abandoned_call_holds_its_slot_until_a_later_call_has_a_response() {
    let mut abandoned = AbandonedCalls::default();
    assert_eq!(abandoned.add(Nanos(5)) + abandoned.add(Nanos(3)) + abandoned.add(Nanos(9)), 0);
    assert_eq!(abandoned.responded(Nanos(20), Nanos(2)), 0);
    assert_eq!(abandoned.responded(Nanos(20), Nanos(5)), 2);
    assert_eq!(abandoned.len(), 1);
    assert_eq!(abandoned.responded(Nanos::from_secs(100), Nanos(1)), 1, "after the maximum age");
}

#[test]
fn slowly_read_responses_are_not_samples_of_the_upstream() {
    let after = |idle: Nanos| {
        let mut admission = Admission::new(&AdmissionConfig::default(), Nanos::ZERO);
        let mut now = Nanos::ZERO;
        for turn in 0..4000 {
            let started: Vec<Nanos> = (0..10).filter(|_| admission.slots().try_acquire(0)).map(|_| now).collect();
            let read = if turn < 1000 { Nanos::ZERO } else { Nanos::from_millis(500) };
            now += Nanos::from_millis(10) + read;
            for started in started {
                let _ = admission.slots().release(ServiceOutcome::Responded);
                let sample =
                    ServiceSample { started, in_flight_at_start: 10, lag: Nanos::ZERO, read_delay: read.min(idle) };
                admission.ended(now, &sample, ServiceOutcome::Responded, &mut Vec::new());
            }
        }
        let limit = admission.adaptive().unwrap();
        (limit.limit(), limit.no_load_time().unwrap())
    };
    let (limit, no_load) = after(Nanos::from_millis(500));
    assert!(limit >= 10 && no_load < Nanos::from_millis(15), "limit {limit}, no_load {no_load}");
    let (_, no_load) = after(Nanos::ZERO);
    assert!(no_load > Nanos::from_millis(400), "an upstream that is that slow is measured: {no_load}");
}
