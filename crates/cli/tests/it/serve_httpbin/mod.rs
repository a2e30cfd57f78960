//! `weir serve httpbin` from outside: its routes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the client's end of a test has a clock of its own")]

mod bodies;
mod orders;
mod routes;
/// What the service makes bodies of.
fn page(bytes: usize) -> Vec<u8> {
    let line = b"weir: sixty-four bytes of a body that is the same in every line\n";
    line.iter().copied().cycle().take(bytes).collect()
}
