//! Text of JSON -> Python objects.

use jiter::{FloatMode, PartialMode, PythonParse, StringCacheMode};
use pyo3::prelude::*;

/// Parser whose values are those of Python's module. What that reads beyond the standard, such as `NaN`, is left to it.
const PARSER: PythonParse = PythonParse {
    allow_inf_nan: false,
    cache_mode: StringCacheMode::Keys,
    partial_mode: PartialMode::Off,
    catch_duplicate_keys: false,
    float_mode: FloatMode::Float,
};

/// Reads a text; `None` if Python's module has to, or reports an error.
pub(crate) fn read<'py>(py: Python<'py>, bytes: &[u8]) -> Option<Bound<'py, PyAny>> {
    PARSER.python_parse(py, bytes).ok()
}
