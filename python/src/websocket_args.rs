//! Python arguments of messages over WebSocket -> [`WebSocketOptions`].

use pyo3::prelude::*;
use weir::load::websocket::WebSocketOptions;

use crate::arguments::PythonArgs;
use crate::body_arg::BodyArg;

/// WebSocket as given.
pub(crate) fn websocket_options(form: &PythonArgs<'_>) -> PyResult<WebSocketOptions> {
    Ok(WebSocketOptions {
        is_binary: form.take("binary")?,
        subprotocols: form.take("subprotocols")?,
        first_messages: form.take::<Vec<BodyArg>>("first_message")?.into_iter().map(|body| body.0).collect(),
        first_replies: form.take("first_replies")?,
        reply: form.take("reply")?,
        listens: form.take("listen")?,
        ping_interval: form.time("ping_interval")?.map(Into::into),
    })
}
