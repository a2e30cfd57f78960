//! Durable high-water marks of nonces.

use super::{SenderRuntime, SenderState};

/// Distance of a new mark above the nonce that needs it; nonces are milliseconds, mostly.
const MARK_AHEAD_NONCES: u64 = 10_000;
/// Distance below a mark at which it is raised.
const MARK_MARGIN_NONCES: u64 = 3_000;

impl SenderRuntime {
    /// Raises the mark of a key, further than needed, so that the next nonces need not wait for another one.
    pub(super) fn raise_mark(&self, hand: &mut SenderState, key: u32, high_water: u64) {
        if let Some((_, wanted)) = hand.high_water_marks.get_mut(key as usize)
            && high_water + MARK_MARGIN_NONCES > *wanted
        {
            *wanted = high_water + MARK_AHEAD_NONCES;
            self.changes_pending.notify_one();
        }
    }
}
