//! What a thread of the pool does for a request, and what comes of it.

use std::ffi::CString;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, Uri};

use super::library::LibraryFunction;
use super::routes::BuiltInFunction;
use crate::serve::pool;
use crate::server::Logger;

/// A request's function, and what it is called with.
#[derive(Debug)]
pub enum FunctionJob {
    /// One of the document's seven.
    BuiltIn(BuiltInCall),
    /// One of a library.
    Library(Box<LibraryCall>),
}

/// A call of one of the seven.
#[derive(Debug)]
pub struct BuiltInCall {
    pub(super) function: BuiltInFunction,
    pub(super) uri: Uri,
}

/// A call of a library's function.
#[derive(Debug)]
pub struct LibraryCall {
    pub(super) function: Arc<LibraryFunction>,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) body: Bytes,
    pub(super) options: Arc<LibraryOptions>,
}

/// What holds for all calls of libraries' functions.
#[derive(Debug)]
pub(super) struct LibraryOptions {
    /// The longest answer, in bytes.
    pub(super) max_response_bytes: usize,
    pub(super) logger: Logger,
}

/// What a function answers.
#[derive(Debug)]
pub struct FunctionResponse {
    pub(super) status: StatusCode,
    /// Only libraries' functions have any.
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
        let most = self.options.max_response_bytes;
        // A method has no zeros in it.
        let method = CString::new(self.method.as_str()).unwrap_or_default();
        let (answer, code) = self.function.call(&method, self.uri.query().unwrap_or_default(), &self.body, most);
        let (log, body) = if answer.too_long {
            (format!("responded with more than {most} bytes"), "Sorry, the response of this function is too long")
        } else if code != 0 {
            (format!("returned {code}"), "Sorry, this function failed")
        } else {
            return FunctionResponse {
                status: answer.status,
                headers: Some(Box::new(answer.headers)),
                body: answer.body.into(),
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

/// The first ten failures are, and then each that makes the count ten times longer: a load test must not fill a disk.
fn should_log(count: u64) -> bool {
    count <= 10 || 10_u64.checked_pow(count.ilog10()) == Some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_ten_times_and_then_ever_more_seldom() {
        let told: Vec<u64> = (1..=100_000).filter(|count| should_log(*count)).collect();
        assert_eq!(told, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 100, 1000, 10_000, 100_000]);
    }
}
