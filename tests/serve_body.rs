//! `weir serve body` from outside: its routes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use support::Serving;

#[test]
fn an_echo_is_what_was_sent() {
    let body = Serving::start(&["body"]);
    let answer = body.post("/echo", "hello");
    assert_eq!((answer.status, answer.text()), (200, "hello"));
}
