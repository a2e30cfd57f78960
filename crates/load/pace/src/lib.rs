//! PURE. Load generation: which request starts when, and by whom.
//!
//! - [`schedule`]: intended starts of the arrivals of an open loop
//! - [`users`]: starts of the users of a closed loop
//! - [`notation`]: notation of stages and arrival processes
//! - [`source`]: the request of an arrival
//! - [`shard`]: division of a load among agents and threads
//! - [`clock_offset`]: offset between two machines' clocks
//! - [`arrival_queue`]: arrivals that come from somewhere else, such as a log
//! - [`user_stages`]: number of users of a closed loop over time
//! - [`scenario_pace`]: iterations of one of several scenarios
//! - [`live_load`]: changes of a load that runs, as stages
//! - [`feed`]: what a free connection sends now

pub mod arrival_queue;
pub mod clock_offset;
pub mod feed;
pub mod live_load;
pub mod notation;
pub mod scenario_pace;
pub mod schedule;
pub mod shard;
pub mod source;
pub mod user_stages;
pub mod users;
