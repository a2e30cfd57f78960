//! The server framework over real sockets.

mod server_room;
