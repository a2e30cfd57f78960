//! Where a service is at home on one thread: what all its connections there share, and how a request is answered.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use http::{HeaderMap, Request, Response, Version, header};
use hyper::body::{Body as _, Incoming};
use slab::Slab;
use tokio::sync::Notify;

use super::body::Body;
use super::framing::{self, BadCoding};
use super::ledger::{Entry, Ledger};
use super::page::Page;
use super::turn::Turn;
use super::watch::Watch;
use super::{Pages, Reply, Service, Tell};
use crate::decide::patience::Limits;
use crate::machine::memory;
use crate::machine::timer::Timer;

/// Where a service is at home on one thread.
pub(super) struct Home<S: Service> {
    pub(super) service: Arc<S>,
    pub(super) local: S::Local,
    pub(super) page: Option<Arc<Page>>,
    pub(super) limits: Limits,
    pub(super) most_head: usize,
    pub(super) most_fields: usize,
    pub(super) pages: Pages,
    pub(super) asks_arrivals: bool,
    pub(super) ledger: Rc<Ledger>,
    pub(super) timer: Timer,
    pub(super) tell: Tell,
    pub(super) connections: RefCell<Slab<Rc<Watch>>>,
    /// A connection has ended.
    pub(super) ended: Notify,
    pub(super) freed: Freed,
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

/// Memory of connections that is free and still the process's.
#[derive(Debug, Default)]
pub(super) struct Freed {
    /// Of so many connections in this round, and in all since it was given back.
    now: Cell<u32>,
    all: Cell<u32>,
    rounds: Cell<u32>,
}

impl Freed {
    /// A connection has ended, or let go of what it had beyond the usual.
    pub(super) fn one_more(&self) {
        self.now.set(self.now.get().saturating_add(1));
    }

    /// Gives it to the system after a burst: while connections come and go it would be fetched back at once. To be called
    /// each round.
    pub(super) fn round(&self) {
        const MANY: u32 = 64;
        const ROUNDS: u32 = 8;
        let now = self.now.take();
        self.all.set(self.all.get().saturating_add(now));
        self.rounds.set(self.rounds.get().saturating_add(1));
        if self.all.get() >= MANY && now < MANY && self.rounds.get() >= ROUNDS {
            self.all.set(0);
            self.rounds.set(0);
            memory::release();
        }
    }
}

impl<S: Service> Home<S> {
    /// One request, from head to answer.
    pub(super) async fn answer(
        self: Rc<Self>,
        watch: Rc<Watch>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Unanswered> {
        let mut entry = Entry::open(&self.ledger, &watch, &request);
        let version = request.version();
        let whole = request.body().is_end_stream();
        watch.has_unread_body(!whole);
        let last = says_close(request.headers()) || is_old(version, request.headers());
        let reply = if let Some(bad) = BadCoding::of(request.headers()) {
            Reply::Answer(bad.response())
        } else if request.headers().len() > self.most_fields {
            Reply::Answer(framing::too_many_fields())
        } else if let Some(page) = self.page_at(&self.service.page_path(request.uri().path())) {
            Reply::Answer(page)
        } else {
            let turn = Turn::new(&self.ledger, &self.timer, &watch, &entry);
            self.service.answer(&self.local, request, &turn).await
        };
        match reply {
            Reply::Answer(answer) => {
                entry.answered(answer.status().as_u16());
                if whole && version < Version::HTTP_2 && (last || says_close(answer.headers())) {
                    watch.ends_with_this();
                }
                Ok(answer.map(|body| body.with(entry)))
            }
            Reply::Switch(answer, tunnel) => {
                entry.answered(answer.status().as_u16());
                watch.switches_to(tunnel);
                Ok(answer.map(|body| body.with(entry)))
            }
            Reply::Reset => {
                entry.reset();
                // In HTTP/2 it is the stream that is reset, which hyper does for us.
                if version < Version::HTTP_2 {
                    watch.reset();
                }
                Err(Unanswered)
            }
        }
    }

    fn page_at(&self, path: &str) -> Option<Response<Body>> {
        let is = |page: &str| !page.is_empty() && page == path;
        if is(&self.pages.metrics) {
            Some(self.metrics())
        } else if is(&self.pages.health) {
            Some(Response::new("ok\n".into()))
        } else {
            None
        }
    }

    fn metrics(&self) -> Response<Body> {
        let mut answer = Response::new(self.ledger.metrics.render().into());
        let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        answer.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
        answer
    }
}

/// Whether these headers surely close the connection.
fn says_close(headers: &HeaderMap) -> bool {
    headers.get(header::CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}

/// Whether a request is of a time when connections closed unless asked not to.
fn is_old(version: Version, headers: &HeaderMap) -> bool {
    version == Version::HTTP_10 && !headers.contains_key(header::CONNECTION)
}
