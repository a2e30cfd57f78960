//! HTTP/2 of a client (RFC 9113) as plain values: bytes and requests go in, events and bytes come out. PURE: no socket,
//! no clock, no thread. The owner of a connection writes the output and passes on what it reads.
//!
//! ```
//! use weir_http2::connection::{ClientConnection, ClientSettings, StreamRequest};
//!
//! let mut connection = ClientConnection::new(&ClientSettings::default());
//! let head = b"GET /items HTTP/1.1\r\nHost: shop\r\n\r\n";
//! let request = StreamRequest { head, body_length: 0, key: 7, template: 0, wants_head: false };
//! let stream = connection.open(&request).expect("the first stream");
//! assert_eq!(stream.number(), 1);
//! assert!(connection.output().starts_with(b"PRI * HTTP/2.0\r\n\r\n"));
//! ```
//!
//! - [`connection`] [`ClientConnection`](connection::ClientConnection), which has all of the protocol's state, and its
//!   [`Event`](connection::Event)s
//! - [`frame`] headers and payloads of frames (sections 4 and 6)
//! - [`hpack`] compression of fields (RFC 7541), both sides with a table
//! - [`request`] HTTP/1.1 text to field blocks (section 8.3.1), with a cache of blocks
//! - [`response`] field blocks to status, notes and text (section 8.3.2), with a cache of blocks
//! - [`flow`] windows (section 5.2)
//! - [`error_code`] codes of streams and connections (section 7)
//!
//! Invariants:
//!
//! - The events, the output and the error are the same however the received bytes are split; only the pieces of content
//!   differ. DATA is never copied.
//! - A key has at most one end, [`Ended`](connection::Event::Ended) or [`Reset`](connection::Event::Reset), and no
//!   event behind it or behind [`cancel`](connection::ClientConnection::cancel). After an error of the connection, the
//!   requests without an end have failed.
//! - A violation of the peer ends the stream where RFC 9113 permits that, else the connection, with the code of the
//!   RFC; RST_STREAM or GOAWAY is in the output.
//! - Memory is bounded whatever the peer sends: blocks, tables, caches, partial frames, output and places of streams.
//! - Nothing is allocated for a request once buffers have their size.
//!
//! Not there: a server, push, priorities, CONNECT, and `Upgrade: h2c`.

pub mod connection;
pub mod error_code;
mod field;
pub mod flow;
pub mod frame;
pub mod hpack;
pub mod request;
pub mod response;
