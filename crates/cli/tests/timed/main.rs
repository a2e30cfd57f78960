//! What judges times and waits for most of its own: several `weir send` that share a Redis server, within a bound on
//! delays, searches for loads, and recoveries of services. A program of its own, since the work of other tests beside it
//! would change these times.

mod capacity_recovery;
mod capacity_searches;
mod recovery_setting;
mod send_redis;
mod send_redis_clock;
mod send_redis_durability;
mod send_redis_network;
mod send_redis_takeover;
mod setting;
