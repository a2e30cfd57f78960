//! Constants of the adaptive limit: unit, and source of the value.
//!
//! "Scenarios" are those of `weir simulate` (`docs/overload.md`): where no other source is named, a value was chosen so
//! that they reach their goals (`crates/lab/simulate/src`) over several seeds, against random mixes of loads. A *residence
//! time* is the mean time that a call spends in the upstream.

use weir_base::Nanos;

// Without a knee.

/// Limit without a knee, in multiples of the recent peak of calls in flight. Scenarios.
pub(super) const PEAK_SLACK_FACTOR: f64 = 4.0;
/// Smallest limit without a knee, in calls: few calls in flight are no evidence for a low limit. Scenarios.
pub(super) const MIN_UNCONSTRAINED_LIMIT: f64 = 100.0;
/// Time for which the first limit is not lowered to the peak of calls in flight, which takes some seconds to show.
/// Scenarios.
pub(super) const INITIAL_LIMIT_TIME: Nanos = Nanos::from_secs(10);
/// Length of the initial burst from the first call on. Calls of that time are admitted up to the first limit;
/// afterwards the limit is twice the calls in flight. From the two starts that must work: 1,000 users at once at a
/// service without limits, and ten times the capacity of one with limits (`cold-start`).
pub(super) const INITIAL_BURST_TIME: Nanos = Nanos::from_millis(100);

// Above the knee.

/// Queue in the upstream, as a fraction of the knee: the upstream must not run dry between a response and the next
/// call. Scenarios.
pub(super) const KNEE_HEADROOM_FRACTION: f64 = 0.03;
/// Tolerated queueing delay in the upstream, in ns, beyond [`KNEE_HEADROOM_FRACTION`]: a millisecond is not overload.
pub(super) const TOLERATED_WAIT_NS: f64 = 1e6;
/// Tolerated queueing delay in the upstream, in ns, where service times are below [`TOLERATED_WAIT_NS`]: such a time is
/// the machine's more than the service's. As long as a usual stall of a shared host, and the average queueing time that
/// DAGOR takes for overload (Zhou et al., "Overload control for scaling WeChat microservices", 2018, 4.1). With 5 ms
/// the limit before an nginx that shared its core with compilers ended anywhere from 60 to 200.
pub(super) const TOLERATED_WAIT_OF_QUICK_NS: f64 = 20e6;

// Probes to either side of the knee.

/// Limit of a probe to low concurrency, in knees. It takes a quarter of the work away for a moment, where limiters that
/// probe with next to no calls cause rejections (envoyproxy/envoy, issue 8337). Scenarios.
pub(super) const LOW_PROBE_FACTOR: f64 = 0.75;
/// Limit of a probe to high concurrency, in limits of the knee. Scenarios.
pub(super) const HIGH_PROBE_FACTOR: f64 = 1.2;
/// Samples on one side of the knee below which a probe is due. Scenarios: their mean has a fifth of the deviation of
/// one.
pub(super) const MIN_PROBE_SAMPLES: f64 = 30.0;
/// Shortest time from a change of the limit to a probe, in residence times. Scenarios.
pub(super) const PROBE_INTERVAL_RESIDENCES: f64 = 8.0;

// Samples.

/// Samples before the first estimate of service times, and over which their moving averages run. Scenarios.
pub(super) const MIN_SAMPLES: u32 = 60;
/// Highest concurrency, in calls, of the first [`MIN_SAMPLES`] samples: of many calls that began together only quick
/// ones have ended. Scenarios.
pub(super) const MAX_INITIAL_IN_FLIGHT: u32 = 64;
/// Maximum number of samples that wait for calls of the same time to end; beyond half of it one in N is taken. Bounds
/// the memory: 24 KiB.
pub(super) const MAX_PENDING_SAMPLES: usize = 1024;
/// Cap of a sample, and shortest time until it counts, in typical service times: a knee is steeper than that soon, so a
/// higher time adds no information. Scenarios.
pub(super) const MAX_TIME_FACTOR: f64 = 2.0;
/// Fraction of calls that are slow; samples wait until all but this fraction of calls that began with them have ended.
/// Scenarios with one call in fifty that takes fifty times as long.
pub(super) const SLOW_FRACTION: f64 = 0.02;
/// Step of the estimate of that quantile, as a fraction of it (stochastic approximation). Scenarios.
pub(super) const SLOW_TIME_STEP_FRACTION: f64 = 0.05;
/// Samples over which the ratio of mean and typical service time is averaged: tails are rare. Scenarios.
pub(super) const MEAN_SAMPLES: u32 = 1000;
/// Cap of a sample in that ratio, in typical service times, as in the scenarios of [`SLOW_FRACTION`].
pub(super) const MAX_TAIL_FACTOR: f64 = 50.0;
/// Cap of a sample in the residence time, in typical service times. Scenarios.
pub(super) const MAX_RESIDENCE_FACTOR: f64 = 8.0;

// Memory and growth.

/// Time constants of the decay of samples above the limit: residence times, and ns at least. Short, so that a look
/// above is repeated within seconds. Scenarios.
pub(super) const FORGET_ABOVE_RESIDENCES_NS: (f64, f64) = (3.0, 0.5e9);
/// Time constants of the decay of samples up to the limit, and of the peak: residence times, and ns at least. Long,
/// since a probe to low concurrency costs throughput. Scenarios.
pub(super) const FORGET_BELOW_RESIDENCES_NS: (f64, f64) = (60.0, 10e9);
/// Shortest time from one step of growth, or of decrease without responses, to the next, in residence times: the calls
/// of the last step have to end first. Scenarios.
pub(super) const GROWTH_INTERVAL_RESIDENCES: f64 = 2.2;
/// First and largest step of growth without a knee, as a fraction of the limit; each step is twice the last one.
/// Scenarios.
pub(super) const GROWTH_STEP_RANGE: (f64, f64) = (0.2, 1.0);

// Rejections and timeouts.

/// Fraction of calls rejected by the upstream (429, 503) above which they set a ceiling. Scenarios.
pub(super) const MAX_REJECTED_FRACTION: f64 = 0.02;
/// Time without any response after which missed deadlines lower the limit; also [`UNRESPONSIVE_FACTOR`] must have
/// passed. From the random mixes: calls with few successes get a response more often than that.
pub(super) const UNRESPONSIVE_AFTER: Nanos = Nanos::SECOND;
/// The same, in multiples of the caller's time. From the random mixes.
pub(super) const UNRESPONSIVE_FACTOR: u64 = 4;
