//! Circuit of one host: detects an outage, and probes for its end.
//!
//! ```text
//!             5 jobs failed without a response between       no response in the usual time
//!   closed ───────────────────────────────────────► suspect ─────────────────────────────► open
//!     ▲  ▲       or silence (`silence.rs`)              │                                    │ a probe, now and
//!     │  └──────────────── any response ────────────────┘                                    │ then
//!     └─────────────────────────────── any response ────────────────────────────────────────┘
//! ```
//!
//! A failure is evidence against the host only while there are no responses. Failures in quick succession are not,
//! where responses take long: hence the suspect state, in which nothing is sent for about a response time; after a
//! silence, for the minimum of the backoff.
//!
//! Silence charges no job and gives none up: a request that was sent before its end, and fails without a response, is
//! excused. Probes into a silence hang, too, and more of them may be in flight. When it is over the full rate is back
//! at once, though the requests that hang are still in flight. They are abandoned when the host has responded to others
//! for as long again as they had waited: until then TCP may send a lost packet again, since its waits double.
//!
//! Probes are independent of the jobs' backoff. The wait for the next one is a twentieth of the outage so far, within
//! the bounds of the backoff: the end of an outage is found within a twentieth of its length or the minimum, whichever
//! is longer, and an outage of length D costs `16 + 16 ln(D / 10 s)` probes with the defaults. Doubling would cost
//! fewer probes, and find the end up to another whole outage later.

use super::silence::SilenceDetector;
use super::{DispatchRules, JobId, Nanos};
use weir_base::rng::SeededRng;
use weir_retry::backoff::Backoff;

/// Jobs that have to fail without a response between them to open the circuit.
pub(super) const MIN_FAILED_JOBS: usize = 5;
/// Maximum probes in flight: several, so that one that hangs does not hide the end of the outage.
const MAX_PROBES_IN_FLIGHT: usize = 4;
/// Maximum probes of a silent host, as 1/N of all slots: probes into a silence hang until their timeouts.
const SILENT_PROBES_DIVISOR: usize = 2;
/// The wait for the next probe is 1/N of the outage so far.
const PROBE_WAIT_DIVISOR: u64 = 20;
/// Minimum and maximum duration of the suspect state.
const MIN_SUSPECT_TIME: Nanos = Nanos::from_millis(50);
const MAX_SUSPECT_TIME: Nanos = Nanos::from_secs(2);
/// Shortest silence while there are too few responses for a quantile of their times.
const MIN_ROUGH_SILENCE: Nanos = Nanos::from_millis(500);
/// Interval in which requests that hang are abandoned after a silence.
pub(super) const ABANDON_INTERVAL: Nanos = Nanos::SECOND;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Suspect { until: Nanos },
    Open,
}

/// Permission to send to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendPermission {
    /// All requests.
    All,
    /// One request as a probe.
    Probe,
    /// None before this time; [`Nanos::NEVER`]: before a probe has ended.
    Wait(Nanos),
}

/// Silence of a host that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EndedSilence {
    pub(super) ended_at: Nanos,
    /// Age at which a request that was sent before the end counts as one that hangs.
    pub(super) hanging_age: Nanos,
}

/// Outage detector of one host: closed, suspect or open.
#[derive(Clone, Debug)]
pub(super) struct HostCircuit {
    backoff: Backoff,
    state: State,
    rng: SeededRng,
    /// Jobs that failed since the last response, up to [`MIN_FAILED_JOBS`].
    failed_jobs: Vec<JobId>,
    /// Time of the first of these failures.
    failing_since: Nanos,
    /// Earliest time of the next probe, or of a job that failed before.
    next_attempt: Nanos,
    probes_in_flight: usize,
    /// Probes since the circuit opened.
    probes: u64,
    /// Approximate response time.
    usual_response_time: Nanos,
    pub(super) silence: SilenceDetector,
    /// Begin of the silence, if silence is why the circuit is suspect or open.
    silent_since: Option<Nanos>,
    max_silent_probes: usize,
    /// End of the last silence that opened the circuit, and the next time to abandon requests that hang since then.
    silence_ended: Nanos,
    abandon_at: Nanos,
}

impl HostCircuit {
    pub(super) fn new(rules: &DispatchRules, rng: SeededRng) -> Self {
        Self {
            backoff: rules.retry.backoff,
            state: State::Closed,
            rng,
            failed_jobs: Vec::new(),
            failing_since: Nanos::ZERO,
            next_attempt: Nanos::ZERO,
            probes_in_flight: 0,
            probes: 0,
            usual_response_time: Nanos::ZERO,
            silence: SilenceDetector::new(),
            silent_since: None,
            max_silent_probes: (rules.max_in_flight / SILENT_PROBES_DIVISOR).max(MAX_PROBES_IN_FLIGHT),
            silence_ended: Nanos::ZERO,
            abandon_at: Nanos::NEVER,
        }
    }

    /// Records a response of any kind to a request that was sent then. `is_typical`: the time counts as a response
    /// time.
    pub(super) fn heard(&mut self, now: Nanos, sent: Nanos, is_typical: bool) {
        self.silence.responded(now, sent, is_typical);
        if self.silent_since.is_some() && self.state != State::Open {
            (self.state, self.silent_since) = (State::Closed, None);
        }
    }

    /// Records a response that is not a failure, to a request that was sent then. True if probes had failed before.
    pub(super) fn responded(&mut self, now: Nanos, sent: Nanos) -> bool {
        let took = now - sent;
        self.usual_response_time =
            Nanos((self.usual_response_time.0 / 8).saturating_mul(7).saturating_add(took.0 / 8)).max(Nanos(took.0 / 8));
        self.state = State::Closed;
        self.failed_jobs.clear();
        let probes = std::mem::take(&mut self.probes);
        if self.silent_since.take().is_none() {
            return probes > 1;
        }
        self.silence_ended = now;
        self.abandon_at = now + ABANDON_INTERVAL;
        false
    }

    /// Records a failure that may be the host's.
    pub(super) fn failed(&mut self, now: Nanos, job: JobId) {
        if self.failed_jobs.is_empty() {
            self.failing_since = now;
        }
        if self.failed_jobs.len() < MIN_FAILED_JOBS && !self.failed_jobs.contains(&job) {
            self.failed_jobs.push(job);
            if self.failed_jobs.len() == MIN_FAILED_JOBS && self.state == State::Closed {
                let length =
                    Nanos(self.usual_response_time.0.saturating_mul(2)).clamp(MIN_SUSPECT_TIME, MAX_SUSPECT_TIME);
                self.state = State::Suspect { until: now + length };
            }
        }
        if self.state == State::Closed {
            self.next_attempt = now + self.next_wait(now);
        }
    }

    /// Advances the time. True if the circuit opens. Without jobs to send there is nothing to hold back in a silence.
    pub(super) fn advance(&mut self, now: Nanos, has_jobs: bool) -> bool {
        let rough_limit = self.rough_silence_limit();
        if self.state == State::Closed && has_jobs && self.silence.is_silent(now, rough_limit) {
            self.silent_since = Some(self.silence.responded_at());
            self.next_attempt = now + self.next_wait(now);
            self.state = State::Suspect { until: self.next_attempt };
        }
        let opens = matches!(self.state, State::Suspect { until } if until <= now);
        if opens {
            self.state = State::Open;
            if self.silent_since.is_none() {
                self.next_attempt = self.failing_since + self.next_wait(now);
            }
        }
        opens
    }

    /// Requests that may be sent now.
    pub(super) fn permission(&self, now: Nanos) -> SendPermission {
        match self.state {
            State::Closed => SendPermission::All,
            State::Suspect { until } => SendPermission::Wait(until),
            State::Open if self.probes_in_flight >= self.max_probes() => SendPermission::Wait(Nanos::NEVER),
            State::Open if now < self.next_attempt => SendPermission::Wait(self.next_attempt),
            State::Open => SendPermission::Probe,
        }
    }

    /// Time at which a job that failed since the last response may be retried, if there are no others.
    pub(super) fn next_attempt(&self) -> Nanos {
        self.next_attempt
    }

    /// Records a probe: a request that is sent while the circuit is open.
    pub(super) fn probe(&mut self, now: Nanos) {
        self.probes_in_flight += 1;
        self.probes += 1;
        self.next_attempt = now + self.next_wait(now);
    }

    /// Records the end of a probe, whatever its outcome.
    pub(super) fn probe_ended(&mut self) {
        self.probes_in_flight = self.probes_in_flight.saturating_sub(1);
    }

    pub(super) fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Start of the time without responses, if jobs have failed since.
    pub(super) fn failing_since(&self) -> Option<Nanos> {
        (!self.failed_jobs.is_empty()).then_some(self.failing_since)
    }

    /// Start of the silence that has opened the circuit.
    pub(super) fn silent_since(&self) -> Option<Nanos> {
        self.silent_since.filter(|_| self.is_open())
    }

    /// Whether a request that was sent then had no response because the host was silent.
    pub(super) fn is_excused(&self, sent: Nanos) -> bool {
        sent < self.silence_ended
    }

    /// Next time to abandon requests that were sent before the last silence ended.
    pub(super) fn abandon_at(&self) -> Nanos {
        self.abandon_at
    }

    pub(super) fn set_abandon_at(&mut self, at: Nanos) {
        self.abandon_at = at;
    }

    /// Last silence, if it is time to abandon requests that hang since then and the host responds.
    pub(super) fn abandonment(&mut self, now: Nanos) -> Option<EndedSilence> {
        if now < self.abandon_at {
            return None;
        }
        self.abandon_at = Nanos::NEVER;
        let rough_limit = self.rough_silence_limit();
        (self.state == State::Closed)
            .then(|| EndedSilence { ended_at: self.silence_ended, hanging_age: self.silence.limit(now, rough_limit) })
    }

    /// Limit of a silence with too few responses for a quantile of their times.
    fn rough_silence_limit(&self) -> Nanos {
        Nanos(self.usual_response_time.0.saturating_mul(8)).max(MIN_ROUGH_SILENCE)
    }

    /// Time without a response after which a host counts as silent.
    pub(super) fn silence_timeout(&self) -> Nanos {
        Nanos(self.usual_response_time.0.saturating_mul(8)).max(Nanos::SECOND)
    }

    fn next_wait(&mut self, now: Nanos) -> Nanos {
        let Backoff { min: first, max: most } = self.backoff;
        let since = self.silent_since.unwrap_or(self.failing_since);
        let length = Nanos((now - since).0 / PROBE_WAIT_DIVISOR).max(first);
        // Jitter: senders that detected the outage together must not probe together.
        Nanos((length.0 as f64 * (1.0 + 0.5 * self.rng.unit())) as u64).min(most).max(Nanos::MILLI)
    }

    fn max_probes(&self) -> usize {
        if self.silent_since.is_some() { self.max_silent_probes } else { MAX_PROBES_IN_FLIGHT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Nanos {
        Nanos::from_millis(ms)
    }

    fn circuit() -> HostCircuit {
        HostCircuit::new(&DispatchRules::default(), SeededRng::new(1, 1))
    }

    /// Lets probes fail for a time; returns when they were sent.
    fn probes(circuit: &mut HostCircuit, until: Nanos) -> Vec<Nanos> {
        let (mut now, mut sent) = (Nanos::ZERO, Vec::new());
        while now < until {
            circuit.advance(now, true);
            match circuit.permission(now) {
                SendPermission::Wait(at) => now = at,
                _ => {
                    circuit.probe(now);
                    sent.push(now);
                    circuit.probe_ended();
                    circuit.failed(now, sent.len() as u64);
                }
            }
        }
        sent
    }

    fn open() -> HostCircuit {
        let mut circuit = circuit();
        (0..MIN_FAILED_JOBS as u64).for_each(|job| circuit.failed(ms(0), job));
        circuit
    }

    #[test]
    fn an_outage_of_ten_seconds_costs_less_than_thirty_requests() {
        for seed in 0..200 {
            let mut circuit = HostCircuit { rng: SeededRng::new(seed, 1), ..open() };
            let sent = probes(&mut circuit, ms(10_000));
            assert!((13..=20).contains(&sent.len()), "{}", sent.len());
            assert!(sent.windows(2).all(|pair| pair[1] - pair[0] <= ms(750)), "{sent:?}");
        }
    }

    #[test]
    fn a_long_outage_costs_few_requests_and_its_end_is_found_within_a_twentieth_of_it() {
        let sent = probes(&mut open(), ms(3_600_000));
        assert!(sent.len() < 200, "{}", sent.len());
        for pair in sent.windows(2) {
            let most = Nanos((pair[0].0 / 20).max(ms(500).0) / 10 * 15).min(ms(60_000)) + ms(1);
            assert!(pair[1] - pair[0] <= most, "{pair:?}");
        }
    }

    #[test]
    fn one_job_that_fails_for_ever_does_not_open_it() {
        let mut circuit = circuit();
        (0..100).for_each(|n| circuit.failed(ms(n), 7));
        assert_eq!(circuit.permission(ms(100)), SendPermission::All);
    }

    #[test]
    fn an_answer_closes_it_at_once_and_ends_a_doubt() {
        let mut circuit = open();
        assert_eq!(circuit.permission(ms(10)), SendPermission::Wait(ms(50)));
        assert!(!circuit.responded(ms(20), ms(0)), "nothing was tried in between");
        assert_eq!(circuit.permission(ms(20)), SendPermission::All);
        let mut circuit = open();
        assert!(circuit.advance(ms(50), true) && circuit.is_open());
        probes(&mut circuit, ms(5000));
        assert!(circuit.responded(ms(5100), ms(5000)));
        assert_eq!(circuit.permission(ms(5100)), SendPermission::All);
    }

    #[test]
    fn where_answers_take_long_quick_failures_are_doubted_for_longer() {
        let mut circuit = circuit();
        (0..100).for_each(|_| assert!(!circuit.responded(ms(1000), ms(500))));
        (0..MIN_FAILED_JOBS as u64).for_each(|job| circuit.failed(ms(1000), job));
        let SendPermission::Wait(until) = circuit.permission(ms(1000)) else { panic!("doubted") };
        assert!((ms(1900)..=ms(2000)).contains(&until), "{until}");
    }

    #[test]
    fn probes_that_hang_do_not_hide_the_end() {
        let mut circuit = open();
        circuit.advance(ms(50), true);
        let mut now = ms(50);
        for _ in 0..MAX_PROBES_IN_FLIGHT {
            let SendPermission::Wait(at) = circuit.permission(now) else { panic!("not due") };
            now = at;
            assert_eq!(circuit.permission(now), SendPermission::Probe);
            circuit.probe(now);
        }
        assert_eq!(circuit.permission(ms(60_000)), SendPermission::Wait(Nanos::NEVER));
        circuit.probe_ended();
        assert_eq!(circuit.permission(ms(60_000)), SendPermission::Probe);
    }
}
