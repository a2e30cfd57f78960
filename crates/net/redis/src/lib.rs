//! Redis client parts shared by the job store and the cluster limits: address, connection, replies.
//!
//! Keys and scripts belong to the modules that use them.

mod address;
#[cfg(feature = "client")]
mod connect;
#[cfg(feature = "client")]
mod info;
#[cfg(feature = "client")]
mod reply;

#[cfg(feature = "client")]
use ::redis::RedisError;
#[cfg(feature = "client")]
use ring::rand::{SecureRandom, SystemRandom};

pub use self::address::{RedisAddress, parse_flag};
#[cfg(feature = "client")]
pub use self::connect::RedisConnectError;
#[cfg(feature = "client")]
pub use self::info::{field, info};
#[cfg(feature = "client")]
pub use self::reply::{RedisValue, RedisValues};

/// Error for an address in a build without the feature `client`.
pub const LEFT_OUT: &str = "this build of weir has no Redis; build it with the feature redis";

/// Unique name of a client of the server; None if the system has no random numbers.
#[cfg(feature = "client")]
pub fn unique_name() -> Option<String> {
    let mut random = [0; 6];
    SystemRandom::new().fill(&mut random).ok()?;
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("{}-{random}", std::process::id()))
}

/// Error in one line.
#[cfg(feature = "client")]
pub fn error_line(error: &RedisError) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
