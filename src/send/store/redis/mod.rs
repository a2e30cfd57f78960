//! A store on a Redis server: as many processes submit, inspect and send as there are.
//!
//! Each step of a job's life is one script on the server ([`script`], `lua/`), so that no two processes see half of it.
//! One thread asks them ([`writer`]): all that waits goes in one journey, and what is asked again, as the connection was
//! lost before the answer came, is not done again. Another thread hears of what others have changed ([`ear`]). What reads
//! has a connection of its own, on the caller's thread.
//!
//! The server's clock is everybody's: times are translated on their way there and back. A sender's jobs are leased to
//! its *session*, which lives as long as it is heard of; so a lease is not renewed job by job. What lies where is said in
//! `docs/design/redis.md`.

mod address;
mod durability;
mod ear;
mod in_hand;
mod jobs;
mod keys;
mod link;
mod reply;
mod script;
#[cfg(test)]
mod trouble;
mod writer;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use ::redis::Value;
use tokio::sync::watch;

#[cfg(test)]
pub(super) use crate::redis::server;

pub use self::address::Address;
use self::in_hand::InHand;
use self::link::{Link, Terms, Trouble};
use self::script::{Ask, Script};
use self::writer::{Shared, Task, Writer};
use super::inbox::Inbox;
use super::keys::SharedKeys;
use super::uses::KeyUses;
use super::waiting::Batch;
use super::{
    Bounds, Claim, Claimed, Counts, Filter, KeyNote, KeyUse, Lane, Lease, Order, Receipt, Record, Recorded, Recovered,
    Sends, Store, StoreError, Ticket, Which,
};
use crate::decide::Nanos;
use crate::redis::{Replies, Reply, new_name};
use crate::send::job::{Detail, Edit, Entry, Job, UnixMs};
use crate::send::state::State;

/// So many jobs are looked at, or swept, in one step: the server does nothing else meanwhile.
const PAGE: usize = 500;

/// Jobs on a server.
///
/// When it is dropped, what was asked of it is done if the server answers within two seconds; batches that wait for room
/// get [`StoreError::Closed`].
pub struct Redis {
    shared: Arc<Shared>,
    reader: Mutex<Link>,
    order: Order,
    writer: Option<JoinHandle<()>>,
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Redis").field(&self.shared.terms.address).finish()
    }
}

impl Redis {
    /// Connects to the server, and makes the queue if there is none and `create` says so. The order is that of a new queue;
    /// of one that is there already, what it was made with holds.
    ///
    /// # Errors
    /// The server does not answer, refuses, or may lose what it is given ([`StoreError::MayLose`]); there is no queue.
    pub fn open(address: &Address, create: bool, bounds: Bounds, order: Order) -> Result<Self, StoreError> {
        let cannot = |why: &str| StoreError::Open(address.path(), why.to_owned());
        let client = new_name().ok_or_else(|| cannot("the system has no random numbers"))?;
        let terms = Arc::new(Terms { address: address.clone(), client, create, order, ahead_ms: AtomicI64::new(0) });
        let mut links = [Link::new(Arc::clone(&terms)), Link::new(Arc::clone(&terms))];
        for link in &mut links {
            link.open().map_err(|trouble| ended(address, trouble))?;
        }
        let [link, reader] = links;
        let shared = Arc::new(Shared {
            terms,
            inbox: Inbox::default(),
            bounds,
            arrivals: watch::Sender::new(0),
            changes: watch::Sender::new(0),
            moves: watch::Sender::new(0),
            trouble: Mutex::default(),
            in_hand: InHand::default(),
            sends: AtomicBool::new(false),
            crowded: AtomicBool::new(false),
        });
        let order = link.order;
        let writer = Writer::new(link, Arc::clone(&shared));
        let thread = |name: &str| thread::Builder::new().name(name.into());
        let writer = thread("weir-store").spawn(move || writer.run()).map_err(|error| cannot(&error.to_string()))?;
        let store = Self { shared, reader: Mutex::new(reader), order, writer: Some(writer) };
        let shared = Arc::clone(&store.shared);
        // It ends by itself within a second; nobody waits for that.
        let (says, begun) = mpsc::channel();
        let ear = thread("weir-store-ear").spawn(move || ear::listen(&shared, says));
        ear.map_err(|error| cannot(&error.to_string()))?;
        // If it takes long it goes on by timers until then.
        let _ = begun.recv_timeout(std::time::Duration::from_secs(1));
        Ok(store)
    }

    /// Asks on the caller's thread; once more if the connection was lost since the last time.
    fn read(&self, ask: &Ask) -> Result<Value, StoreError> {
        if let Some(why) = self.trouble() {
            // Nobody waits twice: the writer finds out when it is there again.
            return Err(StoreError::Away(self.shared.terms.address.path(), why));
        }
        let mut link = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let mut last = StoreError::Closed;
        for _ in 0..2 {
            match link.ask(&[(0, ask)]) {
                Ok(mut answers) => return answers.pop().unwrap_or(Err(StoreError::Closed)),
                Err(trouble) => last = ended(&self.shared.terms.address, trouble),
            }
        }
        Err(last)
    }

    fn look(&self) -> Result<Replies, StoreError> {
        self.read(&Ask::new(Script::Look)).map(Replies::of)
    }

    /// Asks, and makes an answer of what is said, and of what has happened.
    fn ask_then<T: Send + 'static>(
        &self,
        ask: Ask,
        reads: impl FnOnce(Value) -> (T, i64) + Send + 'static,
    ) -> Ticket<T> {
        let (reply, ticket) = Ticket::new();
        let shared = Arc::clone(&self.shared);
        let hears = move |said: Result<Value, StoreError>| {
            let read = said.map(reads);
            let what = read.as_ref().map_or(0, |(_, what)| *what);
            // First: whoever waits for the answer may look at once whether something has happened.
            shared.heard(what);
            reply.give(read.map(|(answer, _)| answer));
        };
        self.shared.inbox.ask(Task::Ask { ask, hears: Box::new(hears) });
        ticket
    }

    /// Does what takes several questions, on the writer's thread.
    fn ask_long<T: Send + 'static>(
        &self,
        does: impl FnOnce(&mut dyn FnMut(Ask) -> Result<Value, StoreError>, &Shared) -> Result<T, StoreError>
        + Send
        + 'static,
    ) -> Ticket<T> {
        let (reply, ticket) = Ticket::new();
        let shared = Arc::clone(&self.shared);
        self.shared.inbox.ask(Task::Long(Box::new(move |asks| reply.give(does(asks, &shared)))));
        ticket
    }

    fn sends(&self) -> bool {
        self.shared.sends.load(Ordering::Relaxed)
    }

    /// Retries or removes what fits, page by page.
    fn sweep(&self, filter: Filter, purges: bool, expires: Option<UnixMs>, now: UnixMs) -> Ticket<u64> {
        let order = self.order;
        self.ask_long(move |asks, shared| {
            let may = |entry: &Entry| {
                filter.fits(entry)
                    && if purges { entry.status.state != State::Leased } else { entry.may_retry(expires, now) }
            };
            let (mut swept, mut after) = (0, 0);
            let only = named(&filter, asks, &shared.terms)?;
            loop {
                let page = match &only {
                    Some(only) => only.clone(),
                    None => rows(asks(list(&filter, after, PAGE))?, &shared.terms),
                };
                let Some(last) = page.last() else { break };
                after = last.number;
                let numbers: Vec<u64> = page.iter().filter(|entry| may(entry)).map(|entry| entry.number).collect();
                if !numbers.is_empty() {
                    let ask = jobs::sweep(&numbers, purges, expires, now, order, &shared.terms);
                    let mut said = Replies::of(asks(ask)?);
                    shared.heard(said.take().int());
                    swept += said.take().count();
                }
                if only.is_some() {
                    break;
                }
            }
            Ok(swept)
        })
    }
}

fn ended(address: &Address, trouble: Trouble) -> StoreError {
    match trouble {
        Trouble::Away(why) => StoreError::Away(address.path(), why),
        Trouble::Ends(why) => why,
    }
}

/// The lists in which jobs of the filter are.
fn list(filter: &Filter, after: u64, most: usize) -> Ask {
    let mut ask = Ask::new(Script::List);
    ask.number(after).number(most);
    let has = |states: &[State]| filter.states.is_empty() || filter.states.iter().any(|state| states.contains(state));
    let lists: [(&str, &[State]); 3] = [
        ("open", &[State::Queued, State::Leased, State::Dead]),
        ("done", &[State::Done]),
        ("failed", &[State::Graveyard, State::Expired]),
    ];
    for (name, _) in lists.iter().filter(|(_, states)| has(states)) {
        ask.say(name);
    }
    ask
}

fn rows(said: Value, terms: &Terms) -> Vec<Entry> {
    Reply::list(said).into_iter().map(|row| reply::entry(row.0, terms)).collect()
}

fn which(which: &Which) -> Ask {
    let mut ask = Ask::new(Script::Inspect);
    match which {
        Which::Number(number) => ask.say("number").number(number),
        Which::Id(id) => ask.say("id").say(id),
    };
    ask
}

/// The jobs that a filter names, in order; None: it names none.
fn named(
    filter: &Filter,
    asks: &mut dyn FnMut(Ask) -> Result<Value, StoreError>,
    terms: &Terms,
) -> Result<Option<Vec<Entry>>, StoreError> {
    if filter.only.is_empty() {
        return Ok(None);
    }
    let mut entries = Vec::with_capacity(filter.only.len());
    for job in &filter.only {
        entries.extend(reply::detail(asks(which(job))?, terms).map(|detail| detail.entry));
    }
    entries.sort_unstable_by_key(|entry| entry.number);
    entries.dedup_by_key(|entry| entry.number);
    Ok(Some(entries))
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.shared.inbox.close();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

impl Store for Redis {
    fn submit(&self, batch: Vec<Job>) -> Ticket<Vec<Receipt>> {
        let (reply, ticket) = Ticket::new();
        self.shared.inbox.submit(Batch::new(batch, reply));
        ticket
    }

    fn start_sending(&self, _: UnixMs) -> Result<Recovered, StoreError> {
        let beaten = self.ask_then(keys::alive(&self.shared.terms), |said| {
            let mut said = Replies::of(said);
            let (what, _now) = (said.take().int(), said.take());
            (Recovered { jobs: said.take().count(), maybe_sent: said.take().count() }, what)
        });
        let recovered = beaten.wait()?;
        self.shared.sends.store(true, Ordering::Relaxed);
        Ok(recovered)
    }

    fn claim(&self, claim: Claim) -> Ticket<Claimed> {
        if !self.sends() {
            return Ticket::ready(Err(StoreError::NotSending));
        }
        let (shared, is_endless, sent) = (Arc::clone(&self.shared), claim.lease == Nanos::NEVER, claim.sending);
        self.ask_then(jobs::claim(&claim, &self.shared.terms), move |said| {
            let (claimed, what) = jobs::claimed(said, &shared.terms);
            // The others run out by themselves.
            if is_endless {
                shared.in_hand.took(claimed.jobs.iter().map(|(lease, _)| *lease), sent);
            }
            (claimed, what)
        })
    }

    fn record(&self, record: Record) -> Ticket<Recorded> {
        if !self.sends() {
            return Ticket::ready(Err(StoreError::NotSending));
        }
        let (ask, shared) = (jobs::record(&record, &self.shared.terms), Arc::clone(&self.shared));
        shared.in_hand.sends(&record);
        self.ask_then(ask, move |said| {
            shared.in_hand.put_away(&record);
            jobs::recorded(said, &record)
        })
    }

    /// Whoever takes the job over may be on another machine: only the server can tell it.
    fn mark(&self, _: Lease, _: UnixMs) -> bool {
        false
    }

    fn renew(&self, leases: &[Lease], length: Nanos) -> Vec<Lease> {
        let mut ask = Ask::new(Script::Renew);
        ask.say(jobs::length_ms(length));
        for lease in leases {
            ask.number(lease.number).number(lease.token);
        }
        let held = self.ask_then(ask, |said| (Reply::list(said), 0)).wait().unwrap_or_default();
        let held = leases.iter().zip(held).filter(|(_, held)| held.int() == 1);
        held.map(|(lease, _)| *lease).collect()
    }

    fn counts(&self) -> Result<Counts, StoreError> {
        let tally = jobs::pairs(self.look()?.take());
        let of = |state: State, what: &str| tally.get(&format!("{state}:{what}")).copied().unwrap_or(0);
        Ok(Counts {
            jobs: State::ALL.map(|state| of(state, "jobs")),
            bytes: State::ALL.map(|state| of(state, "bytes")),
        })
    }

    fn hints(&self) -> Result<Vec<(Option<String>, u64)>, StoreError> {
        let mut said = self.look()?;
        let _tally = said.take();
        let hints = jobs::pairs(said.take()).into_iter();
        Ok(Lane::by_key(hints.map(|(lane, jobs)| (Lane::read(lane.strip_prefix('=').unwrap_or_default()), jobs))))
    }

    fn expiring(&self, before: UnixMs, most: usize) -> Result<usize, StoreError> {
        let mut ask = Ask::new(Script::Expiring);
        ask.number(self.shared.terms.theirs(before));
        let count = Reply(self.read(&ask)?).count();
        Ok(usize::try_from(count).unwrap_or(usize::MAX).min(most))
    }

    fn list(&self, filter: &Filter, after: u64, most: usize) -> Result<Vec<Entry>, StoreError> {
        if let Some(named) = named(filter, &mut |ask| self.read(&ask), &self.shared.terms)? {
            let fits = named.into_iter().filter(|entry| entry.number > after && filter.fits(entry));
            return Ok(fits.take(most).collect());
        }
        let (mut found, mut after) = (Vec::new(), after);
        while found.len() < most {
            let page = rows(self.read(&list(filter, after, PAGE.min(most)))?, &self.shared.terms);
            let Some(last) = page.last() else { break };
            after = last.number;
            found.extend(page.into_iter().filter(|entry| filter.fits(entry)));
        }
        found.truncate(most);
        Ok(found)
    }

    fn inspect(&self, job: &Which) -> Result<Option<Detail>, StoreError> {
        Ok(reply::detail(self.read(&which(job))?, &self.shared.terms))
    }

    fn edit(&self, number: u64, edit: Edit, now: UnixMs) -> Ticket<bool> {
        let order = self.order;
        self.ask_long(move |asks, shared| {
            loop {
                let found = reply::detail(asks(which(&Which::Number(number)))?, &shared.terms);
                let Some(before) = found.map(|detail| detail.entry) else { return Ok(false) };
                if !before.status.state.editable() {
                    return Ok(false);
                }
                let mut after = before.job.clone();
                edit.clone().apply(&mut after);
                let what = Reply(asks(jobs::edit(&before, &after, now, order, &shared.terms))?).int();
                if what >= 0 {
                    shared.heard(what);
                    return Ok(true);
                }
            }
        })
    }

    fn retry(&self, filter: Filter, expires: Option<UnixMs>, now: UnixMs) -> Ticket<u64> {
        self.sweep(filter, false, expires, now)
    }

    fn purge(&self, filter: Filter) -> Ticket<u64> {
        self.sweep(filter, true, None, UnixMs::default())
    }

    fn keys(&self) -> Result<Vec<KeyNote>, StoreError> {
        let mut said = self.look()?;
        let (_tally, _hints) = (said.take(), said.take());
        let mut keys = Replies::of(said.take().0);
        let mut notes = Vec::new();
        while !keys.is_empty() {
            let (key, note, _owner) = (keys.take().text(), keys.take().text(), keys.take());
            notes.push(KeyNote { key, note });
        }
        notes.retain(|note| !note.note.is_empty());
        notes.sort_unstable_by(|one, next| one.key.cmp(&next.key));
        Ok(notes)
    }

    fn arrivals(&self) -> watch::Receiver<u64> {
        self.shared.arrivals.subscribe()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes.subscribe()
    }

    fn sender(&self) -> Result<Sends, StoreError> {
        let mut said = self.look()?;
        let _ = [said.take(), said.take(), said.take()];
        let mut senders = Replies::of(said.take().0);
        let mut all = Vec::new();
        while !senders.is_empty() {
            let (session, who) = (senders.take().text(), senders.take().text());
            all.push(if who.is_empty() { session } else { who });
        }
        all.sort_unstable();
        Ok(if all.is_empty() { Sends::Nobody } else { Sends::Processes(all) })
    }

    fn key_uses(&self) -> Result<Vec<KeyUse>, StoreError> {
        let mut uses = KeyUses::default();
        for list in ["open", "done", "failed"] {
            let mut after = 0;
            loop {
                let mut ask = Ask::new(Script::Uses);
                ask.number(after).number(PAGE).say(list);
                let mut said = Replies::of(self.read(&ask)?);
                after = said.take().count();
                while !said.is_empty() {
                    let (key, sent, state) = (said.take().text(), said.take().int(), said.take().text());
                    uses.add(&key, self.shared.terms.ours(sent), state == State::Done.word());
                }
                if after == 0 {
                    break;
                }
            }
        }
        Ok(uses.all())
    }

    fn ended(&self, numbers: &[u64]) -> Result<Vec<u64>, StoreError> {
        let mut ask = Ask::new(Script::Ended);
        for number in numbers {
            ask.number(number);
        }
        Ok(Reply::list(self.read(&ask)?).into_iter().map(|number| number.count()).collect())
    }

    fn shared_keys(&self) -> Option<&dyn SharedKeys> {
        Some(self)
    }

    fn trouble(&self) -> Option<String> {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
