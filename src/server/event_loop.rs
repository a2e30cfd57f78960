//! One thread of a server: it accepts connections, drives them, and lets go of those that keep it waiting.

use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch::Receiver;
use tokio::task::LocalSet;

use super::connection::drive;
use super::home::Home;
use super::watch::Fate;
use super::{Service, Stop};
use crate::decide::Nanos;
use crate::decide::patience::Expired;

/// How often an event loop looks after its connections.
const ROUND: Duration = Duration::from_millis(250);

/// Runs until it is told to stop and its connections have ended.
pub(super) async fn run<S: Service>(home: Rc<Home<S>>, listener: TcpListener, mut stop: Receiver<Stop>) {
    let rounds = tokio::task::spawn_local(look_after(Rc::clone(&home)));
    let mut short_of_files = false;
    while *stop.borrow() == Stop::No {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.changed() => continue,
        };
        match accepted {
            Ok((stream, peer)) => {
                short_of_files = false;
                tokio::task::spawn_local(drive(Rc::clone(&home), stream, peer));
            }
            Err(error) if of_the_connection(&error) => {}
            Err(error) => {
                if !std::mem::replace(&mut short_of_files, true) {
                    home.tell.say(&format!("connections have to wait: {error}"));
                }
                // To accept at once again would only burn the core.
                home.timer.sleep(Nanos::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    leave(&home, stop).await;
    rounds.abort();
}

/// Waits for the answers that are owed, until the stop's own patience is over.
async fn leave<S: Service>(home: &Home<S>, mut stop: Receiver<Stop>) {
    for (_, watch) in &*home.connections.borrow() {
        watch.leave();
    }
    let mut rest = pin!(home.service.rest(&home.local));
    let mut rested = false;
    while !rested || !home.connections.borrow().is_empty() {
        let until = match *stop.borrow_and_update() {
            Stop::By(until) => until,
            Stop::No | Stop::Now => Nanos::ZERO,
        };
        if until <= home.ledger.clock.now() {
            break;
        }
        tokio::select! {
            () = &mut rest, if !rested => rested = true,
            () = home.ended.notified() => {}
            () = home.timer.sleep_until(until) => {}
            _ = stop.changed() => {}
        }
    }
    for (_, watch) in &*home.connections.borrow() {
        watch.decide(Fate::Die);
    }
}

/// Now and then: the time, the log, and the patience with each connection.
async fn look_after<S: Service>(home: Rc<Home<S>>) {
    let mut rounds = tokio::time::interval(ROUND);
    loop {
        rounds.tick().await;
        let now = home.ledger.clock.now();
        home.ledger.tick.set(now);
        home.freed.round();
        if let Some(pen) = &home.ledger.pen {
            pen.hand_on();
        }
        for (_, watch) in &*home.connections.borrow() {
            watch.look();
            if let Some(expired) = watch.expired(now, &home.limits) {
                home.ledger.metrics.ended(match expired {
                    Expired::Idle => "idle",
                    Expired::Head => "slow_head",
                    Expired::Body => "slow_body",
                    Expired::Write => "slow_reader",
                    Expired::Tunnel => "idle_tunnel",
                });
                watch.decide(Fate::Die);
            }
        }
    }
}

/// Errors of accept that concern the one connection, and nobody else.
fn of_the_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Runs `serve` on a runtime of this thread, with all that it starts here.
pub(super) fn on_this_thread(serve: impl AsyncFnOnce() -> io::Result<()>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    LocalSet::new().block_on(&runtime, serve())
}
