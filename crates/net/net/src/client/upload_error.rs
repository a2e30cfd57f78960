//! Why a request was not completely sent.

use std::io;

use super::error::SendError;

/// Reason why a request was not completely sent.
#[derive(Debug)]
pub(super) enum UploadError {
    /// The connection failed; there may be a response all the same.
    Socket(io::Error),
    /// The caller's body failed.
    Body(String),
    /// The caller's body does not have its declared length.
    Length,
}

impl From<UploadError> for SendError {
    fn from(error: UploadError) -> Self {
        match error {
            UploadError::Socket(error) => Self::connection_lost(&error),
            UploadError::Body(why) => Self::request(format!("the request's body broke off: {why}")),
            UploadError::Length => Self::request("the request's body is not as long as it said"),
        }
    }
}
