//! Users of a load that a script of k6 drives.
//!
//! - [`k6_program`]: what a load has; [`thread`]: the users of one thread: events in, actions out
//! - [`user`]: one of them; [`life`]: what runs on its stack; [`exchange`]: a request on its way
//! - [`sends`]: what users send; [`sockets`]: WebSockets; [`call_streams`], [`call_origins`]: calls of gRPC
//! - [`own_thread`]: values that do not leave their thread; [`path_name`]: names of steps; [`request_rate`]: `rps`

mod call_origins;
mod call_streams;
mod exchange;
mod iteration_ends;
mod k6_program;
pub(crate) mod life;
mod own_thread;
mod path_name;
mod request_rate;
mod sends;
mod sockets;
mod thread;
mod user;

pub(crate) use self::k6_program::{K6Program, ProgramParts};
