//! Waits until a program is ready.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::definition::Ready;
use super::running::Running;
use super::trouble::Trouble;
use crate::decide::Nanos;
use crate::load::{self, Options, Plan};
use crate::machine::clock::Clock;

/// How often it is looked.
const LOOK: Nanos = Nanos::from_millis(20);
/// How long a single look may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Waits until the program, which was given this port, is ready; how long that took.
///
/// # Errors
/// It has ended, it is not ready in time, or somebody has had enough.
pub(super) fn wait(
    running: &Running,
    ready: &Ready,
    port: u16,
    patience: Nanos,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Nanos, Trouble> {
    let clock = Clock::started(Nanos::ZERO);
    loop {
        if !go_on() {
            return Err(Trouble::Interrupted);
        }
        // A client, which is ready by having been started, may already be over.
        if *ready != Ready::AtOnce && running.is_gone() {
            let ending =
                running.ending().map_or_else(|| "its guard was killed".to_owned(), |ending| ending.to_string());
            return Err(Trouble::of(format!("it ended before it was ready: {ending}"), running));
        }
        // Whoever answers on the port of a program that is gone is somebody else.
        let sign = match ready {
            Ready::AtOnce => true,
            Ready::Line(_) => running.stdout().has_wanted(),
            Ready::Port => takes_connections(port),
            Ready::Url(url) => is_answered(url),
        };
        if sign {
            return Ok(clock.now());
        }
        if clock.now() > patience {
            let what = match ready {
                Ready::Url(url) => format!("{url} was not answered within {patience}"),
                Ready::Line(line) => format!("it did not say \"{line}\" within {patience}"),
                Ready::Port | Ready::AtOnce => format!("port {port} took no connections within {patience}"),
            };
            return Err(Trouble::of(format!("never ready: {what}"), running));
        }
        clock.sleep_until(clock.now() + LOOK);
    }
}

fn takes_connections(port: u16) -> bool {
    TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), PATIENCE).is_ok()
}

fn is_answered(url: &str) -> bool {
    let options = Options {
        url: url.to_owned(),
        requests: Some(1),
        connections: Some(1),
        threads: Some(1),
        timeout: Some(PATIENCE),
        ..Options::default()
    };
    let run = Plan::new(&options).ok().and_then(|plan| load::run(&plan, &[], &mut |_| true, None).ok());
    run.is_some_and(|run| run.status.keys().any(|status| !status.starts_with('5')))
}
