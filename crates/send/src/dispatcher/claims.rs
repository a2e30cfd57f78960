//! Claims: leases as many jobs as are about to be sent, and a few more.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::options::Options;
use super::super::sender::{SenderError, StopMode, wall_ms};
use super::super::state::State;
use super::super::store::{
    ClaimReply, ClaimRequest, JobChange, JobLane, JobLease, JobStep, LaneClaim, MAX_CLAIM_LANES, StoreError,
};
use super::hosts::LaneEntry;
use super::marks::SentMark;
use super::{Event, JobEntry, LeasedJob, SenderRuntime};
use crate::events::{FinishedJob, SenderEvent};
use weir_decide::Nanos;
use weir_decide::delivery::dispatch::HostId;

/// Maximum leased jobs that are not sent yet.
const MAX_READY_JOBS: usize = 2048;
/// Jobs added per turn of the event loop, so that due sends are not delayed.
const YIELD_AFTER_JOBS: usize = 16;
/// Size of a claim, in bytes.
const MAX_CLAIM_BYTES: u64 = 64 << 20;

/// Minimum leased jobs per host; with slow sends the rest stays in the store, where it can be edited or overtaken.
pub(super) fn min_ready_jobs(options: &Options) -> usize {
    options.keys.len().clamp(4, 512)
}

/// Host and key of a claim, and their lane of the store.
type HostLaneClaim = (HostId, Option<u32>, LaneClaim);

impl SenderRuntime {
    /// Claims jobs on demand, as long as the sender runs.
    pub(super) async fn claim(self: Rc<Self>) {
        let mut arrivals = self.store.arrivals();
        let mut until = self.stop_mode.clone();
        let (mut due, mut arrived) = (Nanos::NEVER, true);
        loop {
            let wants = self.lane_claims(arrived);
            // Due retries and expiries need a claim even without room for jobs.
            if self.is_stalled() || wants.is_empty() && !arrived && self.timer.now() < due {
                tokio::select! {
                    () = self.jobs_wanted.notified() => {}
                    () = self.retry_scheduled.notified() => arrived = true,
                    _ = arrivals.changed() => arrived = true,
                    _ = until.changed() => {}
                    () = self.timer.sleep_until(due), if due < Nanos::NEVER && !self.is_stalled() => {}
                }
                continue;
            }
            arrivals.mark_unchanged();
            arrived = false;
            let claim = ClaimRequest {
                now: wall_ms(),
                // Leases without an end: they end with this process.
                lease_duration: Nanos::NEVER,
                lanes: wants.iter().map(|(.., want)| want.clone()).collect(),
                max_bytes: MAX_CLAIM_BYTES,
                // Each job is marked when it is sent.
                marks_sent: false,
            };
            let asking = self.claim_lock.lock().await;
            let claimed = match self.store.claim(claim).await {
                Ok(claimed) => claimed,
                Err(StoreError::NoSpace(..) | StoreError::Locked(_) | StoreError::Unreachable(..)) => {
                    drop(asking);
                    self.timer.sleep(Nanos::SECOND).await;
                    continue;
                }
                Err(error) => {
                    self.state.borrow_mut().failure.get_or_insert(SenderError::Store(error));
                    self.end_check_due.notify_one();
                    return;
                }
            };
            let (got, next) = (claimed.jobs.len(), claimed.next_due);
            self.adjust_ready_targets(&wants, &claimed);
            let is_new = self.update_lanes(&claimed.lanes);
            self.accept_claim(claimed).await;
            self.request_marks_ahead();
            drop(asking);
            let wait_ms = next.map(|at| u64::try_from(at.0.saturating_sub(wall_ms().0)).unwrap_or(0).max(1));
            let shares = self.state.borrow().key_leases.is_some();
            let wait_ms =
                if shares { Some(wait_ms.unwrap_or(POLL_INTERVAL_MS).min(POLL_INTERVAL_MS)) } else { wait_ms };
            due = wait_ms.map_or(Nanos::NEVER, |ms| self.timer.now() + Nanos::from_millis(ms.min(DAY_MS)));
            if got > 0 || is_new {
                continue;
            }
            self.end_check_due.notify_one();
            tokio::select! {
                () = self.jobs_wanted.notified() => {}
                () = self.retry_scheduled.notified() => arrived = true,
                _ = arrivals.changed() => arrived = true,
                _ = until.changed() => {}
                () = self.timer.sleep_until(due), if due < Nanos::NEVER => arrived = true,
            }
        }
    }

    /// Whether no job may be claimed now, even with room.
    fn is_stalled(&self) -> bool {
        let hand = self.state.borrow();
        // Jobs that wait for a mark or a record count, which bounds memory if the disk stalls.
        let stalled = hand.listener_full || hand.changes.len() > 4 * MAX_READY_JOBS;
        let has_no_key = hand.key_leases.as_ref().is_some_and(|owned| owned.held_count() == 0);
        hand.failure.is_some() || self.is_stopping() || stalled || has_no_key
    }

    /// Jobs wanted by host and key; after arrivals, also of lanes that were empty.
    fn lane_claims(&self, arrived: bool) -> Vec<HostLaneClaim> {
        let hand = self.state.borrow();
        let lanes = hand.lanes.iter().filter(|known| arrived || known.has_jobs);
        let lanes = lanes.filter(|known| self.has_room(&hand, known.host, known.key));
        let want = |LaneEntry { lane, host, key, .. }: &LaneEntry| {
            let most = self.ready_target(&hand, *host, *key) - hand.dispatch.queued(*host, *key);
            (*host, *key, LaneClaim { lane: lane.clone(), max_jobs: most })
        };
        lanes.map(want).collect()
    }

    /// Raises the target of a host whose jobs were sent while others were fetched, and lowers it if most of them wait.
    fn adjust_ready_targets(&self, wants: &[HostLaneClaim], claimed: &ClaimReply) {
        let mut hand = self.state.borrow_mut();
        let mut got: HashMap<JobLane, usize> = HashMap::new();
        claimed.jobs.iter().for_each(|(_, entry)| *got.entry(JobLane::of(&entry.job)).or_default() += 1);
        // Total over all hosts; the part of a host is bounded by their number.
        let most = (MAX_READY_JOBS * 4 / wants.len().max(1)).clamp(2, MAX_READY_JOBS);
        for (host, key, want) in wants {
            let (ahead, held) = (hand.hosts.ready_target(*host), hand.dispatch.queued(*host, *key));
            let has_gone = held == 0 && got.get(&want.lane) == Some(&want.max_jobs);
            if has_gone {
                hand.hosts.set_ready_target(*host, (ahead * 2).min(most));
            } else if held > self.ready_target(&hand, *host, *key) / 4 {
                hand.hosts.set_ready_target(*host, (ahead - ahead.div_ceil(16)).max(min_ready_jobs(&self.options)));
            }
        }
    }

    /// Updates the lanes of the store; returns whether there are jobs to claim at once.
    fn update_lanes(&self, lanes: &[JobLane]) -> bool {
        let mut hand = self.state.borrow_mut();
        let mut known = Vec::with_capacity(lanes.len());
        let mut has_stranded = false;
        for lane in lanes {
            let key = lane
                .key_hint
                .as_ref()
                .map(|hint| self.key_numbers.get(hint).copied().filter(|key| !hand.unusable_keys.contains(key)));
            has_stranded |= key == Some(None);
            // Other senders send with the other keys.
            let key = match key {
                None => None,
                Some(Some(key)) if hand.dispatch.can_send(key) => Some(key),
                Some(_) => continue,
            };
            let host = self.host_number(&mut hand, &lane.host);
            known.push(LaneEntry { lane: lane.clone(), host, key, has_jobs: true });
        }
        hand.has_unsendable = has_stranded;
        let new = hand.lanes.update(known, lanes.len() < MAX_CLAIM_LANES);
        new.iter().any(|known| self.has_room(&hand, known.host, known.key))
    }

    async fn accept_claim(self: &Rc<Self>, claimed: ClaimReply) {
        for entry in claimed.expired {
            self.on_expired(entry);
        }
        for (number, (lease, entry)) in (1..).zip(claimed.jobs) {
            self.begin_job(lease, entry);
            if number % YIELD_AFTER_JOBS == 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Records the end of a job that the store has expired.
    fn on_expired(&self, entry: JobEntry) {
        let mut hand = self.state.borrow_mut();
        let at = wall_ms();
        if let Some(expires) = self.extended_expiry(&mut hand, entry.number, at) {
            hand.extended_jobs.push((entry.number, expires));
        } else {
            hand.extension_counts.remove(&entry.number);
            let reason = "expired before it could be sent".to_owned();
            let attempts = entry.status.attempts;
            let ended = FinishedJob {
                entry,
                state: State::Expired,
                reason,
                ended_at: at,
                last_attempt: None,
                body: bytes::Bytes::new(),
                attempts,
            };
            hand.events.push(SenderEvent::JobEnded(Box::new(ended)));
        }
        self.events_pending.notify_one();
    }

    pub(super) fn is_stopping(&self) -> bool {
        *self.stop_mode.borrow() > StopMode::WhenEmpty
    }

    fn begin_job(self: &Rc<Self>, lease: JobLease, entry: JobEntry) {
        let number = entry.number;
        let named = entry.job.key_hint.as_ref().map(|hint| self.key_numbers.get(hint).copied());
        let obstacle = if self.is_stopping() || self.state.borrow().failure.is_some() {
            Some("the sender ended")
        } else {
            (named == Some(None)).then_some("its key is missing")
        };
        if let Some(reason) = obstacle {
            let reason = reason.to_owned();
            let change =
                JobChange { lease, at: wall_ms(), reason, step: JobStep::Released, attempt: None, response: None };
            self.state.borrow_mut().changes.push(change);
            self.changes_pending.notify_one();
            return;
        }
        if entry.status.maybe_sent
            && let Some(state) = self.listener.borrow_mut().reported_state(&entry)
        {
            // Its end is in the results; the crash came before the record.
            let step = match state {
                State::Done => JobStep::Done,
                State::Expired => JobStep::Expired,
                _ => JobStep::DeadLettered,
            };
            let reason = "in the results before a crash".to_owned();
            let change = JobChange { lease, at: wall_ms(), reason, step, attempt: None, response: None };
            self.state.borrow_mut().changes.push(change);
            self.changes_pending.notify_one();
            return;
        }
        if let Some(held) = self.state.borrow_mut().jobs.get_mut(&number) {
            // The store leased it anew to this sender, which still has it.
            held.lease = lease;
            held.mark = SentMark::Unset;
            return;
        }
        let key = named.flatten();
        let host = self.host_number(&mut self.state.borrow_mut(), &entry.job.request.host());
        let asked = self.dispatch_request(&entry, host, key);
        let (attempts, mark) = (entry.status.attempts, SentMark::Unset);
        let held = LeasedJob {
            lease,
            attempts,
            attempts_since_claim: 0,
            entry,
            key,
            in_flight: None,
            last_attempt: None,
            mark,
        };
        self.state.borrow_mut().jobs.insert(number, held);
        self.handle_event(self.timer.now(), Event::Submitted(number, asked));
    }
}

const DAY_MS: u64 = 24 * 3600 * 1000;
/// Interval of claims where other senders share the store, in case news is lost.
const POLL_INTERVAL_MS: u64 = 1000;
