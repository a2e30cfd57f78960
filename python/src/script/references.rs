//! Number of references to a Python object.
//!
//! `unsafe`, since the interpreter gives the number to C alone.
#![allow(unsafe_code, reason = "Py_REFCNT is a function of the interpreter, which is C")]

use pyo3::ffi;
use pyo3::prelude::*;

/// Whether nothing but `object` itself refers to its Python object: no script can reach it.
pub(super) fn is_only_reference<T>(_: Python<'_>, object: &Py<T>) -> bool {
    // SAFETY: the reference keeps the object alive, and the interpreter is attached.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) == 1 }
}
