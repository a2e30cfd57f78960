//! Facts about what a user's flow has found, for records, traces and connections.

use weir_request::secret_mask::SecretMask;
use weir_scenario::evaluate::CompiledCapture;

use super::UserTable;

impl UserTable<'_> {
    /// Number among all steps of the step that was found last.
    pub(crate) fn found_step(&self, user: u32) -> u32 {
        self.flow.step_index(self.scenario_of(user), self.findings.step)
    }

    /// Whether the step that was found last, and not the status alone, says if a response is a success.
    pub(crate) fn decides_success(&self, user: u32) -> bool {
        self.flow.decides_success(user, self.findings.step)
    }

    /// Whether the response that was found last is a success, unless its status decides.
    pub(crate) fn has_passed(&self) -> bool {
        !self.flow.is_failed() && self.findings.failures.is_empty()
    }

    /// Captures of the step that was found last.
    pub(crate) fn captures(&self, user: u32) -> &[CompiledCapture] {
        self.flow.captures(user, self.findings.step)
    }

    /// Secrets masked in samples of a user's failures, among them values of the user's variables.
    pub(crate) fn secret_mask(&self, user: u32) -> SecretMask {
        self.flow.secret_mask(user)
    }
}
