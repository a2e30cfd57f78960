//! The server framework over real sockets.

mod http1;
mod server_room;
