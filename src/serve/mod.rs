//! Services that misbehave on purpose: public, documented, seeded.

pub mod answers;
pub mod body;
pub mod exchange;
pub mod functions;
pub mod pool;
pub mod sleep;
pub mod work;
