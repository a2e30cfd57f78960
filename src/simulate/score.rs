//! Which limiter is ahead of which.
