//! Request smuggling: whatever a caller writes, a backend gets at most the requests that the gateway has seen, each
//! framed in one way only.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod cases;
mod strict;

use weir_testing::{Raw, Serving};

use self::cases::{HIDDEN, all};
use self::strict::{StrictBackend, parse};

#[test]
fn the_strict_reader_sees_what_is_ambiguous() {
    let whole = "POST / HTTP/1.1\r\nA: b\r\nContent-Length: 2\r\n\r\nxx";
    assert_eq!(parse(whole.as_bytes()), Ok(Some(("POST / HTTP/1.1".to_owned(), whole.len()))));
    assert_eq!(parse(&whole.as_bytes()[..whole.len() - 1]), Ok(None));
    let whole = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxx\r\n0\r\nA: b\r\n\r\n";
    assert_eq!(parse(whole.as_bytes()), Ok(Some(("POST / HTTP/1.1".to_owned(), whole.len()))));
    for text in [
        "POST / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 2, 2\r\n\r\n",
        "POST / HTTP/1.1\r\nA: b\nC: d\r\n\r\n",
        "POST / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2;x\r\nxx\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxx\r\n0\r\n\r\n",
        "POST / HTTP/1.0\r\n\r\n",
    ] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
}

/// Sends a case, and a further request for `after` behind it; returns what the backend has got.
fn tried(gate: &Serving, backend: &StrictBackend, case: &[u8], pieces: usize, after: &str) -> (Vec<String>, Vec<u16>) {
    let mut client = Raw::connect(&gate.address);
    for piece in case.chunks(case.len().div_ceil(pieces)) {
        // It may be closed by then.
        let _ = client.try_send(piece);
    }
    let _ = client.try_send(format!("GET {after} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
    client.finish();
    let text = String::from_utf8_lossy(&client.rest()).into_owned();
    let statuses = text.split("HTTP/1.1 ").skip(1).filter_map(|rest| rest.get(..3)?.parse().ok()).collect();
    let record = backend.take();
    assert_eq!(record.violations, [""; 0], "{}", String::from_utf8_lossy(case));
    (record.lines, statuses)
}

#[test]
fn no_request_is_hidden_in_another() {
    let backend = StrictBackend::start();
    let gate = Serving::gate(&["--upstream", &backend.url]);
    let cases = all();
    assert!(cases.len() > 150, "{}", cases.len());
    let mut wrong = Vec::new();
    for (number, (name, case)) in cases.iter().enumerate() {
        for pieces in [1, 3] {
            let after = format!("/after-{number}-{pieces}");
            let (mut lines, statuses) = tried(&gate, &backend, case, pieces, &after);
            // The last request of a client that has left may reach the backend late.
            lines.retain(|line| !line.contains(" /after-") || line.contains(&format!(" {after} ")));
            let is_known = |line: &String| line.contains(" /case") || line.contains(" /after-") || line.contains(" * ");
            let count = |path: &str| lines.iter().filter(|line| line.contains(path)).count();
            if !lines.iter().all(is_known)
                || count(" /case") > 1
                || count(" /after-") > 1
                || lines.len() > statuses.len() + 1
            {
                wrong.push(format!("{name}: {lines:?} {statuses:?}"));
            }
        }
    }
    // A request that was let through late would be here.
    assert_eq!(gate.get("/end").text(), "ok");
    let mut late = backend.take();
    late.lines.retain(|line| !line.contains(" /after-"));
    assert_eq!((late.lines.len(), late.violations.len()), (1, 0), "{late:?}");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
    assert!(HIDDEN.contains("/smuggled"));
    assert_eq!(gate.stop().code, 0);
}
