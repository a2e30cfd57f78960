//! A Redis server, as those need it who keep something there: its address, a connection, what it says.
//!
//! What lies there, and which scripts are run, is the affair of each room that stands on it.

mod address;
mod info;
mod reply;
#[cfg(test)]
#[path = "../../tests/support/redis.rs"]
pub(crate) mod server;

use ::redis::RedisError;

pub use self::address::{Address, NoConnection};
pub use self::info::{field, info};
pub use self::reply::{Replies, Reply};

/// What went wrong, in one line.
pub fn words(error: &RedisError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
