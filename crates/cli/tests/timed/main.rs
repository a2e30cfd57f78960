//! Several `weir send` that share a Redis server, within a bound on delays: a program of its own, since the work of other
//! tests beside it would exceed the bound.

mod send_redis;
mod send_redis_clock;
mod send_redis_durability;
mod send_redis_network;
mod send_redis_takeover;
mod setting;
