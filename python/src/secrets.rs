//! Names of secrets and texts without them, for representations of Python objects.

use pyo3::prelude::*;
use weir::decide::base::{secret_mask, secret_names};

/// Whether a header, field, parameter or variable of this name is a secret.
#[pyfunction]
pub(crate) fn is_secret_name(name: &str) -> bool {
    secret_names::is_secret_name(name)
}

/// Text without what has a secret name, and without user and password of URLs.
#[pyfunction]
pub(crate) fn without_secrets(text: &str) -> String {
    secret_mask::without_secrets(text)
}
