//! Arrivals that a thread reads ahead of a load, on their way to the worker threads.
//!
//! They are dealt to the worker threads in turn, in batches, through channels that hold a limited number of them: so a
//! file of any size takes the memory of a few thousand arrivals, and its reader waits for the load. The batches of all
//! threads are handed over together, since a thread that waited for a batch that is not full yet would send late.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, sync_channel};

use weir_base::Nanos;
use weir_pace::arrival_queue::ArrivalQueue;
use weir_pace::schedule::ScheduledArrival;

/// Arrivals of a batch, and their bytes.
const BATCH_ITEMS: usize = 64;
const BATCH_BYTES: usize = 64 * 1024;
/// Maximum number of batches that a thread has before it.
const MAX_BATCHES: usize = 64;

/// Arrival with what is sent.
type Arrival<T> = (ScheduledArrival, T);

/// The load has ended: no thread takes further arrivals.
#[derive(Clone, Copy, Debug)]
pub struct LoadEnded;

/// Batches of arrivals for the worker threads, on the side of their reader.
#[derive(Debug)]
pub struct ArrivalBatches<T> {
    queues: Vec<SyncSender<Vec<Arrival<T>>>>,
    batches: Vec<Vec<Arrival<T>>>,
    bytes: usize,
    number: u64,
    /// Signalled when the first batches are ready, or by disconnection at the end.
    primed: Option<Sender<()>>,
}

/// Arrivals of one worker thread, on its side.
#[derive(Debug)]
pub struct ArrivalInbox<T> {
    queue: Receiver<Vec<Arrival<T>>>,
    /// Items whose arrivals are in the queue of the load, in order, with their numbers.
    ready: VecDeque<(u64, T)>,
}

impl<T> ArrivalBatches<T> {
    /// No batches yet, and the inboxes of this number of threads; `primed` is signalled with the first batches.
    pub fn new(threads: u64, primed: Sender<()>) -> (Self, Vec<ArrivalInbox<T>>) {
        let (queues, receivers): (Vec<_>, Vec<_>) = (0..threads).map(|_| sync_channel(MAX_BATCHES)).unzip();
        let batches = queues.iter().map(|_| Vec::new()).collect();
        let inbox = |queue| ArrivalInbox { queue, ready: VecDeque::new() };
        let own = Self { queues, batches, bytes: 0, number: 0, primed: Some(primed) };
        (own, receivers.into_iter().map(inbox).collect())
    }

    /// Number of arrivals so far.
    pub fn count(&self) -> u64 {
        self.number
    }

    /// Puts an arrival into the batch of its thread; `bytes` is the memory of its item.
    pub fn deal(&mut self, intended: Nanos, bytes: usize, item: T) {
        let threads = self.batches.len().max(1) as u64;
        let thread = usize::try_from(self.number % threads).unwrap_or(0);
        let arrival = ScheduledArrival { intended, number: self.number };
        self.number += 1;
        self.bytes += bytes;
        if let Some(batch) = self.batches.get_mut(thread) {
            batch.push((arrival, item));
        }
    }

    /// Whether the batches are to be handed over.
    pub fn are_full(&self) -> bool {
        self.batches.first().is_some_and(|batch| batch.len() >= BATCH_ITEMS)
            || self.bytes >= BATCH_BYTES * self.queues.len()
    }

    /// Hands the batches over; waits while the threads have enough.
    ///
    /// # Errors
    /// The load has ended.
    pub fn hand_over(&mut self) -> Result<(), LoadEnded> {
        self.bytes = 0;
        for (queue, batch) in self.queues.iter().zip(&mut self.batches) {
            if !batch.is_empty() && queue.send(std::mem::take(batch)).is_err() {
                return Err(LoadEnded);
            }
        }
        if let Some(primed) = self.primed.take() {
            let _ = primed.send(());
        }
        Ok(())
    }
}

impl<T> ArrivalInbox<T> {
    /// Moves arrivals that are known into the queue of the load, and closes it after the last one.
    pub fn refill(&mut self, arrivals: &mut ArrivalQueue) {
        while arrivals.wants_more() {
            match self.queue.try_recv() {
                Ok(batch) => {
                    for (arrival, item) in batch {
                        self.ready.push_back((arrival.number, item));
                        arrivals.push(arrival);
                    }
                }
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => arrivals.close(),
            }
        }
    }

    /// Takes the item of an arrival. Those before it have waited too long, and were dropped.
    pub fn take(&mut self, number: u64) -> Option<T> {
        loop {
            match self.ready.pop_front()? {
                (own, _) if own < number => {}
                (_, item) => return Some(item),
            }
        }
    }
}
