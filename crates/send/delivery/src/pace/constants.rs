//! Parameters of the learnt pace.

use super::Nanos;

/// Initial limit of requests in flight.
pub(super) const INITIAL_IN_FLIGHT: f64 = 16.0;
/// Time per additional request in flight, with or without responses.
pub(super) const RAMP_INTERVAL: Nanos = Nanos::from_millis(4);
/// Shortest pause after a rejection, and the longest without `Retry-After`.
pub(super) const MIN_PAUSE: Nanos = Nanos::from_millis(10);
pub(super) const MAX_PAUSE: Nanos = Nanos::from_secs(30);
/// A rejection with fewer than this fraction of the requests in flight at earlier ones means a limit by time.
pub(super) const FAR_FEWER_FRACTION: f64 = 0.7;
/// Lower bound of the new rate, as a fraction, after the first, second and each further short cycle: a part of a window
/// is a weak measurement, but a burst taken for a rate is corrected.
pub(super) const MIN_RATE_FRACTIONS: [f64; 3] = [0.9, 0.6, 0.3];
/// A known concurrency limit rejects rarely: this number of events in a row with fewer acceptances in between means
/// that it is a limit by time.
pub(super) const MIN_ACCEPTED_BETWEEN_EVENTS: u64 = 30;
pub(super) const MAX_QUICK_EVENTS: u32 = 4;
/// Fraction of the measured rate that is used.
pub(super) const RATE_MARGIN_FRACTION: f64 = 0.98;

/// Step of the rate near a rejected one, and its maximum.
pub(super) const NEAR_STEP_FRACTION: f64 = 0.01;
pub(super) const MAX_STEP_FRACTION: f64 = 0.08;
/// Step below that, and its maximum where the rate was never rejected.
pub(super) const FAR_STEP_FRACTION: f64 = 0.05;
pub(super) const MAX_UNREJECTED_STEP_FRACTION: f64 = 0.2;
