//! Bodies of scenarios: large ones that never change are shared by all requests, and arrive whole.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use weir_testing::{Reply, Server, Weir};

/// Body of which each part is different.
fn body(length: usize) -> Vec<u8> {
    (0..length as u32 / 4).flat_map(|number| (number ^ 0x5EED_0000).to_le_bytes()).collect()
}

#[test]
fn large_files_arrive_whole_at_slow_services_and_after_redirects() {
    let (large, small) = (body(3 << 20), body(1 << 10));
    let server = Server::build().reads_every(Duration::from_micros(100)).start(|seen| match seen.line() {
        line if line.contains("/moved") => {
            Reply::raw("HTTP/1.1 307 Moved\r\nLocation: /here\r\nContent-Length: 0\r\n\r\n")
        }
        _ => Reply::ok("kept"),
    });
    let folder = Weir::new();
    folder.write("large.bin", &large);
    folder.write("small.bin", &small);
    folder.write(
        "upload.hurl",
        "POST {{host}}/moved\n[Options]\nlocation: true\nfile,large.bin;\nHTTP 200\n\n\
         PUT {{host}}/large\nX-Number: {{seq}}\nfile,large.bin;\nHTTP 200\n\n\
         PUT {{host}}/small\nfile,small.bin;\nHTTP 200\n",
    );
    let host = format!("host={}", server.url(""));
    let run = folder
        .run(&["load", "-s", "upload.hurl", "--variable", &host, "-c", "3", "-n", "6", "--format", "json"])
        .json();
    assert_eq!((run.requests.total, run.requests.failed), (24, 0), "{:?}", run.failures);
    let bodies = 6 * (3 * large.len() + small.len()) as u64;
    assert!((bodies..bodies + 24 * 1000).contains(&run.bytes.written), "{} of {bodies}", run.bytes.written);
    for seen in server.seen() {
        let sent = if seen.line().contains("/small") { &small } else { &large };
        assert!(seen.body == *sent, "{}: {} bytes", seen.line(), seen.body.len());
    }
}
