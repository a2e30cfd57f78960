//! PURE. Events of streamed responses.
//!
//! - [`stream_format`]: how events are framed, by name or `Content-Type`
//! - [`event_reader`]: pieces of a body in, events out, without a copy where an event is within one piece
//! - [`stream_event`]: one event
//! - [`llm`]: what an event of a language model's API holds: text of a token, usage
//!
//! ```
//! use weir_events::{EventReader, StreamFormat};
//!
//! let mut reader = EventReader::new(StreamFormat::Sse);
//! let mut seen = Vec::new();
//! for mut piece in [&b"data: one\n\nda"[..], b"ta: two\r\n\r\n"] {
//!     while let Some(event) = reader.next_event(&mut piece) {
//!         seen.push(event.data.to_vec());
//!     }
//! }
//! assert_eq!(seen, [b"one", b"two"]);
//! ```

mod chunk_reader;
mod document_reader;
pub mod event_reader;
mod grpc_reader;
mod json_line_reader;
pub mod llm;
mod sse_reader;
pub mod stream_event;
pub mod stream_format;

#[cfg(test)]
mod tests;

pub use event_reader::EventReader;
pub use stream_event::StreamEvent;
pub use stream_format::StreamFormat;
