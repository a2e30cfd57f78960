//! Flags of messages over WebSocket, shared by `load` and `capacity`.

use clap::Args;

use weir_load::websocket::WebSocketOptions;

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
}

impl WebSocketArgs {
    /// Options of these flags.
    pub(super) fn into_options(self) -> WebSocketOptions {
        WebSocketOptions { is_binary: self.binary, subprotocols: self.subprotocols }
    }
}
