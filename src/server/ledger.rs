//! What is written down of each request: metrics, and the access log.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use http::{Method, Request, Uri, Version};

use serde_json::value::RawValue;

use super::access_log::{Line, Pen};
use super::metrics::Metrics;
use super::tick::Tick;
use super::watch::{Fate, Watch};
use crate::decide::Nanos;
use crate::decide::patience::Patience;
use crate::machine::clock::{self, Clock};

/// One event loop's book.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) clock: Clock,
    pub(super) tick: Tick,
    pub(super) metrics: Arc<Metrics>,
    pub(super) pen: Option<Pen>,
}

/// A request that is being answered. It closes when it is dropped, which is when the last byte of the body has been
/// handed on, or when nobody wants the answer any more.
#[derive(Debug)]
pub(super) struct Entry {
    ledger: Rc<Ledger>,
    watch: Rc<Watch>,
    began: Nanos,
    status: Option<u16>,
    bytes: u64,
    asked: Option<Rc<Asked>>,
    reset: bool,
}

/// What the access log says of a request beside its answer.
#[derive(Debug)]
pub(super) struct Asked {
    method: Method,
    uri: Uri,
    version: Version,
    story: RefCell<Option<Box<RawValue>>>,
}

impl Asked {
    /// What the service tells of it.
    pub(super) fn has_story(&self, story: Box<RawValue>) {
        self.story.replace(Some(story));
    }
}

impl Entry {
    pub(super) fn open<B>(ledger: &Rc<Ledger>, watch: &Rc<Watch>, request: &Request<B>) -> Self {
        watch.note(Patience::began);
        ledger.metrics.in_flight.inc();
        let asked = || {
            let (method, uri, version) = (request.method().clone(), request.uri().clone(), request.version());
            Rc::new(Asked { method, uri, version, story: RefCell::default() })
        };
        Self {
            began: ledger.clock.now() - watch.take_wait(),
            status: None,
            bytes: 0,
            asked: ledger.pen.is_some().then(asked),
            reset: false,
            ledger: Rc::clone(ledger),
            watch: Rc::clone(watch),
        }
    }

    /// When its head was there.
    pub(super) fn began(&self) -> Nanos {
        self.began
    }

    /// There is an answer.
    pub(super) fn answered(&mut self, status: u16) {
        self.status = Some(status);
    }

    /// There is none, on purpose.
    pub(super) fn reset(&mut self) {
        self.reset = true;
    }

    /// Where a service puts what it tells of the request, if anybody reads it.
    pub(super) fn asked(&self) -> Option<Rc<Asked>> {
        self.asked.clone()
    }

    /// Bytes of its body go out.
    pub(super) fn sent(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// The answer waits for more of the request's body.
    pub(super) fn wants_body(&self) {
        self.watch.note(|patience| patience.wants_body(self.ledger.tick.now()));
    }

    /// Some of the request's body has come, or its `end`.
    pub(super) fn has_body(&self, end: bool) {
        self.watch.note(Patience::has_body);
        if end {
            self.watch.has_unread_body(false);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let Ledger { clock, tick, metrics, pen } = &*self.ledger;
        self.watch.note(|patience| {
            patience.has_body();
            patience.ended(tick.now());
        });
        let took = clock.now() - self.began;
        metrics.in_flight.dec();
        metrics.sent_bytes.inc_by(self.bytes);
        match self.status {
            Some(status) => metrics.answered(status, took),
            None => metrics.ended("unanswered"),
        }
        let (Some(pen), Some(asked)) = (pen, &self.asked) else { return };
        let Asked { method, uri, version, story } = &**asked;
        pen.write(&Line {
            time: (clock::unix_s() * 1e6).round() / 1e6,
            client: &self.watch.peer.to_string(),
            method: method.as_str(),
            target: uri.path_and_query().map_or("", |target| target.as_str()),
            version: &format!("{version:?}"),
            status: self.status,
            bytes: self.bytes,
            duration_ms: took.as_millis_f64(),
            gone: self.status.is_none() && !self.reset && self.watch.fate() != Fate::Die,
            story: story.borrow().as_deref(),
        });
    }
}
