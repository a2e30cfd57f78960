//! State that all requests of a client share.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

use http::HeaderMap;
use tokio::sync::Notify;

use super::Options;
use super::body_drain::BodyDrain;
use super::origin::Origin;
use super::pool::{ConnectionPool, PooledConnection, SharedClientCounts};
use super::read_pool::ReadPool;
use super::request::{OutgoingRequest, RequestWriter};
use super::response::HeadParser;
use super::socket::ClientSocket;
use crate::wire::PassedFields;
use weir_base::Nanos;
use weir_machine::executor::spawn_task;
use weir_machine::timer::Timer;

/// Size of a read.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// Buffers and header maps that are kept: each request has one until its response comes.
const MAX_KEPT: usize = 128;
/// Larger ones are freed.
const MAX_KEPT_BYTES: usize = 16 * 1024;
const MAX_KEPT_FIELDS: usize = 64;
/// Size of a new buffer, which most heads do not exceed.
const NEW_BUFFER_BYTES: usize = 1024;

#[derive(Debug)]
pub(super) struct ClientState {
    pub(super) timer: Timer,
    pub(super) options: Options,
    pub(super) counts: SharedClientCounts,
    pools: RefCell<BTreeMap<u64, Rc<ConnectionPool>>>,
    pub(super) large_reads: ReadPool,
    read_buffer: RefCell<Vec<u8>>,
    buffers: RefCell<Vec<Vec<u8>>>,
    header_maps: RefCell<Vec<HeaderMap>>,
    passed_fields: RefCell<Vec<PassedFields>>,
    /// Time of the last sweep.
    last_sweep: Cell<Nanos>,
    drain_queue: Rc<DrainQueue>,
}

/// Timeout for reading an unwanted rest of a body.
const DRAIN_TIMEOUT: Nanos = Nanos::SECOND;

/// Unwanted rests of bodies. A body may be dropped anywhere, but a task can be started only within tasks: so a task
/// that was started by a request starts those that read the rests.
#[derive(Debug, Default)]
struct DrainQueue {
    is_started: Cell<bool>,
    pending: RefCell<Vec<BodyDrain>>,
    notify: Notify,
}

impl ClientState {
    pub(super) fn new(timer: Timer, options: Options) -> Self {
        Self {
            timer,
            options,
            counts: SharedClientCounts::default(),
            pools: RefCell::default(),
            large_reads: ReadPool::default(),
            read_buffer: RefCell::new(vec![0; READ_BUFFER_BYTES]),
            buffers: RefCell::default(),
            header_maps: RefCell::default(),
            passed_fields: RefCell::default(),
            last_sweep: Cell::default(),
            drain_queue: Rc::default(),
        }
    }

    pub(super) fn pool(&self, origin: &Arc<Origin>) -> Rc<ConnectionPool> {
        let mut pools = self.pools.borrow_mut();
        let pool = pools.entry(origin.id).or_insert_with(|| {
            Rc::new(ConnectionPool::new(Arc::clone(origin), Rc::clone(&self.counts), self.options.max_idle))
        });
        Rc::clone(pool)
    }

    /// Buffer for reads. Not to be held across an await.
    pub(super) fn read_buffer(&self) -> RefMut<'_, Vec<u8>> {
        self.read_buffer.borrow_mut()
    }

    /// A buffer for a request's head.
    pub(super) fn buffer(&self) -> Vec<u8> {
        self.buffers.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(NEW_BUFFER_BYTES))
    }

    /// Reuses the buffer of a sent request.
    pub(super) fn recycle(&self, upload: RequestWriter) {
        let (buffer, mut kept) = (upload.into_buffer(), self.buffers.borrow_mut());
        if kept.len() < MAX_KEPT && (1..=MAX_KEPT_BYTES).contains(&buffer.capacity()) {
            kept.push(buffer);
        }
    }

    /// Decoder of the head of a request's response.
    pub(super) fn head_parser(&self, request: &OutgoingRequest<'_>) -> HeadParser {
        let passes_all_but = request.wire.passes_all_but.map(|names| (Arc::clone(names), self.passed_fields()));
        HeadParser::of(request.response_context(), request.protocol(), passes_all_but)
    }

    /// An empty map for the headers of a response.
    pub(super) fn header_map(&self) -> HeaderMap {
        self.header_maps.borrow_mut().pop().unwrap_or_default()
    }

    /// Reuses the memory of headers.
    pub(super) fn recycle_headers(&self, mut headers: HeaderMap) {
        let mut kept = self.header_maps.borrow_mut();
        if kept.len() < MAX_KEPT && (1..=MAX_KEPT_FIELDS).contains(&headers.capacity()) {
            headers.clear();
            kept.push(headers);
        }
    }

    /// Memory for fields of a response that nothing reads.
    pub(super) fn passed_fields(&self) -> PassedFields {
        self.passed_fields.borrow_mut().pop().unwrap_or_default()
    }

    /// Reuses the memory of such fields.
    pub(super) fn recycle_passed_fields(&self, mut passed: PassedFields) {
        let mut kept = self.passed_fields.borrow_mut();
        if kept.len() < MAX_KEPT && (1..=MAX_KEPT_BYTES).contains(&passed.capacity()) {
            passed.clear();
            kept.push(passed);
        }
    }

    /// Makes a connection idle, unless bytes came behind the response; `filled`: the last read may have left some.
    pub(super) fn return_connection(&self, mut connection: PooledConnection, filled: bool) {
        let is_reusable = !filled || connection.socket.as_mut().is_some_and(ClientSocket::has_nothing);
        if is_reusable {
            connection.return_to_pool(self.last_sweep.get());
        }
    }

    /// Called by each request within a task, since bodies may be dropped outside of all tasks.
    pub(super) fn start_drains(self: &Rc<Self>) {
        if !self.drain_queue.is_started.replace(true) {
            spawn_task(drain_all(Rc::clone(&self.drain_queue), Rc::downgrade(self)));
        }
    }

    /// Reads the rest of a body in the background, for a second at most.
    pub(super) fn drain(&self, draining: BodyDrain) {
        self.drain_queue.pending.borrow_mut().push(draining);
        self.drain_queue.notify.notify_one();
    }

    /// Time of the last sweep.
    pub(super) fn last_sweep(&self) -> Nanos {
        self.last_sweep.get()
    }

    pub(super) fn sweep(&self, now: Nanos) {
        self.last_sweep.set(now);
        let pools: Vec<_> = self.pools.borrow().values().map(Rc::clone).collect();
        for pool in &pools {
            let kept = pool.origin.idle_timeout.unwrap_or(self.options.idle_timeout);
            let before = if pool.has_lost_origin() { Nanos::NEVER } else { now - kept };
            pool.sweep(before, now);
        }
        drop(pools);
        self.pools.borrow_mut().retain(|_, pool| !pool.is_abandoned());
    }
}

impl Drop for ClientState {
    fn drop(&mut self) {
        for pool in self.pools.get_mut().values() {
            pool.http2.close();
        }
        self.drain_queue.notify.notify_one();
    }
}

async fn drain_all(drains: Rc<DrainQueue>, shared: Weak<ClientState>) {
    loop {
        drains.notify.notified().await;
        for draining in drains.pending.take() {
            let Some(shared) = shared.upgrade() else { return };
            spawn_task(drain(draining, shared));
        }
        if shared.strong_count() == 0 {
            return;
        }
    }
}

async fn drain(draining: BodyDrain, shared: Rc<ClientState>) {
    tokio::select! {
        lease = draining.run(&shared.read_buffer) => if let Some(lease) = lease {
            lease.return_to_pool(shared.last_sweep.get());
        },
        () = shared.timer.sleep(DRAIN_TIMEOUT) => {}
    }
}
