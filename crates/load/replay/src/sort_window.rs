//! A bounded window that sorts what comes almost in order.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Maximum size of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLimit {
    /// Number of items.
    pub items: usize,
    /// Their memory, in bytes.
    pub bytes: usize,
}

/// Window that sorts items by time; those of one time keep their order. An item comes out once the window is full, so
/// it may be late by as many items as the window has.
#[derive(Clone, Debug)]
pub struct SortWindow<T> {
    heap: BinaryHeap<WindowItem<T>>,
    limit: WindowLimit,
    bytes: usize,
    /// Number of items so far.
    count: u64,
    /// Time of the last item that came out.
    passed: Option<i64>,
}

#[derive(Clone, Debug)]
struct WindowItem<T> {
    time: i64,
    number: u64,
    bytes: usize,
    item: T,
}

impl<T> Ord for WindowItem<T> {
    /// The earliest is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

impl<T> PartialOrd for WindowItem<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for WindowItem<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for WindowItem<T> {}

impl<T> SortWindow<T> {
    /// Empty window.
    pub fn new(limit: WindowLimit) -> Self {
        Self { heap: BinaryHeap::new(), limit, bytes: 0, count: 0, passed: None }
    }

    /// Takes an item; one that is before what has come out comes back.
    ///
    /// # Errors
    /// The item.
    pub fn push(&mut self, time: i64, bytes: usize, item: T) -> Result<(), T> {
        if self.passed.is_some_and(|passed| time < passed) {
            return Err(item);
        }
        self.heap.push(WindowItem { time, number: self.count, bytes, item });
        self.count += 1;
        self.bytes += bytes;
        Ok(())
    }

    /// Whether the earliest item comes out now.
    pub fn is_full(&self) -> bool {
        self.heap.len() >= self.limit.items || self.bytes >= self.limit.bytes
    }

    /// Earliest item with its time and its number among all, if the window is full or nothing more comes.
    pub fn pop(&mut self, is_end: bool) -> Option<(i64, u64, T)> {
        if !is_end && !self.is_full() {
            return None;
        }
        let WindowItem { time, number, bytes, item } = self.heap.pop()?;
        self.bytes -= bytes;
        self.passed = Some(time);
        Some((time, number, item))
    }

    /// Items in the window with their times, in no order.
    pub fn items(&self) -> impl Iterator<Item = (i64, &T)> {
        self.heap.iter().map(|inner| (inner.time, &inner.item))
    }

    /// Number of items in the window.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether it has no items.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Items in the order in which they come out, and those that are too late.
    fn sorted(times: &[i64], limit: WindowLimit) -> (Vec<(i64, usize)>, Vec<usize>) {
        let (mut window, mut out, mut late) = (SortWindow::new(limit), Vec::new(), Vec::new());
        for (index, time) in times.iter().enumerate() {
            if let Err(index) = window.push(*time, 1, index) {
                late.push(index);
            }
            assert!(window.len() <= limit.items.max(1) + 1);
            while let Some((time, _, index)) = window.pop(false) {
                out.push((time, index));
            }
        }
        while let Some((time, _, index)) = window.pop(true) {
            out.push((time, index));
        }
        (out, late)
    }

    proptest! {
        /// Oracle: a stable sort of all, where the disorder is less than the window.
        #[test]
        fn a_disorder_within_the_window_is_sorted(
            steps in prop::collection::vec((0..3_i64, 0..5_i64), 0..60), items in 1..8_usize
        ) {
            let mut base = 0;
            let times: Vec<i64> = steps.iter().map(|(step, back)| { base += step; base - back }).collect();
            let limit = WindowLimit { items, bytes: usize::MAX };
            let (out, late) = sorted(&times, limit);
            prop_assert!(out.is_sorted());
            prop_assert_eq!(out.len() + late.len(), times.len());
            // An item is late only if as many later ones stood before it as the window has.
            for index in late {
                prop_assert!(times[..index].iter().filter(|time| **time > times[index]).count() >= items);
            }
        }

        #[test]
        fn a_window_that_has_room_for_all_is_a_stable_sort(times in prop::collection::vec(-5..5_i64, 0..30)) {
            let (out, late) = sorted(&times, WindowLimit { items: 100, bytes: usize::MAX });
            let mut expected: Vec<(i64, usize)> = times.iter().copied().zip(0..).collect();
            expected.sort();
            prop_assert_eq!((out, late), (expected, Vec::new()));
        }

        #[test]
        fn memory_is_bounded_too(sizes in prop::collection::vec(0..50_usize, 0..40)) {
            let limit = WindowLimit { items: 1000, bytes: 100 };
            let mut window = SortWindow::new(limit);
            for size in sizes {
                window.push(0, size, size).expect("in order");
                while window.pop(false).is_some() {}
                prop_assert!(window.items().map(|(_, size)| *size).sum::<usize>() < 100);
            }
        }
    }
}
