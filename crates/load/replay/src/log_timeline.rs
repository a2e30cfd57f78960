//! Records in the order of their starts.
//!
//! A log is almost in order: of its stamps, which several processes write, and of the starts, which are earlier than
//! stamps of ends by as much as each request took. So there are two windows: one by stamp, behind which stamps are
//! spread over their seconds, and one by start.

use super::access_record::AccessRecord;
use super::record_selection::LineOmission;
use super::sort_window::{SortWindow, WindowLimit};
use super::stamp_spread::StampSpread;

/// Record with the time of its start.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedRecord {
    /// Start in nanoseconds since 1970.
    pub start_ns: i64,
    /// Record.
    pub record: AccessRecord,
}

/// Records in the order of their starts, through two windows.
#[derive(Clone, Debug)]
pub struct LogTimeline {
    stamps: SortWindow<AccessRecord>,
    spread: StampSpread,
    starts: SortWindow<AccessRecord>,
    out_of_order: u64,
}

impl LogTimeline {
    /// Empty timeline, each of whose windows is so large.
    pub fn new(limit: WindowLimit, seed: u64) -> Self {
        Self {
            stamps: SortWindow::new(limit),
            spread: StampSpread::new(seed),
            starts: SortWindow::new(limit),
            out_of_order: 0,
        }
    }

    /// Takes the record of the next line.
    pub fn push(&mut self, record: AccessRecord) {
        let (stamp, bytes) = (record.time.unix_ns, record.memory_bytes());
        match self.stamps.push(stamp, bytes, record) {
            Ok(()) => self.spread.expect(stamp),
            Err(_) => self.out_of_order += 1,
        }
    }

    /// Whether the first window has no room, so that records come out.
    pub fn is_full(&self) -> bool {
        self.stamps.is_full()
    }

    /// Next record, if it is certain; with `is_end` nothing more is pushed.
    pub fn next(&mut self, is_end: bool) -> Option<TimedRecord> {
        while let Some((stamp, number, record)) = self.stamps.pop(is_end) {
            let start = record.start_ns(self.spread.time(stamp, record.time.resolution, number));
            if self.starts.push(start, record.memory_bytes(), record).is_err() {
                self.out_of_order += 1;
            }
            if self.starts.is_full() {
                break;
            }
        }
        let (start_ns, _, record) = self.starts.pop(is_end && self.stamps.is_empty())?;
        Some(TimedRecord { start_ns, record })
    }

    /// Number of records that were left out as [`LineOmission::OutOfOrder`].
    pub fn out_of_order(&self) -> (LineOmission, u64) {
        (LineOmission::OutOfOrder, self.out_of_order)
    }

    /// Records that are in the windows, with their starts as far as they are known, in no order.
    pub fn waiting(&self) -> impl Iterator<Item = (i64, &AccessRecord)> {
        let stamped = self.stamps.items().map(|(stamp, record)| (record.start_ns(stamp), record));
        stamped.chain(self.starts.items())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access_time::{AccessTime, StampMoment};
    use proptest::prelude::*;
    use weir_base::Nanos;

    const LIMIT: WindowLimit = WindowLimit { items: 1000, bytes: 1 << 30 };

    fn record(second: i64, took_ms: u64, name: usize) -> AccessRecord {
        AccessRecord {
            time: AccessTime { unix_ns: second * 1_000_000_000, resolution: Nanos::SECOND, moment: StampMoment::End },
            took: Some(Nanos::from_millis(took_ms)),
            method: "GET".into(),
            target: format!("/{name}").into(),
            host: None,
            status: None,
            user_agent: None,
            referer: None,
            body: None,
        }
    }

    fn all(lines: &[(i64, u64)], limit: WindowLimit) -> (Vec<TimedRecord>, u64) {
        let mut timeline = LogTimeline::new(limit, 1);
        let mut out = Vec::new();
        for (name, (second, took)) in lines.iter().enumerate() {
            timeline.push(record(*second, *took, name));
            out.extend(std::iter::from_fn(|| timeline.next(false)));
        }
        out.extend(std::iter::from_fn(|| timeline.next(true)));
        (out, timeline.out_of_order().1)
    }

    proptest! {
        #[test]
        fn starts_come_in_order_and_none_is_lost(
            lines in prop::collection::vec((0..20_i64, 0..3000_u64), 0..60), items in 1..40_usize
        ) {
            let (out, late) = all(&lines, WindowLimit { items, ..LIMIT });
            prop_assert!(out.is_sorted_by_key(|timed| timed.start_ns));
            prop_assert_eq!(out.len() as u64 + late, lines.len() as u64);
            for timed in out {
                let end = timed.start_ns + i64::try_from(timed.record.took.expect("a duration").0).expect("small");
                prop_assert_eq!(end.div_euclid(1_000_000_000) * 1_000_000_000, timed.record.time.unix_ns);
            }
        }

        #[test]
        fn lines_of_one_second_without_durations_keep_their_order(seconds in prop::collection::vec(0..5_i64, 0..40)) {
            let mut lines: Vec<(i64, u64)> = seconds.iter().map(|second| (*second, 0)).collect();
            lines.sort_unstable();
            let (out, late) = all(&lines, LIMIT);
            let names: Vec<String> = out.iter().map(|timed| timed.record.target.to_string()).collect();
            let expected: Vec<String> = (0..lines.len()).map(|name| format!("/{name}")).collect();
            prop_assert_eq!((names, late), (expected, 0));
        }
    }
}
