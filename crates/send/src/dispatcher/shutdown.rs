//! Shutdown: condition of the end, and an orderly release.

use std::rc::Rc;

use super::super::sender::{SenderError, StopMode};
use super::super::store::StoredKeyState;
use super::{SenderRuntime, SenderState};
use crate::key_state::{ClockSample, KeyState};
use weir_decide::Nanos;
use weir_decide::delivery::dispatch::HostId;
use weir_decide::delivery::key_window::KeyHistory;

impl SenderRuntime {
    /// Waits for the condition of the end.
    pub(super) async fn wait_for_end(self: &Rc<Self>) {
        let mut until = self.stop_mode.clone();
        let mut deadline = Nanos::NEVER;
        loop {
            let mut told = *until.borrow_and_update();
            self.jobs_wanted.notify_one();
            let (out, idle) = {
                let hand = self.state.borrow();
                match &hand.failure {
                    // Requests in flight may still get responses.
                    Some(SenderError::NoKeys(_)) => {
                        told = told.max(StopMode::WhenDrained(self.options.rules.attempt_timeout));
                    }
                    Some(_) => return,
                    None => {}
                }
                let idle = hand.jobs.is_empty() && hand.changes.is_empty() && hand.extended_jobs.is_empty();
                (hand.dispatch.sizes().2 > 0, idle)
            };
            match told {
                StopMode::Now => return,
                StopMode::WhenDrained(grace) => {
                    if deadline == Nanos::NEVER {
                        deadline = self.timer.now() + grace;
                        self.release_all_jobs();
                        self.release_keys();
                    }
                    if !out {
                        return;
                    }
                }
                StopMode::WhenEmpty if idle => {
                    // Errors of the store are reported by its writes.
                    let open = self.store.counts().map_or(1, |counts| counts.open_jobs());
                    let stranded = self.unsendable_failure(open);
                    if open == 0 || stranded.is_some() {
                        self.state.borrow_mut().failure = stranded;
                        return;
                    }
                }
                StopMode::WhenEmpty | StopMode::KeepRunning => {}
            }
            tokio::select! {
                () = self.end_check_due.notified() => {}
                _ = until.changed() => {}
                () = self.timer.sleep_until(deadline), if deadline < Nanos::NEVER => return,
                // Other processes may end the last jobs without a notification.
                () = self.timer.sleep(Nanos::SECOND), if self.store.shared_keys().is_some() => {}
            }
        }
    }

    /// Releases unsent jobs.
    fn release_all_jobs(&self) {
        let mut hand = self.state.borrow_mut();
        self.release_jobs(&mut hand, &mut Vec::new(), "the sender ended", |_| true);
    }

    /// History of a key, host by host.
    pub(super) fn final_key_state(&self, hand: &mut SenderState, key: u32, high_water: u64) -> String {
        let (now, at) = (self.timer.now(), ClockSample::now());
        let hosts: Vec<(HostId, String)> = hand.hosts.names().map(|(host, name)| (host, name.to_owned())).collect();
        let histories: Vec<(String, KeyHistory)> = hosts
            .into_iter()
            .filter_map(|(host, name)| Some((name, hand.dispatch.history(now, host, key)?)))
            .filter(|(_, history)| *history != KeyHistory::default())
            .collect();
        // Hosts that were not used in this run may have a history as well.
        let rest = hand.hosts.key_histories.get(key as usize).cloned().flatten();
        let rest = rest.filter(|(_, at)| now - *at < self.options.history_span());
        let rest = rest.map(|(history, at)| aged(history, now - at)).unwrap_or_default();
        KeyState::at_shutdown(&at, high_water, &rest, &histories).write()
    }

    /// Resumes a key at all hosts.
    pub(super) fn resume_key(
        &self,
        hand: &mut SenderState,
        key: u32,
        rest: KeyHistory,
        note: Option<&KeyState>,
        since: Nanos,
    ) {
        let now = self.timer.now();
        let named: Vec<(String, KeyHistory)> = note.into_iter().flat_map(KeyState::hosts).collect();
        let others = hand.hosts.names().filter(|(_, name)| !named.iter().any(|(other, _)| other == name));
        let others: Vec<HostId> = others.map(|(host, _)| host).collect();
        for host in others {
            hand.dispatch.resume_lane(now, host, key, &rest, since);
        }
        if let Some(past) = hand.hosts.key_histories.get_mut(key as usize) {
            *past = Some((rest, now - since));
        }
        for (name, history) in named {
            let host = hand.hosts.number(&name).unwrap_or_else(|| self.add_host(hand, &name));
            hand.dispatch.resume_lane(now, host, key, &history, since);
        }
    }

    /// Last step: requests in flight are abandoned, other jobs released, and the states of keys recorded.
    pub(super) async fn shut_down(self: &Rc<Self>) -> Result<(), SenderError> {
        {
            let hand = self.state.borrow();
            hand.jobs.values().filter_map(|held| held.in_flight.as_ref()).for_each(|flying| flying.task.abort());
        }
        self.release_all_jobs();
        let notes = {
            let mut hand = self.state.borrow_mut();
            let hand_is_alone = hand.key_leases.is_none();
            let keys = (0..).zip(&self.options.keys).filter(|_| hand_is_alone);
            let mut notes = Vec::with_capacity(self.options.keys.len());
            for (number, key) in keys {
                let high_water = hand.high_water_marks.get(number as usize).map_or(0, |mark| mark.1);
                let note = self.final_key_state(&mut hand, number, high_water);
                notes.push(StoredKeyState { key: key.name().to_owned(), state: note });
            }
            notes
        };
        self.record_group(notes).await;
        self.send_final_heartbeat().await;
        match self.state.borrow_mut().failure.take() {
            Some(failed) => Err(failed),
            None => Ok(()),
        }
    }
}

/// The same history at a later time.
fn aged(mut history: KeyHistory, by: Nanos) -> KeyHistory {
    let arrived = history.windows.iter_mut().flat_map(|past| &mut past.arrived);
    arrived.chain(&mut history.sent).for_each(|(ago, _)| *ago += by);
    for full_in in history.windows.iter_mut().filter_map(|past| past.full_in.as_mut()) {
        *full_in = *full_in - by;
    }
    KeyHistory { hold_for: history.hold_for - by, ..history }
}
