//! What a pool's lock guards: which job is next, and which threads have to be called for it.

use std::collections::VecDeque;

use super::Job;

/// A job on its way to a thread.
pub(super) struct Waiting<J> {
    /// Counts up; who came first has the lowest.
    pub(super) ticket: u64,
    /// Where at the desk its answer belongs.
    pub(super) place: usize,
    pub(super) brief: bool,
    pub(super) job: J,
}

/// What came of a job.
pub(super) struct Done<A> {
    pub(super) ticket: u64,
    pub(super) place: usize,
    /// None: it panicked.
    pub(super) answer: Option<A>,
}

/// What threads and event loop share.
///
/// It holds at all times: of the threads that are awake and not at a long job there are enough for what is in the
/// queue, or nobody sleeps. Enough is one for each long job, and one for all brief jobs. Only [`State::take_in`] can
/// break that, and calls threads.
pub(super) struct State<J: Job> {
    /// Those that live.
    pub(super) threads: usize,
    /// Those that sleep and have not been called.
    pub(super) sleeping: usize,
    /// Those that were called and have not noticed.
    called: usize,
    /// Those at a job.
    pub(super) busy: usize,
    /// Those at a job that is not brief.
    pub(super) at_length: usize,
    /// In the order of their tickets.
    pub(super) queue: VecDeque<Waiting<J>>,
    /// Brief ones in the queue.
    briefs: usize,
    /// The most that the queue takes.
    room: usize,
    /// Jobs that wait at the event loop for room in the queue.
    pub(super) backlog: usize,
    pub(super) done: Vec<Done<J::Answer>>,
    /// The event loop has been told of `done`, and has not looked yet.
    rung: bool,
    /// Jobs that a thread did, and jobs that were given up before one began with them.
    pub(super) did: u64,
    pub(super) given_up: u64,
    pub(super) has_desk: bool,
    /// The pool ends.
    pub(super) closed: bool,
    /// It ends under people who wait for an answer.
    pub(super) cut_off: bool,
}

impl<J: Job> State<J> {
    pub(super) fn new(room: usize) -> Self {
        Self {
            threads: 0,
            sleeping: 0,
            called: 0,
            busy: 0,
            at_length: 0,
            queue: VecDeque::new(),
            briefs: 0,
            room,
            backlog: 0,
            done: Vec::new(),
            rung: false,
            did: 0,
            given_up: 0,
            has_desk: false,
            closed: false,
            cut_off: false,
        }
    }

    /// The event loop brings what waits, as far as there is room; how many threads it has to wake.
    pub(super) fn take_in(&mut self, backlog: &mut VecDeque<Waiting<J>>) -> usize {
        while self.queue.len() < self.room {
            let Some(next) = backlog.pop_front() else { break };
            self.briefs += usize::from(next.brief);
            self.queue.push_back(next);
        }
        self.backlog = backlog.len();
        let free = self.threads - self.sleeping - self.at_length;
        let wanted = self.queue.len() - self.briefs + usize::from(self.briefs > 0);
        let calls = wanted.saturating_sub(free).min(self.sleeping);
        self.sleeping -= calls;
        self.called += calls;
        calls
    }

    /// The event loop fetches what is done, into an empty `fetched`.
    pub(super) fn fetch(&mut self, fetched: &mut Vec<Done<J::Answer>>) {
        std::mem::swap(&mut self.done, fetched);
        self.rung = false;
    }

    /// A thread takes the next job.
    pub(super) fn begin(&mut self) -> Option<Waiting<J>> {
        let next = self.queue.pop_front()?;
        self.briefs -= usize::from(next.brief);
        self.busy += 1;
        self.at_length += usize::from(!next.brief);
        Some(next)
    }

    /// A thread has done its job.
    pub(super) fn end(&mut self, brief: bool) {
        self.busy -= 1;
        self.at_length -= usize::from(!brief);
        self.did += 1;
    }

    /// A thread hands on what came of its jobs; whether it has to ring for the event loop.
    pub(super) fn hand_on(&mut self, finished: &mut Vec<Done<J::Answer>>) -> bool {
        if finished.is_empty() {
            return false;
        }
        self.done.append(finished);
        !std::mem::replace(&mut self.rung, true)
    }

    /// Whether a thread that sleeps is one of those that were called.
    pub(super) fn is_called(&mut self) -> bool {
        let called = self.called > 0;
        self.called -= usize::from(called);
        called
    }

    /// The job, if no thread has begun with it.
    pub(super) fn give_up(&mut self, ticket: u64) -> Option<Waiting<J>> {
        let given_up = without(&mut self.queue, ticket)?;
        self.briefs -= usize::from(given_up.brief);
        self.given_up += 1;
        Some(given_up)
    }
}

/// Takes the job with this ticket out of a line, if it is there.
pub(super) fn without<J>(line: &mut VecDeque<Waiting<J>>, ticket: u64) -> Option<Waiting<J>> {
    let at = line.binary_search_by_key(&ticket, |waiting| waiting.ticket).ok()?;
    line.remove(at)
}
