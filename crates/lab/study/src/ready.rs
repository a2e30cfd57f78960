//! Readiness checks of programs.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::definition::ReadyCheck;
use super::failure::MeasurementError;
use super::guarded_process::GuardedProcess;
use weir_base::Nanos;
use weir_load::{self as load, LoadPlan, Options};
use weir_machine::clock::Clock;

/// Interval of checks.
const POLL_INTERVAL: Nanos = Nanos::from_millis(20);
/// Timeout of a single check.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Waits until the program with this port is ready; returns how long that took.
///
/// # Errors
/// It has ended, it is not ready within the timeout, or it was interrupted.
pub(super) fn wait_ready(
    running: &GuardedProcess,
    ready: &ReadyCheck,
    port: u16,
    timeout: Nanos,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Nanos, MeasurementError> {
    let clock = Clock::started_ago(Nanos::ZERO);
    loop {
        if !go_on() {
            return Err(MeasurementError::Interrupted);
        }
        // A client, which is ready at once, may have ended already.
        if *ready != ReadyCheck::Immediate && running.has_terminated() {
            let ending =
                running.ending().map_or_else(|| "its supervisor was killed".to_owned(), |ending| ending.to_string());
            return Err(running.failure(format!("it ended before it was ready: {ending}")));
        }
        // Checked after the program's end, since another process may listen on its port then.
        let is_ready = match ready {
            ReadyCheck::Immediate => true,
            ReadyCheck::Line(_) => running.stdout().has_awaited_line(),
            ReadyCheck::Port => accepts_connections(port),
            ReadyCheck::Url(url) => is_responding(url),
        };
        if is_ready {
            return Ok(clock.now());
        }
        if clock.now() > timeout {
            let what = match ready {
                ReadyCheck::Url(url) => format!("no response from {url} within {timeout}"),
                ReadyCheck::Line(line) => format!("no line \"{line}\" on its stdout within {timeout}"),
                ReadyCheck::Port | ReadyCheck::Immediate => {
                    format!("port {port} took no connections within {timeout}")
                }
            };
            return Err(running.failure(format!("never ready: {what}")));
        }
        clock.sleep_until(clock.now() + POLL_INTERVAL);
    }
}

fn accepts_connections(port: u16) -> bool {
    TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), PROBE_TIMEOUT).is_ok()
}

fn is_responding(url: &str) -> bool {
    let options = Options {
        url: url.to_owned(),
        requests: Some(1),
        connections: Some(1),
        threads: Some(1),
        timeout: Some(PROBE_TIMEOUT),
        ..Options::default()
    };
    let run = LoadPlan::new(&options).ok().and_then(|plan| load::run(&plan, &[], &mut |_| true, None).ok());
    run.is_some_and(|run| run.status.keys().any(|status| !status.starts_with('5')))
}
