//! Lua scripts with the interface of wrk as users of a load.
//!
//! - [`ScriptSource`]: the script, and the request options of its command line
//! - [`LuaScript`]: the script, ready for a load: it is loaded and checked before anything is sent, drives the users
//!   ([`UserProgram`](weir_load::program::UserProgram)), and gets the result
//! - [`LuaLoad`]: a load with a script, in the process of a [`LuaRole`]
//! - `vm`: one interpreter, with the table `wrk`; `api.lua` is its part in Lua
//! - `user_thread`: the users of one worker thread; `pipeline`: requests in one string
//! - `thread_handle`, `address`, `transfer`: `thread`, addresses, and values between interpreters
//! - `statistics`: what `done` gets
//! - `watchdog`, `interrupt`: the end of calls that take too long
//!
//! As in wrk, there is one interpreter for each thread and one for `setup` and `done`. Nothing keeps a script from
//! files and the network: it is a program of the person who starts the load.

mod address;
mod failure;
mod interrupt;
mod lua_load;
mod pipeline;
mod script;
mod source;
mod statistics;
mod thread_handle;
mod transfer;
mod user_thread;
mod vm;
mod watchdog;

pub use self::lua_load::{LuaLoad, LuaRole};
pub use self::script::{LuaScript, ScriptThreads};
pub use self::source::{ScriptErrors, ScriptSource};
