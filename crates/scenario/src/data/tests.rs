//! Tests of data and think time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
