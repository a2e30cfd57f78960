//! How a task tells Python of a change.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::streamed_call::{StreamedCall, StreamedCallState};

/// Calls of an event loop that Python waits for by futures, and that have changed.
pub(crate) type ChangedCalls = Rc<RefCell<Vec<Arc<StreamedCall>>>>;

/// How a task tells Python of a change: by a list, for futures that are set after the turn, or by a signal.
#[derive(Clone, Default)]
pub(crate) struct ChangeNotice {
    changed: Option<ChangedCalls>,
}

impl ChangeNotice {
    /// A notice for futures.
    pub(crate) fn by(changed: ChangedCalls) -> Self {
        Self { changed: Some(changed) }
    }

    /// Changes an call's state.
    pub(crate) fn change(&self, streamed: &Arc<StreamedCall>, change: impl FnOnce(&mut StreamedCallState)) {
        if streamed.change(change)
            && let Some(changed) = &self.changed
        {
            changed.borrow_mut().push(Arc::clone(streamed));
        }
    }
}
