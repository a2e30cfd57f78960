//! HTTP/2 of a load: options, and the requests of a connection. The protocol itself is [`weir_http2`].

mod connection_streams;
mod message_pace;
mod options;
mod stream_exchange;
mod stream_groups;

pub(crate) use connection_streams::{ConnectionStreams, StreamWriting};
pub use options::{Http2Options, Http2Plan, Http2Preference};
pub(crate) use stream_exchange::StreamExchange;
pub(crate) use stream_groups::{StreamGroup, StreamGroups};
