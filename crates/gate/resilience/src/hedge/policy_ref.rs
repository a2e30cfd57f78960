//! Policy of a call in flight.

use std::ops::Deref;
use std::sync::Arc;

use crate::policy::Policy;

/// Policy of a call in flight: borrowed from a plan that outlives the call, or shared by calls that no scope contains,
/// such as those of a binding for another language.
#[derive(Clone, Debug)]
pub enum PolicyRef<'p> {
    /// Of a plan that outlives the call.
    Borrowed(&'p Policy),
    /// Of the call, and of others.
    Shared(Arc<Policy>),
}

impl Deref for PolicyRef<'_> {
    type Target = Policy;

    fn deref(&self) -> &Policy {
        match self {
            Self::Borrowed(policy) => policy,
            Self::Shared(policy) => policy,
        }
    }
}

impl<'p> From<&'p Policy> for PolicyRef<'p> {
    fn from(policy: &'p Policy) -> Self {
        Self::Borrowed(policy)
    }
}

impl From<Arc<Policy>> for PolicyRef<'static> {
    fn from(policy: Arc<Policy>) -> Self {
        Self::Shared(policy)
    }
}
