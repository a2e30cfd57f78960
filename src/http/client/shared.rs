//! What all requests of one client share.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use tokio::sync::Notify;

use super::Options;
use super::http1::Draining;
use super::origin::Origin;
use super::pool::{Lease, Pool, Tally};
use super::request::Upload;
use super::socket::Socket;
use crate::decide::Nanos;
use crate::machine::timer::Timer;

/// What is read at once.
const SCRATCH: usize = 64 * 1024;

/// A head's buffer that is larger than this is not kept.
const MOST_SPARE: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) timer: Timer,
    pub(super) options: Options,
    pub(super) tally: Tally,
    pools: RefCell<BTreeMap<u64, Rc<Pool>>>,
    scratch: RefCell<Vec<u8>>,
    spare: RefCell<Vec<u8>>,
    /// The last sweep.
    now: Cell<Nanos>,
    drains: Rc<Drains>,
}

/// How long an unwanted rest may take.
const DRAIN: Nanos = Nanos::SECOND;

/// Rests that nobody waits for any more. A body may be dropped anywhere, but a task is started only where there are
/// tasks: so one that was started by a request starts those that drain.
#[derive(Debug, Default)]
struct Drains {
    begun: Cell<bool>,
    new: RefCell<Vec<Draining>>,
    bell: Notify,
}

impl Shared {
    pub(super) fn new(timer: Timer, options: Options) -> Self {
        Self {
            timer,
            options,
            tally: Tally::default(),
            pools: RefCell::default(),
            scratch: RefCell::new(vec![0; SCRATCH]),
            spare: RefCell::default(),
            now: Cell::default(),
            drains: Rc::default(),
        }
    }

    pub(super) fn pool(&self, origin: &Arc<Origin>) -> Rc<Pool> {
        let mut pools = self.pools.borrow_mut();
        let pool = pools
            .entry(origin.id)
            .or_insert_with(|| Rc::new(Pool::new(Arc::clone(origin), Rc::clone(&self.tally), self.options.most_idle)));
        Rc::clone(pool)
    }

    /// What reads go into. Not to be held across an await.
    pub(super) fn scratch(&self) -> RefMut<'_, Vec<u8>> {
        self.scratch.borrow_mut()
    }

    /// A buffer for a request's head.
    pub(super) fn buffer(&self) -> Vec<u8> {
        self.spare.take()
    }

    /// Keeps the buffer of a request that was sent.
    pub(super) fn spare(&self, upload: Upload) {
        let buffer = upload.into_buffer();
        if buffer.capacity() <= MOST_SPARE {
            self.spare.replace(buffer);
        }
    }

    /// Has a connection wait for the next request, unless something came behind the answer; `filled` says that the
    /// last read may have left something.
    pub(super) fn give_back(&self, mut lease: Lease, filled: bool) {
        let clean = !filled || lease.socket.as_mut().is_some_and(Socket::has_nothing);
        if clean {
            lease.give_back(self.now.get());
        }
    }

    /// To be called by each request, as a task: what is dropped later may be outside of all tasks.
    pub(super) fn begin(self: &Rc<Self>) {
        if !self.drains.begun.replace(true) {
            tokio::task::spawn_local(drain_all(Rc::clone(&self.drains), Rc::downgrade(self)));
        }
    }

    /// Reads the rest of a body in the background, for a second at most.
    pub(super) fn drain(&self, draining: Draining) {
        self.drains.new.borrow_mut().push(draining);
        self.drains.bell.notify_one();
    }

    /// The last sweep.
    pub(super) fn now(&self) -> Nanos {
        self.now.get()
    }

    pub(super) fn sweep(&self, now: Nanos) {
        self.now.set(now);
        let pools: Vec<_> = self.pools.borrow().values().map(Rc::clone).collect();
        for pool in &pools {
            let kept = pool.origin.keep_idle.unwrap_or(self.options.idle_timeout);
            let before = if pool.is_orphan() { Nanos::NEVER } else { now - kept };
            pool.sweep(before, now);
        }
        drop(pools);
        self.pools.borrow_mut().retain(|_, pool| !pool.is_abandoned());
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        for pool in self.pools.get_mut().values() {
            pool.http2.close();
        }
        self.drains.bell.notify_one();
    }
}

async fn drain_all(drains: Rc<Drains>, shared: Weak<Shared>) {
    loop {
        drains.bell.notified().await;
        for draining in drains.new.take() {
            let Some(shared) = shared.upgrade() else { return };
            tokio::task::spawn_local(drain(draining, shared));
        }
        if shared.strong_count() == 0 {
            return;
        }
    }
}

async fn drain(draining: Draining, shared: Rc<Shared>) {
    tokio::select! {
        lease = draining.run(&shared) => if let Some(lease) = lease {
            lease.give_back(shared.now.get());
        },
        () = shared.timer.sleep(DRAIN) => {}
    }
}
