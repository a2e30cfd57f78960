//! Options of WebSocket as given.

use serde::{Deserialize, Serialize};

use crate::options::RequestBodySource;
use weir_base::Nanos;

/// Compression that is offered (permessage-deflate).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeflateChoice {
    /// The service may refer to its messages before.
    Context,
    /// Each message of the service is compressed by itself.
    NoContext,
}

impl DeflateChoice {
    /// Word of the command line and of Python for [`Self::NoContext`].
    pub const NO_CONTEXT: &str = "no-context";
}

/// Options of WebSocket as given; they are for a URL of `ws://` or `wss://`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WebSocketOptions {
    /// Whether messages are binary; without it those are that are not UTF-8.
    pub is_binary: bool,
    /// Subprotocols that are offered, the preferred one first.
    pub subprotocols: Vec<String>,
    /// Compression, if it is offered.
    pub deflate: Option<DeflateChoice>,
    /// Messages that each connection begins with, in order.
    pub first_messages: Vec<RequestBodySource>,
    /// Number of messages that are awaited after each of these; 1 without one.
    pub first_replies: Option<u64>,
    /// Query for the part of a message that its reply repeats, such as `jsonpath "$.id"`; replies come in order without
    /// one.
    pub reply: Option<String>,
    /// Whether connections only listen, and each is a request.
    pub listens: bool,
    /// Time between two pings of a connection; none without one.
    pub ping_interval: Option<Nanos>,
}

impl WebSocketOptions {
    /// First option that is given, as its flag without dashes.
    pub(crate) fn first_given(&self) -> Option<&'static str> {
        [
            ("binary", self.is_binary),
            ("subprotocol", !self.subprotocols.is_empty()),
            ("deflate", self.deflate.is_some()),
            ("first-message", !self.first_messages.is_empty()),
            ("first-replies", self.first_replies.is_some()),
            ("reply", self.reply.is_some()),
            ("listen", self.listens),
            ("ping-interval", self.ping_interval.is_some()),
        ]
        .into_iter()
        .find_map(|(name, is_given)| is_given.then_some(name))
    }
}
