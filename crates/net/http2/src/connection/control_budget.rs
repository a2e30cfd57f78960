//! Bound of frames that a peer may send without any content.

use super::ConnectionError;

/// Frames without content that a peer may send at once, or between two renewals.
const MAX_FRAMES: u32 = 10_000;
/// Frames that a useful one earns.
const EARNED_FRAMES: u32 = 4;

/// Frames without content that the peer may still send. A load has no other peers than services, but a faulty one must
/// not occupy a worker that measures others: PINGs, SETTINGS, resets, empty frames and the like are counted against
/// this budget, and responses, content and sent frames renew it.
#[derive(Debug)]
pub(super) struct ControlBudget {
    left: u32,
}

impl Default for ControlBudget {
    fn default() -> Self {
        Self { left: MAX_FRAMES }
    }
}

impl ControlBudget {
    /// Spends frames.
    pub(super) fn spend(&mut self, frames: u32) -> Result<(), ConnectionError> {
        self.left = self.left.checked_sub(frames).ok_or(ConnectionError::FLOOD)?;
        Ok(())
    }

    /// Earns by one useful frame.
    #[inline]
    pub(super) fn earn(&mut self) {
        self.left = (self.left + EARNED_FRAMES).min(MAX_FRAMES);
    }

    /// Begins anew.
    pub(super) fn renew(&mut self) {
        self.left = MAX_FRAMES;
    }
}
