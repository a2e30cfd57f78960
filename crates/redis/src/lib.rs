//! Redis client parts shared by the job store and the cluster limits: address, connection, replies.
//!
//! Keys and scripts belong to the modules that use them.

mod address;
mod info;
mod reply;

use ::redis::RedisError;
use ring::rand::{SecureRandom, SystemRandom};

pub use self::address::{RedisAddress, RedisConnectError, parse_flag};
pub use self::info::{field, info};
pub use self::reply::{RedisValue, RedisValues};

/// Unique name of a client of the server; None if the system has no random numbers.
pub fn unique_name() -> Option<String> {
    let mut random = [0; 6];
    SystemRandom::new().fill(&mut random).ok()?;
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("{}-{random}", std::process::id()))
}

/// Error in one line.
pub fn error_line(error: &RedisError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
