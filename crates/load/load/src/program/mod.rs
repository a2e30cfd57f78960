//! Programs that drive users in place of compiled steps: scripts.
//!
//! - [`UserProgram`]: what a load has; it makes one [`ThreadProgram`] for each worker thread
//! - [`ThreadProgram`]: the users of one thread: events in, [`ProgramAction`]s out
//! - [`ProgramCall`]: what a call is about, and where the program puts a request and its findings
//! - [`SocketCommand`] and [`SocketEvent`]: connections of WebSocket that users hold; [`CallCommand`]: calls of gRPC that are
//!   streams
//! - [`ConnectionFacts`]: connection of a response, for programs that ask for it
//! - [`StepNames`]: names of steps that are known only at run time
//! - [`ProgramOptions`]: a program as other processes make it: [`ScriptOptions`] of a script, or a [`BuiltInProgram`]
//! - [`request`]: bytes of requests that are given in parts; [`UserShape`]: number of users over time
//!
//! A program does no I/O of its own for a load: connections, clocks, timeouts, records and waits are those of the
//! worker. It is called on its worker's thread alone, and the worker waits for it: what a program takes is CPU time
//! of the load generator, and shows in the lateness of what is sent next.

mod action;
mod call;
mod collection_path;
mod connection_facts;
mod program_options;
mod remote_program;
pub mod request;
mod script_options;
mod script_path;
mod socket;
mod step_names;
mod user_program;
mod user_shape;

pub use self::action::{KeptParts, PipelinedRequest, ProgramAction, ProgramSend, ReleasedRecord};
pub use self::call::{CallCommand, CallNext};
pub use self::collection_path::{CollectionInput, is_collection};
pub use self::connection_facts::ConnectionFacts;
pub use self::program_options::{BuiltInProgram, ProgramOptions};
pub(crate) use self::remote_program::RemoteProgram;
pub use self::script_options::ScriptOptions;
pub use self::script_path::{is_javascript, is_python, is_script, take_script};
pub use self::socket::{SocketCommand, SocketEnd, SocketEvent, SocketId, SocketMessage, SocketOpening};
pub use self::step_names::StepNames;
pub use self::user_program::{
    ProgramCall, ProgramCalls, ProgramOrigin, ProgramResponse, ProgramThread, RequestTimes, StreamPart, ThreadProgram,
    UserProgram,
};
pub use self::user_shape::UserShape;
pub use crate::event_streams::{ArrivedEvent, ArrivedEvents};
