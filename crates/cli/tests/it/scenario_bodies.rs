//! Bodies of scenarios: large ones that never change are shared by all requests, and arrive whole.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
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

#[test]
fn a_body_that_is_too_large_to_look_into_is_a_failure_and_takes_no_memory() {
    let part = vec![b'x'; 1 << 20];
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    (0..100).for_each(|_| gzip.write_all(&part).unwrap());
    let bomb = gzip.finish().unwrap();
    let large =
        [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 66 << 20).into_bytes(), part.repeat(66)].concat();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", bomb.len());
    let bomb = [head.into_bytes(), bomb].concat();
    for (reply, kind, reason) in
        [(large, "body", "the body is larger than 64 MiB"), (bomb, "check", "its content is larger than 64 MiB")]
    {
        let reply = Reply::raw(&reply);
        let server = Server::start(move |_| reply.clone());
        let folder = Weir::new();
        let flags = ["-n", "2", "-c", "2", "--check", "body contains \"y\"", "--format", "json"];
        let output = folder.run(&[&["load", &server.url("/")], &flags[..]].concat());
        let run = output.json();
        assert_eq!((run.requests.failed, run.failures.get(kind)), (2, Some(&2)), "{:?}", run.failures);
        assert!(output.stdout.contains(reason), "{kind}: {}", output.stdout);
    }
}
