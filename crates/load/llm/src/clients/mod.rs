//! Composition of clients: each has its own rate over time, burstiness, lengths, and share of conversations.
//!
//! - [`ClientMix`]: clients of a file, in TOML; `client_table`: one of them; [`LoadClient`]: the same checked
//! - [`ClientArrivals`]: arrivals of all clients, in the order of time
//! - [`ClientSessions`]: sessions as they are sent
//!
//! A model server's load is the sum of a few busy clients and many quiet ones, each with a rhythm of its own (ServeGen,
//! NSDI 2026): one rate with one distribution has the same mean, and neither its bursts nor its lengths. What a client
//! sends is a function of the seed and its name: other clients of the file change nothing of it.

mod client_arrivals;
mod client_mix;
mod client_sessions;
mod client_table;
mod load_client;

#[cfg(test)]
mod tests;

pub use self::client_arrivals::{ClientArrival, ClientArrivals};
pub use self::client_mix::ClientMix;
pub use self::client_sessions::ClientSessions;
pub use self::load_client::LoadClient;
