//! Flags of messages over WebSocket, shared by `load` and `capacity`.

use std::time::Duration;

use clap::Args;

use weir_base::units;
use weir_load::options::RequestBodySource;
use weir_load::websocket::{DeflateChoice, WebSocketOptions};

/// Heading of these flags in the help.
const WEBSOCKET: &str = "WebSocket";

/// Messages over WebSocket, for URLs of `ws://` and `wss://`.
#[derive(Clone, Debug, Args)]
pub(super) struct WebSocketArgs {
    /// messages as binary frames [default: text, if they are UTF-8]
    #[arg(long, help_heading = WEBSOCKET)]
    binary: bool,
    /// offered subprotocol, e.g. graphql-transport-ws; repeatable
    #[arg(long = "subprotocol", value_name = "NAME", help_heading = WEBSOCKET)]
    subprotocols: Vec<String>,
    /// offer compression; =no-context: each message of the service by itself
    #[arg(
        long,
        value_name = DeflateChoice::NO_CONTEXT,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "context",
        value_parser = deflate,
        hide_possible_values = true,
        help_heading = WEBSOCKET
    )]
    deflate: Option<DeflateChoice>,
    /// message that each connection begins with; @FILE; repeatable
    #[arg(long = "first-message", value_name = "TEXT|@FILE", allow_hyphen_values = true, help_heading = WEBSOCKET)]
    first_messages: Vec<RequestBodySource>,
    /// messages to await after each first message [default: 1]
    #[arg(long, value_name = "N", help_heading = WEBSOCKET)]
    first_replies: Option<u64>,
    /// part of a message that its reply repeats, e.g. 'jsonpath "$.id"'
    #[arg(long, value_name = "QUERY", help_heading = WEBSOCKET)]
    reply: Option<String>,
    /// connections that only listen to what the service pushes
    #[arg(long, help_heading = WEBSOCKET)]
    pub(super) listen: bool,
    /// time between two pings of a connection [default: no pings]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, help_heading = WEBSOCKET)]
    ping_interval: Option<Duration>,
}

impl WebSocketArgs {
    /// Options of these flags.
    pub(super) fn into_options(self) -> WebSocketOptions {
        WebSocketOptions {
            is_binary: self.binary,
            subprotocols: self.subprotocols,
            deflate: self.deflate,
            first_messages: self.first_messages,
            first_replies: self.first_replies,
            reply: self.reply,
            listens: self.listen,
            ping_interval: self.ping_interval.map(Into::into),
        }
    }
}

fn deflate(text: &str) -> Result<DeflateChoice, String> {
    match text {
        "context" => Ok(DeflateChoice::Context),
        DeflateChoice::NO_CONTEXT => Ok(DeflateChoice::NoContext),
        _ => Err(format!("write --deflate or --deflate={}", DeflateChoice::NO_CONTEXT)),
    }
}
