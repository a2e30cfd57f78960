//! The one thread that changes something: all who wait share a journey to the server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::redis::Value;
use tokio::sync::watch;

use super::in_hand::InHand;
use super::jobs;
use super::link::{Link, Terms, Trouble};
use super::script::{Ask, Script};
use crate::decide::Nanos;
use crate::machine::clock::Clock;
use crate::redis::{Replies, Reply};
use crate::send::store::StoreError;
use crate::send::store::inbox::Inbox;
use crate::send::store::waiting::{Entrance, Waiting};
use crate::send::store::{Bounds, Receipt};

/// So many jobs get in with one question: the server does nothing else meanwhile.
const MOST_JOBS: usize = 512;
/// So many questions go together; of as many the server keeps its answers, for those who have not heard them.
const MOST_TASKS: usize = 60;
/// Who asks is told after so long that the server is away.
const PATIENCE: Nanos = Nanos::from_secs(5);
/// So long a store that is closed tries to get rid of what it still has.
const LAST_PATIENCE: Nanos = Nanos::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Whoever waits for room looks for it so often, if no news comes.
const LOOK: Nanos = Nanos::from_millis(500);

/// Whoever is told what came of a question, and the clock before it was asked.
pub(super) type Hears = Box<dyn FnOnce(Result<Value, StoreError>) + Send>;

pub(super) enum Task {
    /// One question. What a claim took and nobody heard of is given back.
    Ask { ask: Ask, hears: Hears },
    /// Several, one after the other.
    Long(Does),
}

/// Whoever asks one question after the other.
type Does = Box<dyn FnOnce(&mut dyn FnMut(Ask) -> Result<Value, StoreError>) + Send>;

/// What the threads of a store share.
pub(super) struct Shared {
    pub(super) terms: Arc<Terms>,
    pub(super) inbox: Inbox<Task>,
    pub(super) bounds: Bounds,
    pub(super) arrivals: watch::Sender<u64>,
    pub(super) changes: watch::Sender<u64>,
    /// Keys have come free, or senders have come or gone.
    pub(super) moves: watch::Sender<u64>,
    /// Why the server does not answer, while it does not.
    pub(super) trouble: Mutex<Option<String>>,
    pub(super) in_hand: InHand,
    /// This handle sends.
    pub(super) sends: AtomicBool,
    /// Somebody waits for room.
    pub(super) crowded: AtomicBool,
}

impl Shared {
    fn set_trouble(&self, why: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// What a script has said that has happened.
    pub(super) fn heard(&self, what: i64) {
        let tell = |watch: &watch::Sender<u64>| watch.send_modify(|n| *n = n.wrapping_add(1));
        if what & 1 != 0 {
            tell(&self.changes);
        }
        if what & 2 != 0 {
            tell(&self.arrivals);
        }
        if what > 0 && self.crowded.load(Ordering::Relaxed) {
            self.inbox.look();
        }
    }
}

/// What the thread has.
pub(super) struct Writer {
    link: Link,
    shared: Arc<Shared>,
    clock: Clock,
    waiting: Waiting,
    /// The number of the last question.
    number: u64,
    /// Jobs on their way in, under the number that they are asked with until there is an answer.
    entering: Option<(u64, Ask)>,
    /// There was no room then.
    crowded: Option<Nanos>,
    /// Claims that nobody has heard the answer of.
    unheard: Vec<u64>,
    /// When the sender was last said to be alive.
    beaten: Nanos,
}

impl Writer {
    pub(super) fn new(link: Link, shared: Arc<Shared>) -> Self {
        let clock = Clock::starting_in(Nanos::ZERO);
        let (waiting, unheard) = (Waiting::default(), Vec::new());
        Self { link, shared, clock, waiting, number: 0, entering: None, crowded: None, unheard, beaten: Nanos::ZERO }
    }

    /// Works until the inbox is closed and empty.
    pub(super) fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let lease = shared.terms.address.lease;
        loop {
            if self.waiting.is_empty() {
                self.crowded = None;
            }
            let now = self.clock.now();
            let mut wait = Nanos(lease.0 / 4);
            if let Some(since) = self.crowded.filter(|_| !self.waiting.is_empty()) {
                wait = wait.min(since + LOOK - now);
            }
            // More of them may get in at once.
            if self.entering.is_some() || self.crowded.is_none() && !self.waiting.is_empty() {
                wait = Nanos::ZERO;
            }
            let Some(taken) = shared.inbox.take(&mut self.waiting, MOST_TASKS, wait) else { break };
            let mut tasks = taken.tasks;
            if taken.look || self.crowded.is_some_and(|since| self.clock.now() >= since + LOOK) {
                self.crowded = None;
                shared.crowded.store(false, Ordering::Relaxed);
            }
            if shared.sends.load(Ordering::Relaxed) && self.clock.now() >= self.beaten + Nanos(lease.0 / 2) {
                tasks.push(Task::Ask { ask: super::keys::alive(&shared.terms), hears: Box::new(|_| ()) });
            }
            self.work(tasks);
            self.keep_what_is_in_hand();
            // They did not get through, and nobody waits for the server any longer.
            if self.entering.is_some() && shared.inbox.is_closed() {
                break;
            }
        }
        self.waiting.fail_all(&StoreError::Closed);
    }

    fn work(&mut self, tasks: Vec<Task>) {
        let mut group = Vec::new();
        for task in tasks {
            match task {
                Task::Ask { ask, hears } => group.push((ask, hears)),
                Task::Long(does) => {
                    self.together(std::mem::take(&mut group));
                    does(&mut |ask| self.alone(&ask));
                }
            }
        }
        self.together(group);
    }

    /// After all that was asked before has been answered, and what was not heard of is given back: till then nobody knows
    /// what is in hand.
    fn keep_what_is_in_hand(&mut self) {
        if !self.link.is_another_run || !self.unheard.is_empty() {
            return;
        }
        let ask = self.shared.in_hand.ask();
        if let Ok(said) = self.alone(&ask) {
            self.link.is_another_run = false;
            self.shared.heard(Reply(said).int());
        }
    }

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    fn alone(&mut self, ask: &Ask) -> Result<Value, StoreError> {
        let number = self.next();
        let mut answers = self.insist(&[(number, ask)])?;
        answers.pop().unwrap_or(Err(StoreError::Closed))
    }

    /// Asks all of it in one go, and what waits to get in with it.
    fn together(&mut self, group: Vec<(Ask, Hears)>) {
        if self.entering.is_none() && self.crowded.is_none() && !self.waiting.is_empty() {
            let ask =
                jobs::submit(self.waiting.first(MOST_JOBS), self.shared.bounds, self.link.order, &self.shared.terms);
            match ask {
                Some(ask) => self.entering = Some((self.next(), ask)),
                // A batch without a job is in.
                None => self.waiting.entered(std::iter::empty()),
            }
        }
        let unheard = self.unheard.clone();
        let forgets: Vec<(u64, Ask)> = unheard
            .iter()
            .map(|claim| {
                let mut ask = Ask::new(Script::Forget);
                ask.number(claim);
                (self.next(), ask)
            })
            .collect();
        let numbered: Vec<(u64, Ask, Hears)> =
            group.into_iter().map(|(ask, hears)| (self.next(), ask, hears)).collect();
        if self.entering.is_none() && forgets.is_empty() && numbered.is_empty() {
            return;
        }
        if numbered.iter().any(|(_, ask, _)| ask.script == Script::Beat) {
            self.beaten = self.clock.now();
        }
        let entering = self.entering.take();
        let all: Vec<(u64, &Ask)> = (forgets.iter().map(|(number, ask)| (*number, ask)))
            .chain(entering.iter().map(|(number, ask)| (*number, ask)))
            .chain(numbered.iter().map(|(number, ask, _)| (*number, ask)))
            .collect();
        let answers = self.insist(&all);
        match answers {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                self.unheard.clear();
                for answer in answers.by_ref().take(forgets.len()) {
                    self.shared.heard(answer.map_or(0, |value| Reply(value).int()));
                }
                if let Some((_, ask)) = &entering {
                    self.entered(ask, answers.next().unwrap_or(Err(StoreError::Closed)));
                }
                for (answer, (.., hears)) in answers.zip(numbered) {
                    hears(answer);
                }
            }
            Err(why) => {
                self.entering = entering;
                if !matches!(why, StoreError::Away(..)) {
                    self.entering = None;
                    self.waiting.fail_all(&why);
                }
                for (number, ask, hears) in numbered {
                    if ask.script == Script::Claim {
                        self.unheard.push(number);
                    }
                    hears(Err(why.clone()));
                }
            }
        }
    }

    fn entered(&mut self, asked: &Ask, answer: Result<Value, StoreError>) {
        let mut said = match answer {
            Ok(said) => Replies::of(said),
            Err(why) => {
                self.waiting.fail_first(why);
                return;
            }
        };
        let (what, stop) = (said.take().int(), said.take().int());
        let mut entrances = Vec::new();
        while !said.is_empty() {
            let (number, state) = (said.take().count(), said.take().text());
            // A state that is none stands for a job that is new.
            let receipt = state.parse().map_or(Receipt::Accepted(number), |state| Receipt::Known(number, state));
            entrances.push(Entrance::In(receipt));
        }
        match stop {
            1 => {
                self.crowded = Some(self.clock.now());
                self.shared.crowded.store(true, Ordering::Relaxed);
                entrances.push(Entrance::NoRoom);
            }
            2 => {
                let bytes = jobs::bytes_of(asked, entrances.len());
                entrances.push(Entrance::TooLarge { bytes, most_bytes: self.shared.bounds.bytes });
            }
            _ => {}
        }
        // First: whoever waits to be told may look at once whether something has happened.
        self.shared.heard(what);
        self.waiting.entered(entrances.into_iter());
    }

    /// Asks until there is an answer, for a while: what is asked again under its number is not done again.
    fn insist(&mut self, asks: &[(u64, &Ask)]) -> Result<Vec<Result<Value, StoreError>>, StoreError> {
        let (begun, mut pause) = (self.clock.now(), FIRST_PAUSE);
        loop {
            match self.link.ask(asks) {
                Ok(answers) => {
                    self.shared.set_trouble(None);
                    return Ok(answers);
                }
                Err(Trouble::Ends(why)) => return Err(why),
                Err(Trouble::Away(why)) => {
                    self.shared.set_trouble(Some(why.clone()));
                    let patience = if self.shared.inbox.is_closed() { LAST_PATIENCE } else { PATIENCE };
                    if self.clock.now() - begun >= patience {
                        return Err(StoreError::Away(self.shared.terms.address.path(), why));
                    }
                    self.shared.inbox.pause(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}
