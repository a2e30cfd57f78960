//! Runtime of a sender: five owners on one event loop. Each has a loop and state of its own, and an inbox of events
//! ([`channels`]); what they share never changes ([`SenderContext`]).
//!
//! ```text
//!            Claimed, JobsDue             ReportEvent              RecordEvent
//!   claims ───────────────────► attempts ─────────────► reports ──────────────► records
//!    ▲  ▲         Wanted         │ ▲ ▲ ▲                   │                     │   │
//!    │  └────────────────────────┘ │ │ └───────────────────┘                     │   │
//!    │                             │ │          Checked, ListenerFull            │   │
//!    │                             │ └───────────────────────────────────────────┘   │
//!    │             KeyLeaseUpdate, │              GroupBegins, Recorded               │
//!    │              KeyLeaseEvent  │                                                  │
//!    │   key_leases ◄──────────────┘   request in flight ──► attempts: Departed, Ended│
//!    └────────────────────────────────────────────────────────────────────────────────┘
//!                                     RetryRecorded
//! ```
//!
//! - [`attempts`] owns the leased jobs, their requests in flight, and the dispatch that decides what is sent when: no
//!   other owner calls it. It decides when the sender ends, and then ends the others: a last record
//!   ([`RecordEvent::Finish`](channels::RecordEvent::Finish)) passes through reports and records, and
//!   [`KeyLeaseEvent::Leave`](channels::KeyLeaseEvent::Leave) ends key leases. Each owner reports a failure to it
//!   ([`AttemptEvent::Failed`](channels::AttemptEvent::Failed)).
//! - [`claims`] calls the store for jobs, a little ahead of need, many per commit; how far depends on the send rate
//!   (`attempts::ready_jobs`). Pinned jobs are claimed for their key, and so take no slots of other keys. A retrying
//!   job goes back to the store, which has its time and attempts across crashes, and is claimed again.
//! - [`reports`] owns the listener. What is to be recorded passes through it, so that only reported events are
//!   recorded.
//! - [`records`] writes changes in groups: one commit while the next group collects. Each job is marked as sent just
//!   before its first byte leaves (`attempts::marks`): after a crash no other job counts as maybe sent.
//! - [`key_leases`] acquires, renews and releases leases of keys, where several senders share them. The owner of
//!   attempts has a copy of their ends (`attempts::held_keys`): nothing is sent under an expired lease.

mod attempts;
mod channels;
mod claims;
mod context;
mod crash;
mod key_leases;
mod queued_attempt;
mod records;
mod reports;

use std::rc::Rc;
use std::sync::{Arc, Mutex};

use tokio::sync::{oneshot, watch};

use self::attempts::AttemptLoop;
pub use self::attempts::{HostProgress, SenderProgress};
use self::channels::{Channels, Inboxes};
use self::claims::ClaimLoop;
use self::context::SenderContext;
use self::key_leases::KeyLeaseLoop;
use self::records::RecordLoop;
use self::reports::ReportLoop;
use super::events::Listener;
use super::options::Options;
use super::sender_error::SenderError;
use super::stop_mode::StopMode;
use super::store::Store;
use weir_base::Nanos;
use weir_machine::clock::Clock;
use weir_machine::executor::spawn_task;
use weir_machine::timer::Timer;
use weir_net::client::{Client, Options as ClientOptions};

/// Offset of the dispatch's clock, so that sends of earlier senders have times on it.
const CLOCK_HEAD_START: Nanos = Nanos::from_secs(48 * 3600);
/// Interval at which idle connections are closed.
const SWEEP_INTERVAL: Nanos = Nanos::from_secs(5);

/// Runs until a stop mode is reached, or an error.
pub(super) async fn run(
    store: Arc<dyn Store>,
    options: Options,
    listener: Box<dyn Listener>,
    stop_mode: watch::Receiver<StopMode>,
    progress: Arc<Mutex<SenderProgress>>,
    started: oneshot::Sender<Result<(), SenderError>>,
) -> Result<(), SenderError> {
    let (timer, timer_driver) = match Timer::new(Clock::started_ago(CLOCK_HEAD_START)) {
        Ok(timer) => timer,
        Err(error) => {
            let _ = started.send(Err(SenderError::System(format!("cannot start the sender: {error}"))));
            return Ok(());
        }
    };
    let max_idle = if options.keepalive { options.rules.max_in_flight } else { 0 };
    let client = Client::new(timer.clone(), ClientOptions { max_idle, ..ClientOptions::default() });
    let (channels, inboxes) = Channels::open();
    let Inboxes { claims, attempts, reports, records, key_leases } = inboxes;
    let context = Rc::new(SenderContext::new(store, options, stop_mode, timer, channels, listener.has_reports()));
    let mut attempts = match AttemptLoop::new(&context, attempts, client.clone(), progress) {
        Ok(attempts) => attempts,
        Err(error) => {
            let _ = started.send(Err(error));
            return Ok(());
        }
    };
    let _ = started.send(Ok(()));
    spawn_task(timer_driver);
    spawn_task(sweep(client, context.timer.clone()));
    spawn_task(ClaimLoop::new(Rc::clone(&context), claims).run());
    spawn_task(ReportLoop::new(Rc::clone(&context), reports, listener).run());
    let records = spawn_task(RecordLoop::new(Rc::clone(&context), records).run());
    let shared = context.store.shared_keys();
    let key_leases = shared.map(|shared| KeyLeaseLoop::new(Rc::clone(&context), key_leases, shared).run());
    let key_leases = key_leases.map(spawn_task);
    attempts.run().await;
    attempts.shut_down(records, key_leases).await
}

/// Closes idle connections.
async fn sweep(client: Client, timer: Timer) {
    loop {
        timer.sleep(SWEEP_INTERVAL).await;
        client.sweep(timer.now());
    }
}
