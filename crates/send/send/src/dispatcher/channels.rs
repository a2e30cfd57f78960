//! Channels between the owners: each has one inbox, with a type of event of its own.

use rustc_hash::FxHashMap;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::queued_attempt::{AttemptResponse, QueuedAttempt};
use crate::events::{AttemptRecord, FinishedJob};
use crate::job::JobEntry;
use crate::key_pause::PauseRecord;
use crate::key_state::KeyState;
use crate::sender_error::SenderError;
use crate::state::State;
use crate::store::{ClaimReply, JobChange, JobLease, LaneClaim, StoredKeyState};
use weir_base::Nanos;
use weir_delivery::dispatch::JobId;
use weir_delivery::key_window::KeyHistory;
use weir_net::client::SendError;

/// Event for the owner of claims.
#[derive(Debug)]
pub(super) enum ClaimEvent {
    /// Jobs to claim; replied to with [`AttemptEvent::Claimed`], before which no other is sent.
    Wanted(Vec<LaneClaim>),
    /// The store has a retrying job that may be due earlier than known.
    RetryRecorded,
}

/// Event for the owner of attempts.
#[derive(Debug)]
pub(super) enum AttemptEvent {
    /// The last byte of a request was handed to the system at this time. Job, and serial number of the attempt.
    Departed(JobId, u64, Nanos),
    /// An attempt has ended. Job, and serial number of the attempt.
    Ended(JobId, u64, Result<AttemptResponse, SendError>),
    /// The request of an attempt is invalid, for this reason.
    Unrenderable(QueuedAttempt, String),

    /// The store may have jobs for lanes that were empty, or jobs that are due.
    JobsDue,
    /// End of a claim; None if the store is locked, full or unreachable for the moment.
    Claimed(Option<ClaimReply>),

    /// Claimed jobs, those that the claim has expired, and the final states that were reported of any of them.
    Checked(Vec<(JobLease, JobEntry)>, Vec<JobEntry>, FxHashMap<JobId, State>),
    /// Whether the listener has no space for events.
    ListenerFull(bool),

    /// A group of records is about to be written; replied to with [`RecordEvent::MarksComplete`].
    GroupBegins,
    /// A group was recorded; replied to with [`RecordEvent::Applied`].
    Recorded(RecordedGroup),

    /// Leases of keys have changed.
    KeyLeases(KeyLeaseUpdate),

    /// An owner has failed.
    Failed(SenderError),
}

/// Group of records that is durable.
#[derive(Debug)]
pub(super) struct RecordedGroup {
    /// Number of changes and extensions.
    pub(super) count: usize,
    /// Recorded high-water marks of nonces, by key.
    pub(super) high_water: Vec<(u32, u64)>,
    /// Jobs that were marked as sent.
    pub(super) sent: Vec<JobLease>,
    /// Leases that had expired.
    pub(super) stale: Vec<JobLease>,
}

/// Change of the leases of keys.
#[derive(Debug)]
pub(super) enum KeyLeaseUpdate {
    /// Keys that are leased, or to be released, with token and end of the lease; and the number of keys held.
    Current(Vec<(usize, u64, Nanos)>, usize),
    /// Key acquired.
    Acquired(Box<KeyAcquisition>),
    /// Key held again.
    Resumed(usize),
    /// Key to release: replied to with [`KeyLeaseEvent::Drained`] when none of its requests is in flight.
    Releasing(usize),
    /// Lease expired, or lost.
    Expired(usize),
    /// States of these keys are wanted; replied to with [`KeyLeaseEvent::States`].
    StatesWanted(Vec<usize>),
}

/// Acquired key, with the history of its sends.
#[derive(Debug)]
pub(super) struct KeyAcquisition {
    pub(super) key: usize,
    pub(super) high_water: u64,
    /// History at hosts without a history of their own.
    pub(super) history: KeyHistory,
    /// State with the histories at named hosts, if the last owner released it.
    pub(super) state: Option<KeyState>,
    /// Time of the histories.
    pub(super) at: Nanos,
}

/// Event for the owner of reports; handled in order.
#[derive(Debug)]
pub(super) enum ReportEvent {
    /// An attempt has ended.
    AttemptEnded(AttemptRecord),
    /// A job has ended; sent before its record.
    JobEnded(Box<FinishedJob>),
    /// A key was disabled, for this reason.
    KeyUnusable(usize, String),
    /// Claimed and expired jobs that may have ended by earlier reports; replied to with [`AttemptEvent::Checked`].
    Claimed(Vec<(JobLease, JobEntry)>, Vec<JobEntry>),
    /// Event for the owner of records, passed on when everything before it is reported.
    Record(RecordEvent),
}

/// Event for the owner of records; those of one turn of the event loop are sent together.
#[derive(Debug)]
pub(super) enum RecordEvent {
    /// A leased job has changed.
    Changed(JobChange),
    /// An expired job gets a new TTL, in milliseconds.
    Extended(JobId, u64),
    /// A high-water mark of a key's nonces is to be recorded.
    HighWater(u32, u64),
    /// Current pauses of a key by responses, to be stored with its next mark.
    Paused(u32, Vec<PauseRecord>),
    /// The key has another owner's mark; wanted ones are obsolete.
    HighWaterTaken(u32),
    /// An attempt waits for a mark: the group is not to wait for more.
    MarkAwaited,
    /// Events were reported, or jobs are to be marked ahead: a group is due even without a change.
    GroupDue,
    /// All marks for the group have been sent.
    MarksComplete,
    /// A recorded group was processed; whether attempts still wait for marks.
    Applied(bool),
    /// Last group: with these states of keys.
    Finish(Vec<StoredKeyState>),
}

/// Event for the owner of key leases.
#[derive(Debug)]
pub(super) enum KeyLeaseEvent {
    /// The service rejected a key.
    Rejected(usize),
    /// A key to release has no request in flight. Key, and token of the lease.
    Drained(usize, u64),
    /// States of keys, as wanted.
    States(Vec<(usize, String)>),
    /// Nothing more is sent: other senders may have the keys.
    StopUsing,
    /// Last heartbeat: these keys have no request in flight, and these states.
    Leave(Vec<(usize, String)>),
}

/// Senders to all inboxes.
#[derive(Clone, Debug)]
pub(super) struct Channels {
    pub(super) claims: UnboundedSender<ClaimEvent>,
    pub(super) attempts: UnboundedSender<AttemptEvent>,
    pub(super) reports: UnboundedSender<ReportEvent>,
    pub(super) records: UnboundedSender<Vec<RecordEvent>>,
    pub(super) key_leases: UnboundedSender<KeyLeaseEvent>,
}

/// Inboxes of all owners.
#[derive(Debug)]
pub(super) struct Inboxes {
    pub(super) claims: UnboundedReceiver<ClaimEvent>,
    pub(super) attempts: UnboundedReceiver<AttemptEvent>,
    pub(super) reports: UnboundedReceiver<ReportEvent>,
    pub(super) records: UnboundedReceiver<Vec<RecordEvent>>,
    pub(super) key_leases: UnboundedReceiver<KeyLeaseEvent>,
}

impl Channels {
    pub(super) fn open() -> (Self, Inboxes) {
        let (claims, claim_inbox) = unbounded_channel();
        let (attempts, attempt_inbox) = unbounded_channel();
        let (reports, report_inbox) = unbounded_channel();
        let (records, record_inbox) = unbounded_channel();
        let (key_leases, key_lease_inbox) = unbounded_channel();
        let inboxes = Inboxes {
            claims: claim_inbox,
            attempts: attempt_inbox,
            reports: report_inbox,
            records: record_inbox,
            key_leases: key_lease_inbox,
        };
        (Self { claims, attempts, reports, records, key_leases }, inboxes)
    }
}

/// Sends an event; an owner that has ended needs none.
pub(super) fn post<T>(inbox: &UnboundedSender<T>, event: T) {
    let _ = inbox.send(event);
}
