//! Access logs: what the tests of the crate check of damaged ones.

#[path = "../../../crates/load/replay/tests/it/log_check.rs"]
mod log_check;

crate::target!(|bytes: &[u8]| {
    log_check::check(bytes);
});
