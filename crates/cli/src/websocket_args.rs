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
    /// send messages as binary frames [default: text, if they are UTF-8]
    #[arg(long, help_heading = WEBSOCKET)]
    binary: bool,
    /// offer a subprotocol, e.g. graphql-transport-ws; repeatable
    #[arg(long = "subprotocol", value_name = "NAME", help_heading = WEBSOCKET)]
    subprotocols: Vec<String>,
    /// offer compression; =no-context: the service compresses each message by itself
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
    /// begin each connection with this message, or @FILE; repeatable
    #[arg(long = "first-message", value_name = "TEXT|@FILE", allow_hyphen_values = true, help_heading = WEBSOCKET)]
    first_messages: Vec<RequestBodySource>,
    /// wait for N messages after each first message [default: 1]
    #[arg(long, value_name = "N", help_heading = WEBSOCKET)]
    first_replies: Option<u64>,
    /// match replies to requests by this part, e.g. 'jsonpath "$.id"'
    #[arg(long, value_name = "QUERY", help_heading = WEBSOCKET)]
    reply: Option<String>,
    /// listen to what the service pushes, without sending requests
    #[arg(long, help_heading = WEBSOCKET)]
    pub(super) listen: bool,
    /// ping each connection every TIME [default: no pings]
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
