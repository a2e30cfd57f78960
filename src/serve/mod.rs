//! Services that misbehave on purpose: public, documented, seeded.

pub mod answers;
pub mod body;
