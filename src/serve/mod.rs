//! Services that misbehave on purpose.
