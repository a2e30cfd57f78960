//! Queue of what a receiver has not accepted yet, in bounded memory, and the account of what it has lost.

use std::collections::VecDeque;

/// Parts that wait for a receiver, in order.
#[derive(Debug, Default)]
pub(crate) struct PendingParts {
    parts: VecDeque<OutputPart>,
    bytes: usize,
    /// Number of intervals so far.
    intervals: u64,
    /// Of these, lost ones.
    lost: u64,
    /// Whether another part was lost: the start or the summary.
    has_lost_other: bool,
    /// Latest reason of a loss.
    loss_reason: Option<String>,
    /// Reason of the failure after which the parts are still here.
    failure: Option<String>,
}

/// Encoded interval, start or summary of a run for one receiver.
#[derive(Debug)]
pub(crate) struct OutputPart {
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_interval: bool,
}

/// Delivery of a run's intervals to a receiver, in numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryCounts {
    /// Intervals of the run.
    pub intervals: u64,
    /// Intervals that were not delivered.
    pub lost: u64,
    /// Whether the start or the summary was not delivered.
    pub has_lost_other: bool,
    /// Why the last one was not.
    pub reason: Option<String>,
}

impl DeliveryCounts {
    /// Counts intervals that never came to the receiver.
    pub(crate) fn add_missed(&mut self, intervals: u64) {
        self.intervals += intervals;
        self.lost += intervals;
        if intervals > 0 {
            self.reason.get_or_insert_with(|| TOO_SLOW.to_owned());
        }
    }
}

/// Reason of losses without a failure.
const TOO_SLOW: &str = "it is too slow";
/// Maximum number of parts that wait; beyond it the oldest is lost.
const MAX_PENDING_PARTS: usize = 300;
/// Maximum size of the parts that wait, in bytes.
const MAX_PENDING_BYTES: usize = 16 << 20;
/// Maximum number of parts of a batch.
const MAX_BATCH_PARTS: usize = 60;
/// Size from which a batch takes no further part, in bytes.
const BATCH_BYTES: usize = 1 << 20;

impl PendingParts {
    /// Adds a part.
    pub(crate) fn push(&mut self, part: OutputPart) {
        self.intervals += u64::from(part.is_interval);
        self.bytes += part.bytes.len();
        self.parts.push_back(part);
        while self.parts.len() > MAX_PENDING_PARTS || (self.bytes > MAX_PENDING_BYTES && self.parts.len() > 1) {
            let reason = self.failure.clone().unwrap_or_else(|| TOO_SLOW.to_owned());
            self.lose(1, &reason);
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The first parts: their number, and their bytes one after the other.
    pub(crate) fn batch(&self) -> (usize, Vec<u8>) {
        let mut bytes = Vec::new();
        let mut n = 0;
        for part in self.parts.iter().take(MAX_BATCH_PARTS) {
            if n > 0 && bytes.len() + part.bytes.len() > BATCH_BYTES {
                break;
            }
            bytes.extend(&part.bytes);
            n += 1;
        }
        (n, bytes)
    }

    /// Removes the first `n` parts, which were accepted.
    pub(crate) fn accept(&mut self, n: usize) {
        self.failure = None;
        for part in self.parts.drain(..n.min(self.parts.len())) {
            self.bytes -= part.bytes.len();
        }
    }

    /// Takes note of a failure after which the parts are sent again.
    pub(crate) fn retry(&mut self, reason: &str) {
        self.failure = Some(reason.to_owned());
    }

    /// Removes the first `n` parts, which are lost.
    pub(crate) fn lose(&mut self, n: usize, reason: &str) {
        for part in self.parts.drain(..n.min(self.parts.len())) {
            self.bytes -= part.bytes.len();
            self.lost += u64::from(part.is_interval);
            self.has_lost_other |= !part.is_interval;
            self.loss_reason = Some(reason.to_owned());
        }
    }

    /// Loses all that waits, for the reason of the last failure or this one.
    pub(crate) fn abandon(&mut self, reason: &str) {
        let reason = self.failure.take().unwrap_or_else(|| reason.to_owned());
        self.lose(self.parts.len(), &reason);
    }

    /// Account so far.
    pub(crate) fn counts(&self) -> DeliveryCounts {
        DeliveryCounts {
            intervals: self.intervals,
            lost: self.lost,
            has_lost_other: self.has_lost_other,
            reason: self.loss_reason.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn part(number: u8, length: usize) -> OutputPart {
        OutputPart { bytes: vec![number; length], is_interval: true }
    }

    #[test]
    fn the_oldest_are_lost_first_and_counted_with_the_reason() {
        let mut pending = PendingParts::default();
        pending.retry("connection refused");
        (0..=MAX_PENDING_PARTS).for_each(|n| pending.push(part(n as u8, 1)));
        assert_eq!(pending.batch().1[0], 1);
        let counts = pending.counts();
        assert_eq!((counts.intervals, counts.lost), (MAX_PENDING_PARTS as u64 + 1, 1));
        assert_eq!(counts.reason.as_deref(), Some("connection refused"));
        pending.accept(1);
        pending.abandon("the run is over");
        assert_eq!(pending.counts().reason.as_deref(), Some("the run is over"));
        assert_eq!(pending.counts().lost, MAX_PENDING_PARTS as u64);
    }

    /// A second each: ten minutes, in which the receiver takes nothing from the second to the eighth minute.
    #[test]
    fn a_receiver_that_stalls_for_minutes_loses_what_is_older_than_five() {
        let (mut pending, mut accepted) = (PendingParts::default(), 0_u64);
        for second in 0..600_u32 {
            pending.push(part(second as u8, 1));
            if (120..480).contains(&second) {
                pending.retry("no response within 10s");
                continue;
            }
            while !pending.is_empty() {
                let n = pending.batch().0;
                pending.accept(n);
                accepted += n as u64;
            }
        }
        let counts = pending.counts();
        assert_eq!((accepted, counts.lost, counts.intervals), (539, 61, 600));
        assert_eq!(counts.reason.as_deref(), Some("no response within 10s"));
    }

    #[test]
    fn a_part_of_any_size_is_sent() {
        let mut pending = PendingParts::default();
        pending.push(part(1, 2 * MAX_PENDING_BYTES));
        assert_eq!(pending.batch().0, 1);
        pending.push(part(2, 1));
        assert_eq!((pending.batch().1, pending.counts().lost), (vec![2], 1));
    }

    proptest! {
        /// Oracle: a list of all parts, and the number of each that was accepted.
        #[test]
        fn each_part_is_accepted_once_and_in_order_or_counted_as_lost(
            events in prop::collection::vec((0..4_u8, 0..2000_usize), 0..400)
        ) {
            let mut pending = PendingParts::default();
            let (mut number, mut accepted) = (0_u32, Vec::new());
            for (kind, length) in events {
                match kind {
                    0 | 1 => {
                        let bytes = [number.to_be_bytes().to_vec(), vec![0; length / 4 * 4]].concat();
                        pending.push(OutputPart { bytes, is_interval: true });
                        number += 1;
                    }
                    2 => {
                        let (n, bytes) = pending.batch();
                        prop_assert_eq!(n == 0, pending.is_empty());
                        let parts = pending.parts.iter().take(n);
                        accepted.extend(parts.map(|part| u32::from_be_bytes(part.bytes[..4].try_into().unwrap_or_default())));
                        prop_assert_eq!(bytes.len(), pending.parts.iter().take(n).map(|part| part.bytes.len()).sum::<usize>());
                        pending.accept(n);
                    }
                    _ => pending.lose(length % 3, "rejected"),
                }
            }
            pending.abandon("the end");
            let counts = pending.counts();
            prop_assert_eq!(counts.intervals, u64::from(number));
            prop_assert_eq!(counts.lost + accepted.len() as u64, u64::from(number));
            prop_assert!(accepted.windows(2).all(|pair| pair[0] < pair[1]), "{accepted:?}");
            prop_assert_eq!(pending.bytes, 0);
        }
    }
}
