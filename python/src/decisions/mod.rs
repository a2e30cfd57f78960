//! Decisions of calls whose attempts Python makes: around any function, or as middleware of another client.
//!
//! The driver in Python reports what happened, with the time, and carries out what is decided. So it has no clock to
//! wait for in tests, and no rule of its own: backoff, budget, deadline and hedge stages are those of all of weir.
//!
//! - [`budget`]: a retry budget that several drivers may share
//! - [`retried`]: a function that is retried, one attempt after the other
//! - [`hedged`]: a request with hedge stages and retries, whose attempts may run side by side

pub(crate) mod budget;
pub(crate) mod hedged;
pub(crate) mod retried;

use weir::base::Nanos;
use weir::base::nanos::WallNanos;
use weir::retry::retry_after::{retry_after, service_clock};

/// `Retry-After` of a response, from now; `date` is its `Date`, by which the clock of the service is known.
fn delay_of_header(value: Option<&str>, date: Option<&str>, wall_ns: i64) -> Option<Nanos> {
    retry_after(value?, service_clock(date, WallNanos(wall_ns)))
}
