//! The gateway as a library: configurations, and bytes on its connections.

mod gate_config;
mod gate_doubt;
mod gate_otlp;
