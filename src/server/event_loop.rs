//! One thread of a server: it accepts connections, drives them, and lets go of those that keep it waiting.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, header};
use hyper::body::Incoming;
use slab::Slab;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::sync::watch::Receiver;
use tokio::task::LocalSet;

use super::body::Body;
use super::connection::drive;
use super::ledger::{Entry, Ledger};
use super::page::Page;
use super::timer::Timer;
use super::turn::Turn;
use super::watch::{Fate, Watch};
use super::{Reply, Service, Stop, Tell};
use crate::decide::Nanos;
use crate::decide::patience::{Expired, Limits};

/// How often an event loop looks after its connections.
const ROUND: Duration = Duration::from_millis(250);

/// The time of the last round: good enough for patience, and free.
#[derive(Clone, Debug, Default)]
pub(super) struct Tick(Rc<Cell<Nanos>>);

impl Tick {
    pub(super) fn now(&self) -> Nanos {
        self.0.get()
    }
}

/// Where a service is at home on one thread.
pub(super) struct EventLoop<S: Service> {
    pub(super) service: Arc<S>,
    pub(super) local: S::Local,
    pub(super) page: Option<Arc<Page>>,
    pub(super) limits: Limits,
    pub(super) most_head: usize,
    pub(super) ledger: Rc<Ledger>,
    pub(super) timer: Timer,
    pub(super) tell: Tell,
    pub(super) connections: RefCell<Slab<Rc<Watch>>>,
    /// A connection has ended.
    pub(super) ended: Notify,
}

/// A request without an answer: the connection is reset.
#[derive(Debug)]
pub(super) struct Unanswered;

impl std::error::Error for Unanswered {}

impl std::fmt::Display for Unanswered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no answer on purpose")
    }
}

impl<S: Service> EventLoop<S> {
    /// Runs until it is told to stop and its connections have ended.
    pub(super) async fn run(self: Rc<Self>, listener: TcpListener, mut stop: Receiver<Stop>) {
        let rounds = tokio::task::spawn_local(Rc::clone(&self).look_after_connections());
        let mut short_of_files = false;
        while *stop.borrow() == Stop::No {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stop.changed() => continue,
            };
            match accepted {
                Ok((stream, peer)) => {
                    short_of_files = false;
                    tokio::task::spawn_local(drive(Rc::clone(&self), stream, peer));
                }
                Err(error) if of_the_connection(&error) => {}
                Err(error) => {
                    if !std::mem::replace(&mut short_of_files, true) {
                        self.tell.say(&format!("connections have to wait: {error}"));
                    }
                    // To accept at once again would only burn the core.
                    self.timer.sleep(Nanos::from_millis(100)).await;
                }
            }
        }
        drop(listener);
        self.leave(stop).await;
        rounds.abort();
    }

    /// Waits for the answers that are owed, until the stop's own patience is over.
    async fn leave(&self, mut stop: Receiver<Stop>) {
        for (_, watch) in &*self.connections.borrow() {
            watch.leave();
        }
        while !self.connections.borrow().is_empty() {
            let until = match *stop.borrow_and_update() {
                Stop::By(until) => until,
                Stop::No | Stop::Now => Nanos::ZERO,
            };
            if until <= self.ledger.clock.now() {
                break;
            }
            tokio::select! {
                () = self.ended.notified() => {}
                () = self.timer.sleep_until(until) => {}
                _ = stop.changed() => {}
            }
        }
        for (_, watch) in &*self.connections.borrow() {
            watch.decide(Fate::Die);
        }
    }

    async fn look_after_connections(self: Rc<Self>) {
        let mut rounds = tokio::time::interval(ROUND);
        loop {
            rounds.tick().await;
            let now = self.ledger.clock.now();
            self.ledger.tick.0.set(now);
            if let Some(pen) = &self.ledger.pen {
                pen.hand_on();
            }
            for (_, watch) in &*self.connections.borrow() {
                if let Some(expired) = watch.expired(now, &self.limits) {
                    self.ledger.metrics.ended(match expired {
                        Expired::Idle => "idle",
                        Expired::Head => "slow_head",
                        Expired::Body => "slow_body",
                        Expired::Write => "slow_reader",
                    });
                    watch.decide(Fate::Die);
                }
            }
        }
    }

    /// One request, from head to answer.
    pub(super) async fn answer(
        self: Rc<Self>,
        watch: Rc<Watch>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Unanswered> {
        let mut entry = Entry::open(&self.ledger, &watch, &request);
        let version = request.version();
        let reply = if request.uri().path() == "/metrics" {
            Reply::Answer(self.metrics())
        } else {
            let turn = Turn { ledger: Rc::clone(&self.ledger), timer: self.timer.clone(), watch: Rc::clone(&watch) };
            self.service.answer(&self.local, request, &turn).await
        };
        match reply {
            Reply::Answer(answer) => {
                entry.answered(answer.status().as_u16());
                Ok(answer.map(|body| body.with(entry)))
            }
            Reply::Reset => {
                // In HTTP/2 it is the stream that is reset, which hyper does for us.
                if version < http::Version::HTTP_2 {
                    watch.reset();
                }
                Err(Unanswered)
            }
        }
    }

    fn metrics(&self) -> Response<Body> {
        let mut answer = Response::new(self.ledger.metrics.render().into());
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
        answer
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
