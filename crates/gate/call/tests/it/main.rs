//! Calls over real sockets.

mod call_again;
mod call_cancel;
mod call_direct;
mod call_examples;
mod call_hosts;
mod call_http2;
mod call_leaks;
mod call_success;
mod call_told;
mod calling;
