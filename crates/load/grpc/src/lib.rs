//! PURE. gRPC without sockets.
//!
//! - [`schema`]: descriptions of services, from `.proto` files, descriptor sets or [`reflection`]
//! - [`method`]: one method: its path and kind, JSON to requests, responses to JSON
//! - [`messages`]: framing and compression of messages
//! - [`metadata`]: fields of requests and trailers

mod file_set;
pub mod messages;
pub mod metadata;
pub mod method;
mod nesting;
pub mod reflection;
pub mod schema;

#[cfg(test)]
mod tests;

pub use self::method::{GrpcMethod, MethodKind};
pub use self::reflection::{Reflection, ReflectionVersion};
pub use self::schema::{GrpcSchema, MethodName};
