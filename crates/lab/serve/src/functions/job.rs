//! Job of a request: a call of its function, and the response.

use std::ffi::CString;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};

use super::library::LibraryFunction;
use super::routes::BuiltInFunction;
use crate::pool;
use weir_machine::logger::Logger;

/// Function of a request with its arguments.
#[derive(Debug)]
pub enum FunctionJob {
    /// Built-in function.
    BuiltIn(BuiltInCall),
    /// Function of a library.
    Library(Box<LibraryCall>),
}

/// Built-in function and the URI of the request that calls it.
#[derive(Debug)]
pub struct BuiltInCall {
    pub(super) function: BuiltInFunction,
    pub(super) uri: Uri,
}

/// Function of a loaded library and the whole request that calls it.
#[derive(Debug)]
pub struct LibraryCall {
    pub(super) function: Arc<LibraryFunction>,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) body: Bytes,
    pub(super) options: Arc<LibraryOptions>,
}

/// Settings that all calls of library functions share.
#[derive(Debug)]
pub(super) struct LibraryOptions {
    /// Maximum response, headers and body, in bytes.
    pub(super) max_response_bytes: usize,
    pub(super) logger: Logger,
}

/// Status, headers and body that a function returned.
#[derive(Debug)]
pub struct FunctionResponse {
    pub(super) status: StatusCode,
    /// Headers; only of libraries' functions.
    pub(super) headers: Option<Box<HeaderMap>>,
    pub(super) body: Bytes,
}

impl pool::PoolJob for FunctionJob {
    type Output = FunctionResponse;

    fn run(self) -> FunctionResponse {
        match self {
            Self::BuiltIn(BuiltInCall { function: route, uri }) => {
                let (status, body) = route.call(uri.query());
                FunctionResponse { status, headers: None, body }
            }
            Self::Library(call) => call.run(),
        }
    }

    fn is_brief(&self) -> bool {
        match self {
            Self::BuiltIn(BuiltInCall { function: route, uri }) => route.is_brief(uri.query()),
            Self::Library(_) => false,
        }
    }
}

impl LibraryCall {
    fn run(self) -> FunctionResponse {
        let max = self.options.max_response_bytes;
        // A method contains no zero bytes.
        let method = CString::new(self.method.as_str()).unwrap_or_default();
        let (response, code) = self.function.call(&method, self.uri.query().unwrap_or_default(), &self.body, max);
        let (log, body) = if response.too_long {
            (format!("responded with more than {max} bytes"), "Sorry, the response of this function is too long")
        } else if code != 0 {
            (format!("returned {code}"), "Sorry, this function failed")
        } else {
            return FunctionResponse {
                status: response.status,
                headers: Some(Box::new(response.headers)),
                body: response.body.into(),
            };
        };
        let count = self.function.count_failure();
        if should_log(count) {
            let so_far = if count > 1 { format!(" ({count} failures so far)") } else { String::new() };
            self.options.logger.log(&format!("{} {log}{so_far}", self.function.name));
        }
        FunctionResponse { status: StatusCode::INTERNAL_SERVER_ERROR, headers: None, body: body.into() }
    }
}

/// Whether to log a failure: the first ten, then the hundredth, thousandth, ..., so that a load test does not fill a
/// disk.
fn should_log(count: u64) -> bool {
    count <= 10 || 10_u64.checked_pow(count.ilog10()) == Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_logged_ten_times_and_then_at_powers_of_ten() {
        let logged: Vec<u64> = (1..=100_000).filter(|count| should_log(*count)).collect();
        assert_eq!(logged, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100, 1000, 10_000, 100_000]);
    }
}
