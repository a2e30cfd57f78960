//! Event loop of a thread that delivers.

use std::io;

use tokio::task::LocalSet;

use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::executor::spawn_task;
use weir_machine::timer::Timer;

/// Runs `work` on an event loop of this thread, until it ends.
///
/// # Errors
/// The system has no poller or timer.
pub fn run_on_this_thread<T>(work: impl AsyncFnOnce(Timer) -> T) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let done = LocalSet::new().block_on(&runtime, async {
        let (timer, expiries) = Timer::new(Clock::starting_in(Nanos::ZERO))?;
        spawn_task(expiries);
        Ok(work(timer).await)
    });
    // A name resolution may still run; it is not awaited.
    runtime.shutdown_background();
    done
}
