//! Memory of all bodies that are kept at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum memory of the kept bodies of a process, in bytes. Small parts of bodies are not counted.
pub(super) const MAX_TOTAL_BYTES: usize = 512 << 20;
/// Size up to which a body is not counted, in bytes: what a thread keeps for the next one anyway.
const FREE_BYTES: usize = 64 << 10;
/// Smallest step by which a counted body grows, in bytes.
const MIN_STEP_BYTES: usize = 1 << 20;

/// Factor by which the room of a counted body grows.
const GROWTH: usize = 8;
/// Largest room that is reserved before it is needed, in bytes.
const MAX_RESERVED_BYTES: usize = 64 << 20;

/// Memory of the process in all [`BodyShare`]s.
static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// Part of the memory that one body has.
#[derive(Debug)]
pub(super) struct BodyShare {
    /// Sum of all shares.
    total: &'static AtomicUsize,
    counted: usize,
}

impl Default for BodyShare {
    fn default() -> Self {
        Self { total: &IN_USE, counted: 0 }
    }
}

impl BodyShare {
    /// Makes room in a body for further bytes; false if all bodies together would need too much.
    #[inline]
    pub(super) fn make_room(&mut self, body: &mut Vec<u8>, further: usize) -> bool {
        let needed = body.len() + further;
        needed <= FREE_BYTES.max(self.counted) || self.grow(body, needed)
    }

    #[cold]
    fn grow(&mut self, body: &mut Vec<u8>, needed: usize) -> bool {
        let grown = needed.next_multiple_of(MIN_STEP_BYTES);
        let further = grown - self.counted;
        let add = |used: usize| used.checked_add(further).filter(|sum| *sum <= MAX_TOTAL_BYTES);
        if self.total.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_err() {
            return false;
        }
        self.counted = grown;
        if grown > body.capacity() {
            // Few moves, since each leaves memory behind that was touched; what is not touched is none.
            let capacity = (body.capacity() * GROWTH).clamp(MIN_STEP_BYTES, MAX_RESERVED_BYTES).max(grown);
            body.reserve_exact(capacity - body.len());
        }
        true
    }

    /// Gives the memory back; the caller has freed it.
    #[inline]
    pub(super) fn release(&mut self) {
        if self.counted > 0 {
            self.total.fetch_sub(std::mem::take(&mut self.counted), Ordering::Relaxed);
        }
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_a_bound_together_and_give_their_memory_back() {
        static TOTAL: AtomicUsize = AtomicUsize::new(0);
        let [mut first, mut second] = [0, 0].map(|counted| BodyShare { total: &TOTAL, counted });
        let mut body = Vec::new();
        assert!(first.make_room(&mut body, FREE_BYTES) && first.counted == 0 && body.capacity() == 0);
        assert!(first.make_room(&mut body, FREE_BYTES + 1));
        assert_eq!((first.counted, body.capacity()), (MIN_STEP_BYTES, MIN_STEP_BYTES));
        assert!(second.make_room(&mut Vec::new(), MAX_TOTAL_BYTES - MIN_STEP_BYTES));
        assert!(!first.make_room(&mut body, MIN_STEP_BYTES + 1) && first.counted == MIN_STEP_BYTES);
        drop(second);
        assert!(first.make_room(&mut body, MIN_STEP_BYTES + 1));
    }
}
