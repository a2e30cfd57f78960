//! Calls of gRPC as the requests of a load: one more scheme of URLs.
//!
//! A URL of gRPC becomes one of HTTP/2, and its JSON becomes messages; the schema is from files or from the server.
//!
//! - [`GrpcOptions`]: where the schema is from; [`GrpcCall`]: the method of all requests
//! - `rewrite`: options of a grpc URL as those of requests
//! - [`CallSource`]: a call as a scenario of a mix
//! - `reflection_call`: the schema from the server
//! - `call_messages`: check of a response's framing; `call_end`: what its trailers mean
//! - `call_body`, `call_reader`: messages of a call that is a stream, both ways
//! - `json_codec`: JSON of scenarios to messages; [`ServiceSchemas`]: JSON of programs to messages, and back

mod call;
mod call_body;
mod call_end;
mod call_messages;
mod call_reader;
mod call_source;
mod json_codec;
mod options;
mod reflection_call;
mod rewrite;
mod schema_bytes;
mod schema_files;
mod service_schemas;
mod target;

pub use self::call::{GrpcCall, GrpcCalls};
pub(crate) use self::call_body::{CallPart, OpenCallBody};
pub(crate) use self::call_end::CallEnd;
pub(crate) use self::call_messages::CallMessages;
pub(crate) use self::call_reader::CallReader;
pub use self::call_source::CallSource;
pub(crate) use self::json_codec::JsonCodec;
pub use self::options::GrpcOptions;
pub(crate) use self::rewrite::with_grpc;
pub use self::rewrite::{asks_for_schema, for_users, is_grpc_url};
pub use self::service_schemas::ServiceSchemas;
pub use self::target::GrpcTarget;
