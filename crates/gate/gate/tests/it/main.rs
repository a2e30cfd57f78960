//! The gateway as a library: configurations, and bytes on its connections.

mod dns_seeds;
mod gate_config;
mod gate_culprits;
mod gate_direct;
mod gate_doubt;
mod gate_otlp;
mod gate_share_tokens;
mod gate_tokens;
mod started;
