//! Requests of HTTP/1 in a row over one connection, in whatever pieces they come.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use weir_net::client::response::{HeadParser, ResponseContext};
use weir_server::{AccessLogOptions, Options};
use weir_testing::{Raw, until};

use crate::server_room::{connect, start};

const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Debug)]
struct Asked {
    path: &'static str,
    method: &'static str,
    body: Vec<u8>,
    is_chunked: bool,
    /// Size of a chunk.
    chunk: usize,
    expects_continue: bool,
}

impl Asked {
    fn bytes(&self, is_last: bool) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\nHost: test\r\n", self.method, self.path);
        if self.expects_continue {
            head += "Expect: 100-continue\r\n";
        }
        if is_last {
            head += "Connection: close\r\n";
        }
        if !self.is_chunked {
            return [format!("{head}Content-Length: {}\r\n\r\n", self.body.len()).as_bytes(), &self.body].concat();
        }
        let mut bytes = format!("{head}Transfer-Encoding: chunked\r\n\r\n").into_bytes();
        for chunk in self.body.chunks(self.chunk) {
            bytes.extend_from_slice(format!("{:x};a=b\r\n", chunk.len()).as_bytes());
            bytes.extend_from_slice(chunk);
            bytes.extend_from_slice(b"\r\n");
        }
        bytes.extend_from_slice(b"0\r\nX-Trailer: 1\r\n\r\n");
        bytes
    }

    /// Body of the response.
    fn expected(&self) -> Vec<u8> {
        match self.path {
            "/echo" => self.body.clone(),
            "/sum" => {
                let sum: u64 = self.body.iter().map(|b| u64::from(*b)).sum();
                format!("{} {} {sum}", self.method, self.body.len()).into_bytes()
            }
            _ => panic!("{self:?}"),
        }
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let body = (0..6_000_usize, any::<u8>())
        .prop_map(|(length, first)| (0..length).map(|k| first.wrapping_add(k as u8)).collect::<Vec<u8>>());
    let path = prop_oneof![Just("/echo"), Just("/sum")];
    let method = prop_oneof![Just("POST"), Just("PUT"), Just("GET")];
    (path, method, body, any::<bool>(), 1..3_000_usize, any::<bool>()).prop_map(
        |(path, method, body, is_chunked, chunk, expects_continue)| Asked {
            path,
            method,
            body,
            is_chunked,
            chunk,
            expects_continue,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn each_request_has_its_response_in_order(
        requests in proptest::collection::vec(asked(), 1..6),
        pieces in proptest::collection::vec(1..4_000_usize, 1..8),
    ) {
        let (_, running) = start(&Options::default());
        let mut client = connect(&running);
        let last = requests.len() - 1;
        let stream: Vec<u8> =
            requests.iter().enumerate().flat_map(|(number, request)| request.bytes(number == last)).collect();
        let mut rest = &stream[..];
        for size in pieces.iter().cycle() {
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            client.send(piece);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let received = client.rest();
        let mut at = 0;
        for request in &requests {
            // It passes over what tells the client to send a body.
            let head = HeadParser::new(ResponseContext::default()).push(&received[at..]).unwrap();
            let (mut head, length) = head.unwrap();
            let body = head.body.push(&received[at + length..]).unwrap();
            prop_assert_eq!(head.status, 200);
            prop_assert!(head.body.is_ended());
            prop_assert!(body.data == request.expected(), "{:?}", request.path);
            at += length + body.used;
        }
        prop_assert_eq!(at, received.len());
    }
}

#[test]
fn a_long_body_is_echoed_while_it_comes() {
    let (_, running) = start(&Options::default());
    let body: Vec<u8> = (0..3_000_000_u32).map(|k| (k / 7) as u8).collect();
    let mut sender = TcpStream::connect(running.address()).unwrap();
    let mut client = Raw::on(sender.try_clone().unwrap());
    let upload = body.clone();
    let sending = thread::spawn(move || {
        write!(sender, "POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", upload.len()).unwrap();
        sender.write_all(&upload).unwrap();
        sender.write_all(b"GET /0 HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    });
    let answer = client.answer();
    sending.join().unwrap();
    assert!(answer.body == body);
    assert_eq!(client.answer().text(), "after 0 ms");
}

#[test]
fn a_body_that_nobody_reads_is_skipped_if_it_is_there() {
    let (service, running) = start(&Options::default());
    let mut client = connect(&running);
    let after = "GET /0 HTTP/1.1\r\nHost: test\r\n\r\n";
    client.send(format!("POST /ignore HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\n\r\nhello{after}"));
    assert_eq!(client.answer().text(), "ignored");
    assert_eq!(client.answer().text(), "after 0 ms");
    client.send(format!(
        "POST /ignore HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n{after}"
    ));
    assert_eq!(client.answer().text(), "ignored");
    assert_eq!(client.answer().text(), "after 0 ms");
    assert_eq!(service.begun.load(Ordering::SeqCst), 4);
    // What is not there is not waited for: the rest would be taken for a request.
    client.send("POST /ignore HTTP/1.1\r\nHost: test\r\nContent-Length: 99\r\n\r\nhello");
    assert_eq!(client.answer().text(), "ignored");
    assert_eq!(client.rest(), b"");
}

#[test]
fn trailers_reach_the_service_however_they_come() {
    let (_, running) = start(&Options::default());
    let mut client = connect(&running);
    let head = "POST /trailers HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
    let body = "2\r\nab\r\n0\r\nX-Sum: 3\r\n\r\n";
    for cut in 0..=body.len() {
        client.send([head, &body[..cut]].concat());
        client.send(&body[cut..]);
        assert_eq!(client.answer().text(), "b\"ab\" Some(\"{\\\"x-sum\\\": \\\"3\\\"}\")", "{cut}");
    }
    client.send(format!("{head}0\r\nX-Sum: 3\r\n\r\n{head}0\r\n\r\n"));
    assert_eq!(client.answer().text(), "b\"\" Some(\"{\\\"x-sum\\\": \\\"3\\\"}\")");
    assert_eq!(client.answer().text(), "b\"\" None");
}

#[test]
fn empty_lines_before_a_request_are_passed_over() {
    let (_, running) = start(&Options::default());
    let mut client = connect(&running);
    for _ in 0..1000 {
        client.send("\r");
        client.send("\n");
    }
    for piece in ["\r\n\nGET", " /0 HTTP/1.1\r", "\nHost: test\r\n", "\r", "\n"] {
        client.send(piece);
    }
    assert_eq!(client.answer().text(), "after 0 ms");
}

#[test]
fn a_client_is_told_to_send_a_body_only_if_it_is_read() {
    let (_, running) = start(&Options::default());
    let mut client = connect(&running);
    let head =
        |path: &str| format!("POST {path} HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    client.send(head("/sum"));
    assert_eq!(client.head().status, 100);
    client.send("\u{1}\u{2}");
    assert_eq!(client.answer().text(), "POST 2 3");
    client.send(head("/ignore"));
    assert_eq!(client.answer().text(), "ignored");
    assert_eq!(client.rest(), b"", "whether the body comes is not known");
}

#[test]
fn a_client_that_leaves_at_once_is_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let log = AccessLogOptions::json(path.clone());
    let (service, running) = start(&Options { access_log: Some(log), ..Options::default() });
    for _ in 0..20 {
        connect(&running).send("GET /60000 HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    until("their end", PATIENCE, || service.given_up.load(Ordering::SeqCst) == 20);
    running.stop(Duration::ZERO);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains("\"client_closed\":true")).count(), 20, "{text}");
}
