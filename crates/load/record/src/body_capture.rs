//! Copy of a body that passes through, within bounds.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::exchange::RecordedBody;

/// Bytes that copies of bodies may have together while their requests are in flight. What exceeds it is not kept.
#[derive(Clone, Debug)]
pub(crate) struct CaptureBudget {
    left: Rc<Cell<usize>>,
    /// Maximum size of one copy, in bytes.
    max_body_bytes: usize,
}

impl CaptureBudget {
    pub(crate) fn new(total_bytes: usize, max_body_bytes: usize) -> Self {
        Self { left: Rc::new(Cell::new(total_bytes)), max_body_bytes }
    }

    /// A copy that is empty yet.
    pub(crate) fn capture(&self) -> BodyCapture {
        let (body, is_kept, budget) = (RecordedBody::default(), true, self.clone());
        BodyCapture { state: Rc::new(RefCell::new(CaptureState { body, is_kept, budget })) }
    }
}

/// Copy of one body, shared by the body and its record.
#[derive(Clone, Debug)]
pub(crate) struct BodyCapture {
    state: Rc<RefCell<CaptureState>>,
}

#[derive(Debug)]
struct CaptureState {
    body: RecordedBody,
    is_kept: bool,
    budget: CaptureBudget,
}

impl CaptureState {
    fn release(&mut self) -> RecordedBody {
        let left = &self.budget.left;
        left.set(left.get() + self.body.bytes.len());
        std::mem::take(&mut self.body)
    }
}

impl BodyCapture {
    /// Copies the next bytes. A body that becomes longer than the bound is only counted.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut state = self.state.borrow_mut();
        state.body.length += bytes.len() as u64;
        if !state.is_kept {
            return;
        }
        let left = state.budget.left.get();
        if bytes.len() > left || state.body.bytes.len() + bytes.len() > state.budget.max_body_bytes {
            let length = state.body.length;
            state.is_kept = false;
            state.release();
            state.body.length = length;
            return;
        }
        state.budget.left.set(left - bytes.len());
        state.body.bytes.extend_from_slice(bytes);
    }

    /// Counts bytes from now on, and drops those that are kept.
    pub(crate) fn count_only(&self) {
        let mut state = self.state.borrow_mut();
        let length = state.body.length;
        state.is_kept = false;
        state.release();
        state.body.length = length;
    }

    /// The copy; its bytes are those of the budget again.
    pub(crate) fn take(&self) -> RecordedBody {
        self.state.borrow_mut().release()
    }
}

impl Drop for CaptureState {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Copies are whole or empty, lengths are exact, and the budget is never exceeded and comes back.
        #[test]
        fn copies_are_whole_or_empty_within_the_budget(
            pieces in proptest::collection::vec((0..3_usize, 0..40_usize), 0..40), ends in proptest::collection::vec(0..40_usize, 0..3)
        ) {
            let budget = CaptureBudget::new(100, 60);
            let mut captures = [budget.capture(), budget.capture(), budget.capture()];
            let mut passed = [0_u64; 3];
            for (turn, (which, length)) in pieces.into_iter().enumerate() {
                if ends.contains(&turn) {
                    let body = captures[which].take();
                    prop_assert!(body.bytes.is_empty() || body.bytes.len() as u64 == passed[which]);
                    prop_assert!(body.bytes.len() <= 60);
                    prop_assert_eq!(body.length, passed[which]);
                    (captures[which], passed[which]) = (budget.capture(), 0);
                }
                captures[which].push(&vec![7; length]);
                passed[which] += length as u64;
                let kept: usize = captures.iter().map(|one| one.state.borrow().body.bytes.len()).sum();
                prop_assert_eq!(kept + budget.left.get(), 100);
            }
            drop(captures);
            prop_assert_eq!(budget.left.get(), 100);
        }
    }
}
