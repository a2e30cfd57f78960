//! Ends of iterations.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use weir_load::program::{ProgramAction, ProgramCall};

use super::thread::K6Thread;
use crate::host::state::IterationEnd;
use crate::metrics::registry::BuiltIn;

impl K6Thread {
    /// Ends the iteration of a user, and finds its next one.
    pub(super) fn end(&mut self, end: IterationEnd, call: &mut ProgramCall<'_>) -> ProgramAction {
        let program = Arc::clone(&self.program);
        let whole = self.numbers.nth(call.user.into());
        let now = call.now;
        self.close_sockets(call);
        self.end_calls(call);
        program.script.file.iterations.active.fetch_sub(1, Ordering::Relaxed);
        let Some(user) = self.user(call.user) else { return ProgramAction::End { ok: false } };
        let has_thrown = match end {
            IterationEnd::Aborted(reason) => {
                program.note_stop(&reason);
                return ProgramAction::Abort(reason);
            }
            IterationEnd::Threw(failure) => {
                program.note_exception(&failure);
                if program.stops_at_exceptions() {
                    return ProgramAction::Abort(failure.line());
                }
                true
            }
            IterationEnd::Cut => {
                program.note_cut(user.state.cut_place.take());
                program.script.file.iterations.interrupted.fetch_add(1, Ordering::Relaxed);
                user.end_iteration();
                user.given = program.next_iteration(whole, user.done, now);
                return ProgramAction::Cut;
            }
            IterationEnd::Returned => false,
        };
        program.put_result(user.state.result.take());
        program.script.file.iterations.completed.fetch_add(1, Ordering::Relaxed);
        let took = now - user.began;
        let values = [(BuiltIn::IterationDuration as usize, took.0 as f64 / 1e6), (BuiltIn::Iterations as usize, 1.0)];
        let state = Rc::clone(&user.state);
        // Functions around the load do not count as iterations.
        let count = if state.script.group.is_empty() { 2 } else { 1 };
        state.metrics.add_all(&values[..count], &|name: &str, value: &str| state.has_tag(&[], name, value));
        user.end_iteration();
        if let Some(reason) = program.look_at_thresholds(now) {
            program.note_stop(&reason);
            return ProgramAction::Abort(reason);
        }
        user.given =
            program.next_iteration(whole, user.done, now.max(user.began + program.script.options.min_iteration));
        user.lingers_until = program.end_of_arrivals(whole, now);
        ProgramAction::End { ok: !has_thrown && !user.has_failed }
    }
}
