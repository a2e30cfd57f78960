//! Responses that are streams of events: what a load asks for, what is observed of each, and how bytes get there.
//!
//! - [`options`]: format, stall timeout, API of a language model
//! - [`observer`]: parses events as bytes of a response arrive, and measures their times
//! - `arrived_events`: events on their way to a program
//! - `content_fault`: what is wrong with the content of a whole response
//! - [`read_wait`]: how long events may wait to be read together
//! - `tap`: passes a response on to its observer and to what keeps parts of it

mod arrived_events;
mod content_fault;
pub mod observer;
pub mod options;
pub mod read_wait;
mod tap;

pub use self::arrived_events::{ArrivedEvent, ArrivedEvents};
pub use self::observer::{PieceArrival, StreamObserver, StreamSinks};
pub use self::options::StreamOptions;
pub use self::read_wait::ReadWait;
pub(crate) use self::tap::{StreamArrival, StreamTap, status_of};
