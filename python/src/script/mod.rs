//! Users of a load that Python drives: `weir.User` classes and locustfiles.
//!
//! - [`shared_program`]: what a load has; [`program`]: names of scenarios and steps, and the factory of users
//! - [`thread`]: the users of the one worker thread: events in, actions out; [`user`]: one of them
//! - [`session`]: what the requests of a user have in common: URL before paths, headers, cookies
//! - [`request`]: what a task yields; `weir::load::program::request` makes its bytes
//! - [`response`]: response of a task's request, parsed only when a member is read
//! - [`call_schemas`]: messages of calls of gRPC
//! - [`blocked`]: calls that do not return
//! - [`command`]: `weir load -s FILE.py` in a Python process
//! - [`quick_request`]: requests from the arguments that most have
//! - [`task_requests`]: requests that tasks send; [`task_stream`], [`stream_calls`]: responses that they read as
//!   streams of events
//! - [`task_socket`], [`socket_calls`]: WebSockets that tasks hold
//! - [`step_cache`]: indices of steps by their requests
//! - [`references`]: number of references to a Python object
//! - [`thread_state`]: Python's state of the worker thread
//!
//! A task is a generator, a coroutine or a greenlet behind a function `resume(value)`: it takes a response and returns
//! what the user does next. Nothing here waits, and the worker holds the GIL only within a call.

mod blocked;
pub(crate) mod call_schemas;
pub(crate) mod command;
mod program;
pub(crate) mod quick_request;
mod references;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod session;
mod shared_program;
mod socket_calls;
mod step_cache;
mod stream_calls;
mod task_requests;
pub(crate) mod task_socket;
pub(crate) mod task_stream;
mod thread;
mod thread_state;
mod user;
