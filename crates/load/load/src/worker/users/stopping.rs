//! End of users that a program drives: what they send after the load.

use super::super::Worker;
use super::UserRequests;
use weir_base::Nanos;
use weir_machine::readiness_event::ReadinessEvent;

/// Maximum time that users have for their end.
const STOP_TIMEOUT: Nanos = Nanos::from_secs(10);

impl Worker<'_, UserRequests<'_>> {
    /// Lets users do what they do at their end, such as a logout; their requests count. An interrupt leaves it out, or
    /// cuts it off.
    pub(super) fn stop_users(&mut self, ready: &mut Vec<ReadinessEvent>) {
        if !self.flow.table.flow.stops_users() || self.is_interrupted() {
            return;
        }
        let begun = self.clock.now();
        self.cut_iterations(begun);
        self.flow.is_stopping = true;
        self.drop_program_streams(begun);
        for user in 0..self.flow.table.count() {
            let now = self.clock.now();
            if self.is_interrupted() || now - begun >= STOP_TIMEOUT {
                return;
            }
            let action = self.ask(user, |users, unix_s| users.stop(user, now, unix_s));
            self.record_unsent(user, now);
            self.act(user, Some(action), now);
        }
        while !self.is_interrupted() && self.clock.now() - begun < STOP_TIMEOUT && self.has_unfinished_users() {
            self.turn(ready);
        }
    }

    fn is_interrupted(&self) -> bool {
        self.flow.is_stopped || self.shared.control.is_stopped()
    }

    fn has_unfinished_users(&self) -> bool {
        self.results.counters.in_flight() > 0 || !self.flow.table.is_quiet()
    }
}
