//! Python arguments of messages over WebSocket -> [`WebSocketOptions`].

use pyo3::prelude::*;
use weir::load::websocket::{DeflateChoice, WebSocketOptions};

use crate::arguments::PythonArgs;
use crate::body_arg::BodyArg;
use crate::errors;

/// WebSocket as given.
pub(crate) fn websocket_options(form: &PythonArgs<'_>) -> PyResult<WebSocketOptions> {
    Ok(WebSocketOptions {
        is_binary: form.take("binary")?,
        subprotocols: form.take("subprotocols")?,
        deflate: form.take::<DeflateArg>("deflate")?.0,
        first_messages: form.take::<Vec<BodyArg>>("first_message")?.into_iter().map(|body| body.0).collect(),
        first_replies: form.take("first_replies")?,
        reply: form.take("reply")?,
        listens: form.take("listen")?,
        ping_interval: form.time("ping_interval")?.map(Into::into),
    })
}

/// Compression: `False`, `True` or `"no-context"`.
struct DeflateArg(Option<DeflateChoice>);

impl FromPyObject<'_, '_> for DeflateArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(is_wanted) = value.extract::<bool>() {
            return Ok(Self(is_wanted.then_some(DeflateChoice::Context)));
        }
        match value.extract::<&str>() {
            Ok(DeflateChoice::NO_CONTEXT) => Ok(Self(Some(DeflateChoice::NoContext))),
            _ => Err(errors::usage("invalid deflate; write True, False or 'no-context'")),
        }
    }
}
