//! What a pool's lock guards: who waits, who works, and what has been done for whom.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use super::{Job, Overflow};

/// A job on its way to a thread.
pub(super) struct Waiting<J> {
    /// Counts up; who came first has the lowest.
    pub(super) ticket: u64,
    pub(super) home: Home,
    pub(super) job: J,
}

/// Where an answer belongs: which desk, and who there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Home {
    pub(super) desk: usize,
    pub(super) place: usize,
}

/// What came of a job.
pub(super) struct Done<A> {
    pub(super) ticket: u64,
    pub(super) place: usize,
    /// None: it panicked.
    pub(super) answer: Option<A>,
}

/// What lies ready for one desk.
struct Tray<A> {
    done: Vec<Done<A>>,
    /// The desk has been told, and has not looked yet.
    rung: bool,
    bell: Arc<Notify>,
}

/// What becomes of a job that comes.
pub(super) enum Arrival {
    /// It waits for a thread; one that sleeps has to be woken if `wake`.
    Waits { ticket: u64, wake: bool },
    /// The queue is full.
    Refused,
}

/// What threads and event loops share.
pub(super) struct State<J: Job> {
    /// Those that live.
    pub(super) threads: usize,
    /// Those at a job.
    pub(super) busy: usize,
    /// Those that sleep and have not been called.
    sleeping: usize,
    /// Those that were called and have not noticed.
    called: usize,
    /// In the order of their tickets. The first `room` are the queue; the others wait in front of it.
    pub(super) line: VecDeque<Waiting<J>>,
    room: usize,
    overflow: Overflow,
    tickets: u64,
    trays: Vec<Tray<J::Answer>>,
    /// Jobs that were done, that were given up before a thread began with them, and that found no room.
    pub(super) did: u64,
    pub(super) given_up: u64,
    pub(super) refused: u64,
    /// The pool ends.
    pub(super) closed: bool,
}

impl<J: Job> State<J> {
    pub(super) fn new(room: usize, overflow: Overflow) -> Self {
        Self {
            threads: 0,
            busy: 0,
            sleeping: 0,
            called: 0,
            line: VecDeque::new(),
            room,
            overflow,
            tickets: 0,
            trays: Vec::new(),
            did: 0,
            given_up: 0,
            refused: 0,
            closed: false,
        }
    }

    /// Jobs in the queue, and in front of it.
    pub(super) fn lengths(&self) -> (usize, usize) {
        let queue = self.line.len().min(self.room);
        (queue, self.line.len() - queue)
    }

    /// A desk opens; its number.
    pub(super) fn open_desk(&mut self, bell: Arc<Notify>) -> usize {
        self.trays.push(Tray { done: Vec::new(), rung: false, bell });
        self.trays.len() - 1
    }

    /// Whether a thread is free and nobody waits for one.
    pub(super) fn has_free_thread(&self) -> bool {
        self.busy < self.threads && self.line.is_empty()
    }

    /// A job comes.
    pub(super) fn arrive(&mut self, home: Home, job: J) -> Arrival {
        if self.overflow == Overflow::Refuse && self.line.len() >= self.room {
            self.refused += 1;
            return Arrival::Refused;
        }
        let ticket = self.tickets;
        self.tickets += 1;
        self.line.push_back(Waiting { ticket, home, job });
        let wake = self.sleeping > 0;
        self.sleeping -= usize::from(wake);
        self.called += usize::from(wake);
        Arrival::Waits { ticket, wake }
    }

    /// A thread takes the next job.
    pub(super) fn begin(&mut self) -> Option<Waiting<J>> {
        let next = self.line.pop_front()?;
        self.busy += 1;
        Some(next)
    }

    /// A thread has done its job; the bell of the desk, if it has to be rung.
    pub(super) fn end(&mut self, desk: usize, done: Done<J::Answer>) -> Option<Arc<Notify>> {
        self.busy -= 1;
        self.did += 1;
        let tray = self.trays.get_mut(desk)?;
        tray.done.push(done);
        (!std::mem::replace(&mut tray.rung, true)).then(|| Arc::clone(&tray.bell))
    }

    /// A desk fetches what is done, into an empty `fetched`.
    pub(super) fn fetch(&mut self, desk: usize, fetched: &mut Vec<Done<J::Answer>>) {
        if let Some(tray) = self.trays.get_mut(desk) {
            std::mem::swap(&mut tray.done, fetched);
            tray.rung = false;
        }
    }

    /// The job, if no thread has begun with it.
    pub(super) fn give_up(&mut self, ticket: u64) -> Option<Waiting<J>> {
        let at = self.line.binary_search_by_key(&ticket, |waiting| waiting.ticket).ok()?;
        self.given_up += 1;
        self.line.remove(at)
    }

    /// A thread lies down.
    pub(super) fn lie_down(&mut self) {
        self.sleeping += 1;
    }

    /// Whether a thread that sleeps is one of those that were called.
    pub(super) fn is_called(&mut self) -> bool {
        let called = self.called > 0;
        self.called -= usize::from(called);
        called
    }
}
