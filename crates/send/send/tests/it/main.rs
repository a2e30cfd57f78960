//! Stores and senders as a library.

mod send_crash;
mod send_sender;
mod send_store;
