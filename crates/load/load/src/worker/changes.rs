//! Changes of the load while it runs.

use super::{Flow, Worker};
use weir_machine as machine;
use weir_pace::feed::Feed;

impl<F: Flow> Worker<'_, F> {
    /// Takes over the changes since the last look; each holds from an instant that usually lies ahead.
    #[inline]
    pub(super) fn take_changes(&mut self) {
        if let Some(control) = &self.shared.plan.control
            && control.version() != self.version
        {
            self.change();
        }
    }

    #[cold]
    fn change(&mut self) {
        let plan = self.shared.plan;
        let Some(control) = &plan.control else { return };
        let (version, update) = control.latest();
        self.version = version;
        (self.until, self.may_change_until) = (update.cut_at, update.until);
        self.results.counters.set_until(update.cut_at);
        self.flow.set_until(update.cut_at);
        if matches!(self.feed, Feed::Closed(_)) {
            let limits = plan.limits_of(&update, self.index);
            // Of an agent; what is not allowed fails, and is counted.
            let _ = machine::allow_open_files((limits.connections as u64).saturating_mul(plan.threads));
            self.connections.set_max(limits.connections);
            self.flow.set_max(limits.users);
        }
        self.feed.change(&update.stages, update.cut_at, self.clock.now());
    }

    /// Whether a change could start something more, though nothing is to come as it is: a load that is paused goes on.
    pub(super) fn may_change(&self) -> bool {
        self.clock.now() < self.may_change_until && !self.feed.is_exhausted()
    }
}
