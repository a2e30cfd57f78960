//! Bound of bodies that are read whole.

use std::borrow::Cow;

use weir_base::failure::FailureKind;

/// Failure kind and cause of a body that could not be read whole.
pub(crate) type BodyReadError = (FailureKind, Cow<'static, str>);

pub(crate) fn too_long(max_bytes: usize) -> BodyReadError {
    (FailureKind::Body, format!("the response is longer than {max_bytes} bytes").into())
}
