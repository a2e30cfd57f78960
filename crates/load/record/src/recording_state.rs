//! State of a recording: its journal, its counts, and what is reported of it.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

use weir_base::Nanos;
use weir_machine::clock::{Clock, WallOffset};

use crate::body_capture::CaptureBudget;
use crate::exchange::RecordedExchange;
use crate::har_entry::{har_entry, timestamp};
use crate::journal::HarJournal;
use crate::resource::{PageCounter, opens_page};

/// Maximum hosts whose tunnels and problems are listed by name.
const MAX_NAMED_HOSTS: usize = 1000;

/// Reports of a recording while it goes on.
pub trait RecordObserver {
    /// Called a few times a second.
    fn progress(&self, counts: &RecordCounts, elapsed: Nanos);
    /// Called with what a user has to know at once, on one line.
    fn note(&self, text: &str);
}

/// Counts of a recording so far.
#[derive(Clone, Debug, Default)]
pub struct RecordCounts {
    /// Recorded requests that a scenario has.
    pub requests: u64,
    /// Recorded requests for static files.
    pub static_files: u64,
    /// Requests in flight.
    pub in_flight: u64,
    /// Requests that were recorded and cannot be played, those of other protocols included.
    pub not_playable: u64,
    /// Connections that went over to another protocol, such as WebSocket.
    pub upgrades: u64,
    /// Responses whose bodies are not kept, though they may have values to capture.
    pub unsearched: u64,
    /// Requests after the journal had its largest size.
    pub unrecorded: u64,
    /// Requests while the journal could not be written, as on a full disk.
    pub unwritten: u64,
    /// Requests to hosts that are not recorded.
    pub other_hosts: u64,
    /// Tunnels that passed through unread, by host.
    pub tunnels: BTreeMap<String, u64>,
    /// Failed handshakes of clients, by host.
    pub untrusted: BTreeMap<String, u64>,
    /// Method, URL and status of the last recorded request.
    pub latest: String,
}

/// Journal, counts and limits of a recording, on one thread.
pub(crate) struct RecordingState {
    clock: Clock,
    wall: WallOffset,
    journal: RefCell<HarJournal>,
    counts: RefCell<RecordCounts>,
    noted: RefCell<BTreeSet<String>>,
    observer: Rc<dyn RecordObserver>,
    pub(crate) budget: CaptureBudget,
    pages: Cell<PageCounter>,
    /// Whether static files are requests like others.
    keeps_static: bool,
    /// Recorded requests after which the recording ends.
    max_requests: Option<u64>,
}

impl fmt::Debug for RecordingState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingState")
            .field("journal", &self.journal)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl RecordingState {
    pub(crate) fn new(
        journal: HarJournal,
        budget: CaptureBudget,
        observer: Rc<dyn RecordObserver>,
        keeps_static: bool,
        max_requests: Option<u64>,
    ) -> Self {
        let clock = Clock::starting_in(Nanos::ZERO);
        Self {
            clock,
            // Once, so that waits between requests are those of a clock that is never set.
            wall: clock.wall_offset(),
            journal: RefCell::new(journal),
            counts: RefCell::default(),
            noted: RefCell::default(),
            observer,
            budget,
            pages: Cell::default(),
            keeps_static,
            max_requests,
        }
    }

    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    pub(crate) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Milliseconds since 1970 at a time of the recording.
    pub(crate) fn unix_ms(&self, at: Nanos) -> i64 {
        i64::try_from(self.wall.unix_ns(at) / 1_000_000).unwrap_or(i64::MAX)
    }

    /// Number of the page that a request belongs to.
    pub(crate) fn page_of(&self, exchange: &RecordedExchange) -> u32 {
        let mut pages = self.pages.get();
        let (page, begins) = pages.page_of(opens_page(&exchange.headers));
        self.pages.set(pages);
        if begins {
            let title = serde_json::Value::from(exchange.url.as_str()).to_string();
            self.journal.borrow_mut().add_page(page, &title, &timestamp(exchange.started_unix_ms));
        }
        page
    }

    /// Takes the status of a response, which may send a browser elsewhere.
    pub(crate) fn on_status(&self, exchange: &RecordedExchange, status: u16) {
        let mut pages = self.pages.get();
        pages.on_response(opens_page(&exchange.headers), status);
        self.pages.set(pages);
    }

    /// Whether bodies of responses are still kept.
    pub(crate) fn keeps_response_bodies(&self) -> bool {
        self.journal.borrow().has_room_for_bodies()
    }

    /// Counts a request that begins.
    pub(crate) fn begin(&self) {
        self.counts.borrow_mut().in_flight += 1;
    }

    /// Writes a request that has ended.
    pub(crate) fn end(&self, exchange: &RecordedExchange) {
        let written = match self.is_complete() {
            true => Ok(false),
            false => self.journal.borrow_mut().append(&har_entry(exchange)),
        };
        let mut counts = self.counts.borrow_mut();
        counts.in_flight = counts.in_flight.saturating_sub(1);
        match written {
            Ok(true) => {}
            Ok(false) if self.max_requests.is_some_and(|most| counts.requests >= most) => {
                counts.unrecorded += 1;
                return;
            }
            Ok(false) => {
                counts.unrecorded += 1;
                drop(counts);
                let reason = "the recording has reached its largest size";
                self.note_once(&format!("{reason}; requests pass through from now on, and are not recorded"));
                return;
            }
            Err(error) => {
                counts.unwritten += 1;
                drop(counts);
                let path = self.journal.borrow().path().display().to_string();
                self.note_once(&format!(
                    "cannot write {path}: {error}; requests pass through, and are recorded once it can be"
                ));
                return;
            }
        }
        let is_other_protocol = exchange.url.starts_with("ws");
        let is_static = !self.keeps_static && exchange.is_static();
        if exchange.left_out.is_some() || is_other_protocol {
            counts.not_playable += 1;
        } else if is_static {
            counts.static_files += 1;
        } else {
            counts.requests += 1;
        }
        let response = exchange.response.as_ref();
        let media_type = response.map(|response| crate::exchange::content_type(&response.headers));
        let is_searched = media_type.is_some_and(|media_type| crate::exchange::is_searched(&media_type));
        if is_searched
            && !is_static
            && exchange.left_out.is_none()
            && response.is_some_and(|response| response.body.is_cut())
        {
            counts.unsearched += 1;
        }
        if !is_static {
            let status = response.map_or_else(|| "-".to_owned(), |response| response.status.to_string());
            counts.latest = format!("{} {} {status}", exchange.method, exchange.url);
        }
    }

    /// Whether the requested number of requests is recorded.
    pub(crate) fn is_complete(&self) -> bool {
        self.max_requests.is_some_and(|most| self.counts.borrow().requests >= most)
    }

    pub(crate) fn count_upgrade(&self) {
        self.counts.borrow_mut().upgrades += 1;
    }

    pub(crate) fn count_other_host(&self) {
        self.counts.borrow_mut().other_hosts += 1;
    }

    /// Counts a tunnel that passes through unread.
    pub(crate) fn count_tunnel(&self, host: &str) {
        add(&mut self.counts.borrow_mut().tunnels, host);
    }

    /// Counts a client that ended a handshake, and reports the first one of a host.
    pub(crate) fn count_untrusted(&self, host: &str, text: &str) {
        add(&mut self.counts.borrow_mut().untrusted, host);
        self.note_once(text);
    }

    /// Reports a line, unless it was reported before.
    pub(crate) fn note_once(&self, text: &str) {
        let mut noted = self.noted.borrow_mut();
        if noted.len() < MAX_NAMED_HOSTS && noted.insert(text.to_owned()) {
            drop(noted);
            self.observer.note(text);
        }
    }

    /// Reports the progress.
    pub(crate) fn report(&self) {
        self.observer.progress(&self.counts.borrow(), self.now());
    }

    pub(crate) fn counts(&self) -> RecordCounts {
        self.counts.borrow().clone()
    }
}

fn add(counts: &mut BTreeMap<String, u64>, host: &str) {
    let is_room = counts.len() < MAX_NAMED_HOSTS || counts.contains_key(host);
    *counts.entry(if is_room { host } else { "other hosts" }.to_owned()).or_default() += 1;
}
