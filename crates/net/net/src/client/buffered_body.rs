//! Bodies of responses that are read whole, up to a bound.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;

use super::error::{FailurePoint, SendError};
use weir_base::failure::FailureKind;

/// Complete bytes and trailers of a body.
#[derive(Debug, Default)]
pub struct BufferedBody {
    /// All bytes.
    pub bytes: Bytes,
    /// Trailers, if there are any.
    pub trailers: Option<Box<HeaderMap>>,
}

/// Error of a body of more than `max_bytes`.
pub fn too_long(max_bytes: usize) -> SendError {
    let text = format!("the response is longer than {max_bytes} bytes");
    SendError::new(FailureKind::Body, text).at(FailurePoint::TooLong)
}

/// Reads a body of at most `max_bytes`. A longer one is not read on, and its connection is closed.
///
/// # Errors
/// The connection failed, or the body is longer.
pub async fn read_body(
    mut body: impl Body<Data = Bytes, Error = SendError> + Unpin,
    max_bytes: usize,
) -> Result<BufferedBody, SendError> {
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(too_long(max_bytes));
    }
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        let frame = frame?;
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => {
                trailers = frame.into_trailers().ok().map(Box::new);
                continue;
            }
        };
        if data.len() > max_bytes - first.len().max(all.len()) {
            return Err(too_long(max_bytes));
        }
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        // From the second part on all is in one buffer.
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&data);
    }
    Ok(BufferedBody { bytes: if all.is_empty() { first } else { all.freeze() }, trailers })
}
