//! Windows of flow control (RFC 9113 sections 5.2 and 6.9), of a stream or a connection.

use crate::frame::MAX_31_BITS;

/// Window of streams and of the connection before any setting, in bytes.
pub const DEFAULT_WINDOW_BYTES: u32 = 65_535;

/// A window beyond 2^31 - 1, or more bytes than a window has: FLOW_CONTROL_ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowViolation;

/// Bytes that may be sent; below zero after a setting that shrank the window under what had been sent.
#[derive(Clone, Copy, Debug)]
pub struct SendWindow(i64);

impl SendWindow {
    /// Window of this size, at most 2^31 - 1.
    pub fn new(size: u32) -> Self {
        Self(i64::from(size.min(MAX_31_BITS)))
    }

    /// Bytes that may be sent now.
    #[inline]
    pub fn available(self) -> u32 {
        u32::try_from(self.0.max(0)).unwrap_or(MAX_31_BITS)
    }

    /// Takes bytes that are sent, at most those available.
    #[inline]
    pub fn send(&mut self, bytes: u32) {
        self.0 -= i64::from(bytes);
    }

    /// Adds the increment of WINDOW_UPDATE.
    ///
    /// # Errors
    /// If the window exceeds its maximum.
    pub fn grow(&mut self, increment: u32) -> Result<(), FlowViolation> {
        self.shift(i64::from(increment))
    }

    /// Adds the difference between a new and an old initial size, also below zero.
    ///
    /// # Errors
    /// If the window exceeds its maximum.
    pub fn shift(&mut self, difference: i64) -> Result<(), FlowViolation> {
        self.0 += difference;
        if self.0 > i64::from(MAX_31_BITS) { Err(FlowViolation) } else { Ok(()) }
    }
}

/// Bytes received and not yet given back by WINDOW_UPDATE. The size is an argument, since the streams share theirs.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceiveWindow {
    used: u32,
}

impl ReceiveWindow {
    /// Counts received bytes.
    ///
    /// # Errors
    /// If the window of this size does not have them.
    #[inline]
    pub fn receive(&mut self, bytes: u32, size: u32) -> Result<(), FlowViolation> {
        let used = self.used.checked_add(bytes).filter(|used| *used <= size).ok_or(FlowViolation)?;
        self.used = used;
        Ok(())
    }

    /// The increment to send when half of the window is used: one WINDOW_UPDATE for many frames, and never a wait.
    #[inline]
    pub fn credit(&mut self, size: u32) -> Option<u32> {
        if self.used == 0 || self.used < size / 2 {
            return None;
        }
        Some(std::mem::take(&mut self.used))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_send_window_may_be_below_zero_and_not_above_its_maximum() {
        let mut window = SendWindow::new(100);
        window.send(80);
        assert_eq!(window.shift(-50), Ok(()));
        assert_eq!(window.available(), 0);
        assert_eq!(window.grow(29), Ok(()));
        assert_eq!(window.available(), 0);
        assert_eq!(window.grow(2), Ok(()));
        assert_eq!(window.available(), 1);
        assert_eq!(window.grow(MAX_31_BITS - 1), Ok(()));
        assert_eq!(window.grow(1), Err(FlowViolation));
    }

    proptest! {
        #[test]
        fn a_sender_within_the_window_is_never_stuck(size in 1_u32..2000, frames in prop::collection::vec(1_u32..500, 0..100)) {
            let (mut sender, mut receiver) = (SendWindow::new(size), ReceiveWindow::default());
            for frame in frames {
                let bytes = frame.min(sender.available());
                prop_assert!(bytes > 0);
                sender.send(bytes);
                prop_assert_eq!(receiver.receive(bytes, size), Ok(()));
                let mut copy = receiver;
                prop_assert!(copy.receive(sender.available() + 1, size).is_err());
                if let Some(increment) = receiver.credit(size) {
                    prop_assert!(increment >= size / 2);
                    prop_assert_eq!(sender.grow(increment), Ok(()));
                }
            }
        }
    }
}
