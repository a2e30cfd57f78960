//! Waits until a program is ready.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::definition::ReadyCheck;
use super::running::GuardedProcess;
use super::trouble::MeasurementError;
use crate::decide::Nanos;
use crate::load::{self, LoadPlan, Options};
use crate::machine::clock::Clock;

/// How often it is looked.
const POLL_INTERVAL: Nanos = Nanos::from_millis(20);
/// How long a single look may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Waits until the program, which was given this port, is ready; how long that took.
///
/// # Errors
/// It has ended, it is not ready in time, or somebody has had enough.
pub(super) fn wait_ready(
    running: &GuardedProcess,
    ready: &ReadyCheck,
    port: u16,
    patience: Nanos,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Nanos, MeasurementError> {
    let clock = Clock::started_ago(Nanos::ZERO);
    loop {
        if !go_on() {
            return Err(MeasurementError::Interrupted);
        }
        // A client, which is ready by having been started, may already be over.
        if *ready != ReadyCheck::Immediate && running.has_terminated() {
            let ending =
                running.ending().map_or_else(|| "its guard was killed".to_owned(), |ending| ending.to_string());
            return Err(MeasurementError::from_program(format!("it ended before it was ready: {ending}"), running));
        }
        // Whoever answers on the port of a program that is gone is somebody else.
        let sign = match ready {
            ReadyCheck::Immediate => true,
            ReadyCheck::Line(_) => running.stdout().has_awaited_line(),
            ReadyCheck::Port => accepts_connections(port),
            ReadyCheck::Url(url) => is_responding(url),
        };
        if sign {
            return Ok(clock.now());
        }
        if clock.now() > patience {
            let what = match ready {
                ReadyCheck::Url(url) => format!("{url} was not answered within {patience}"),
                ReadyCheck::Line(line) => format!("it did not say \"{line}\" within {patience}"),
                ReadyCheck::Port | ReadyCheck::Immediate => {
                    format!("port {port} took no connections within {patience}")
                }
            };
            return Err(MeasurementError::from_program(format!("never ready: {what}"), running));
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
