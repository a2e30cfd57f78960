//! Messages over WebSocket: what weir counts is what the service has counted, per message.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and has a clock"
)]

use serde_json::Value;
use weir_measure::Run;
use weir_measure::run::Requests;
use weir_measure::run_websocket::RunWebSocket;
use weir_testing::{Authority, Reply, Server, Serving, Weir, load};

pub(super) fn url(serving: &Serving, path: &str) -> String {
    format!("ws://{}{path}", serving.address)
}

pub(super) fn stats(serving: &Serving) -> Value {
    serving.get("/stats").json()
}

/// Run of a load of which no message succeeds.
pub(super) fn failed_load(url: &str, flags: &[&str]) -> Run {
    let output = Weir::new().run(&[&["load", url, "--format", "json"], flags].concat());
    assert_eq!(output.code, 3);
    output.json()
}

pub(super) fn websocket(run: &Run) -> &RunWebSocket {
    run.websocket.as_ref().unwrap()
}

pub(super) fn failures(run: &Run, kind: &str) -> u64 {
    run.failures.get(kind).copied().unwrap_or(0)
}

#[test]
fn a_closed_loop_has_a_reply_for_each_message_that_the_service_has_counted() {
    for (flags, serve, bytes_in) in [
        (&["-c", "4", "-n", "500"][..], &[][..], 2 + 8),
        (&["-c", "3", "-n", "500", "--pipeline", "7"], &[], 2 + 8),
        (&["-c", "4", "-n", "500", "--binary"], &["--fragments", "4", "--pings"], 4 * 2 + 8),
        (&["--users", "5", "--ramp-up", "50ms", "--loops", "100"], &["--delay", "100us"], 2 + 8),
        (&["-c", "5", "--ramp-up", "50ms", "-n", "500"], &[], 2 + 8),
    ] {
        let serving = Serving::start(&[&["ws"], serve].concat());
        let run = load(&url(&serving, "/echo"), &[flags, &["-b", "{\"id\":1}"]].concat());
        let stats = stats(&serving);
        assert_eq!((run.requests.ok, run.requests.failed), (500, 0), "{flags:?} {:?}", run.failures);
        assert_eq!((&stats["received"], &stats["sent"]), (&500.into(), &500.into()), "{flags:?}");
        assert_eq!(stats["received_bytes"], 4000);
        // A client's frame has a mask.
        assert_eq!((run.bytes.read, run.bytes.body_in, run.bytes.written), (500 * bytes_in, 4000, 500 * 14));
        assert_eq!(run.status["101"], 500);
        assert_eq!(run.target.url, url(&serving, "/echo"));
        assert_eq!(run.target.http.as_deref(), Some("WebSocket"));
        let websocket = websocket(&run);
        assert_eq!(websocket.upgraded, run.connections.opened);
        assert_eq!((websocket.unmatched, websocket.failed, websocket.violations), (0, 0, 0));
        assert!(websocket.closes.is_empty() && websocket.rejected.is_empty());
        // With the connection of the check before the load.
        assert_eq!(stats["closes"], serde_json::json!({ "1000": run.connections.opened + 1 }));
        assert_eq!(stats["violations"], serde_json::json!({}));
    }
}

#[test]
fn an_open_loop_sends_each_message_at_its_time_whether_or_not_replies_come() {
    // 40 messages at a time would need a reply before the next one on 2 connections that wait for replies.
    let serving = Serving::start(&["ws", "--delay", "200ms"]);
    let run = load(&url(&serving, "/echo"), &["-c", "2", "--rate", "200", "-d", "2s", "-b", "x"]);
    assert_eq!((run.requests.ok, run.requests.failed, run.requests.waited), (400, 0, 0), "{:?}", run.failures);
    assert_eq!(run.connections.opened, 2);
    assert!(run.response_ms.min.unwrap() >= 199.9, "{:?}", run.response_ms);
    assert!(run.in_flight_mean > 30.0, "{}", run.in_flight_mean);
    assert_eq!(stats(&serving)["received"], 400);
}

#[test]
fn a_limit_of_messages_in_flight_makes_later_ones_wait_and_counts_their_wait() {
    let serving = Serving::start(&["ws", "--delay", "100ms"]);
    let run = load(&url(&serving, "/"), &["-c", "1", "--rate", "20", "-d", "2s", "-b", "x", "--pipeline", "1"]);
    assert_eq!(run.requests.total, 40, "{:?}", run.failures);
    assert!(run.requests.waited > 10, "{:?}", run.requests);
    // Ten replies a second to twenty messages: the last one waits for two seconds.
    assert!(run.response_ms.max.unwrap() > 1500.0, "{:?}", run.response_ms);
    assert!(run.service_ms.p50.unwrap() < 1000.0, "{:?}", run.service_ms);
}

#[test]
fn messages_are_text_or_binary_and_chosen_by_weight() {
    let serving = Serving::start(&["ws"]);
    let weir = Weir::new();
    weir.write("frame.bin", [0xFF, 0]);
    let flags = ["-c", "1", "-n", "200", "-b", "four", "-b", "@frame.bin", "--weights", "3,1"];
    let run = weir.load(&url(&serving, "/"), &flags);
    let received = stats(&serving)["received_bytes"].as_u64().unwrap();
    let fours = (received - 400) / 2;
    assert!((120..180).contains(&fours), "{fours}");
    assert_eq!(run.requests.ok, 200);
}

#[test]
fn faults_are_counted_as_the_service_has_made_them() {
    let faults = ["--cut", "5%", "--close", "5%", "--close-code", "4001", "--reject", "10%", "--seed", "3"];
    let serving = Serving::start(&[&["ws"], &faults[..]].concat());
    let run = load(&url(&serving, "/echo"), &["-c", "4", "-n", "400", "-b", "hello"]);
    let (stats, websocket) = (stats(&serving), websocket(&run));
    assert_eq!(run.requests.total, 400);
    let closes = |code: &str| websocket.closes.get(code).copied().unwrap_or(0);
    assert!(closes("1006") > 5 && closes("4001") > 5, "{websocket:?}");
    // Each fault has cost the one message that caused it.
    assert_eq!(failures(&run, "closed"), closes("1006") + closes("4001"), "{:?} {websocket:?}", run.failures);
    assert_eq!(run.requests.ok, stats["sent"].as_u64().unwrap());
    let rejected = websocket.rejected.get("503").copied().unwrap_or(0);
    // The check before the load is rejected as well, or upgraded.
    let of_service = stats["rejected"].as_u64().unwrap();
    assert!(rejected > 0 && of_service - rejected <= 1, "{websocket:?} {stats}");
    assert!(run.status.get("503").copied().unwrap_or(0) <= rejected);
    let why = &run.target.failure_details["closed"];
    assert!(why.contains("4001 (on purpose)") || why.contains("without a close frame"), "{why}");
}

#[test]
fn a_lost_connection_of_an_open_loop_is_made_anew_and_its_messages_have_failed() {
    let serving = Serving::start(&["ws", "--close", "10%"]);
    let run = load(&url(&serving, "/echo"), &["-c", "3", "--rate", "200", "-d", "2s", "-b", "hello"]);
    let (stats, websocket) = (stats(&serving), websocket(&run));
    assert_eq!(run.requests.total, 400);
    assert!(websocket.closes["1011"] > 5, "{websocket:?}");
    assert!(failures(&run, "closed") >= websocket.closes["1011"], "{:?}", run.failures);
    // Of each user one may be on its way when the last message has its reply.
    assert!(run.connections.opened - websocket.upgraded <= 3, "{websocket:?} {:?}", run.connections);
    assert_eq!(run.requests.ok, stats["sent"].as_u64().unwrap(), "{:?}", run.failures);
    let why = "the service closed the connection: 1011 internal error (on purpose)";
    assert_eq!(run.target.failure_details["closed"], why);
}

#[test]
fn messages_whose_last_connection_is_lost_before_the_end_go_to_new_ones_behind_it() {
    let serving = Serving::start(&["ws", "--close", "100%"]);
    // The first message costs the connection, and the next one is made 100 ms later: behind the end.
    let run = failed_load(&url(&serving, "/echo"), &["-c", "1", "--rate", "1000", "-d", "50ms", "-b", "hello"]);
    let Requests { total, ok, dropped, .. } = run.requests;
    assert_eq!((total, ok, dropped), (50, 0, 0), "{:?}", run.failures);
}

#[test]
fn a_message_without_a_reply_times_out_with_its_connection() {
    let serving = Serving::start(&["ws"]);
    let run = failed_load(&url(&serving, "/silent"), &["-c", "2", "-n", "4", "-b", "x", "--timeout", "5s"]);
    assert_eq!((failures(&run, "timeout"), run.requests.failed), (4, 4));
    assert!(run.failed_ms.min.unwrap() >= 4999.0, "{:?}", run.failed_ms);
    assert_eq!(run.connections.opened, 4);
}

#[test]
fn messages_that_nothing_has_asked_for_are_counted_and_are_not_replies() {
    let serving = Serving::start(&["ws", "--gap", "20ms"]);
    let run = load(&url(&serving, "/push"), &["-c", "1", "--rate", "10", "-d", "1s", "-b", "x", "--timeout", "30s"]);
    // A pushed message between a message and the next is taken for its reply: without IDs nothing tells them apart.
    assert_eq!(run.requests.ok, 10, "{:?}", run.failures);
    assert!(websocket(&run).unmatched > 10, "{:?}", websocket(&run));
}

#[test]
fn a_hostile_reply_is_a_failure_with_what_is_wrong() {
    let serving = Serving::start(&["ws"]);
    for (name, kind, why) in [
        ("masked", "protocol", "a masked frame from a server"),
        ("length", "protocol", "a frame length with the highest bit set"),
        ("long-length", "protocol", "a frame whose length 2 is written in too many bytes"),
        ("utf8", "protocol", "a text message that is not UTF-8"),
        ("reserved", "protocol", "a frame with a reserved bit that no extension uses"),
        ("opcode", "protocol", "a frame with the reserved opcode 3"),
        ("control", "protocol", "a control frame of 126 bytes, above 125"),
        ("fragmented-control", "protocol", "a control frame in fragments"),
        ("interrupted", "protocol", "a new message within the fragments of another one"),
        ("orphan", "protocol", "a continuation frame without a message"),
        ("close-code", "protocol", "a close frame with the invalid code 1005"),
        ("after-close", "closed", "the service closed the connection: 1000 normal closure"),
        ("close-race", "closed", "the service closed the connection: 1001 going away"),
        ("half", "closed", "the connection ended without a close frame"),
    ] {
        let run = failed_load(&url(&serving, &format!("/hostile/{name}")), &["-c", "2", "-n", "6", "-b", "go"]);
        assert_eq!((run.requests.failed, failures(&run, kind)), (6, 6), "{name} {:?}", run.failures);
        assert_eq!(run.target.failure_details[kind], why, "{name}");
        let violations = if kind == "protocol" { 6 } else { 0 };
        assert_eq!(websocket(&run).violations, violations, "{name}");
    }
}

#[test]
fn a_subprotocol_is_offered_and_has_to_be_selected() {
    let serving = Serving::start(&["ws", "--subprotocol", "chat.v2"]);
    let offers = ["--subprotocol", "chat.v3", "--subprotocol", "chat.v2"];
    let run = load(&url(&serving, "/"), &[&["-c", "1", "-n", "5", "-b", "x"], &offers[..]].concat());
    assert_eq!(run.requests.ok, 5);
    let output = Weir::new().run(&["load", &url(&serving, "/"), "-b", "x", "-n", "1", "--subprotocol", "other"]);
    assert_eq!(output.code, 2);
    let expected = format!(
        "no WebSocket at {}: no subprotocol selected of those offered (other); offer one that it supports with \
         --subprotocol, or leave it out",
        url(&serving, "/")
    );
    assert_eq!(output.one_line(), expected);
}

#[test]
fn a_service_without_websocket_is_one_line_with_the_remedy() {
    let serving = Serving::start(&["httpbin"]);
    for (path, words) in [
        ("/static", "status 200 in place of 101 to the WebSocket upgrade; it responds as HTTP; is there a WebSocket"),
        ("/status/404", "status 404 in place of 101 to the WebSocket upgrade; is there a WebSocket at this path?"),
        ("/status/401", "status 401 in place of 101 to the WebSocket upgrade; give credentials with -a or -H"),
    ] {
        let output = Weir::new().run(&["load", &url(&serving, path), "-b", "x", "-n", "1"]);
        assert_eq!(output.code, 2);
        assert!(output.one_line().contains(words), "{}", output.one_line());
    }
    let wrong = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n";
    for (head, words) in [
        (wrong, "a wrong Sec-WebSocket-Accept: the response is not to this request; is a proxy between"),
        ("HTTP/1.1 101 OK\r\n\r\n", "a 101 without 'Upgrade: websocket' and 'Connection: Upgrade'; is a proxy between"),
        ("SSH-2.0-x\r\n", "a response to the upgrade that is not HTTP/1.1"),
        ("", "the connection was closed before a response to the upgrade"),
    ] {
        let server = Server::start(move |_| Reply::raw(head).close());
        let output = Weir::new().run(&["load", &server.url("/").replace("http", "ws"), "-b", "x", "-n", "1"]);
        assert_eq!(output.code, 2, "{head}");
        assert!(output.one_line().contains(words), "{}", output.one_line());
    }
}

#[test]
fn a_search_needs_messages() {
    let output = Weir::new().run(&["capacity", "ws://127.0.0.1:9/", "--listen", "--slo", "p99<1s"]);
    assert_eq!(
        (output.code, output.one_line()),
        (2, "--listen cannot be used with weir capacity; a connection that listens lasts as long as its load")
    );
}

#[test]
fn what_does_not_go_with_websocket_is_named() {
    for (args, words) in [
        (&["ws://127.0.0.1:9/"][..], "a ws:// URL needs a message; write e.g. -b"),
        (&["http://h/", "--binary"], "--binary: it is for WebSocket; write a ws:// or wss:// URL"),
        (&["http://h/", "--subprotocol", "x"], "--subprotocol: it is for WebSocket"),
        (
            &["ws://127.0.0.1:9/", "-b", "x", "-m", "PUT"],
            "--method cannot be used with a ws:// URL; an upgrade is a GET",
        ),
        (&["ws://127.0.0.1:9/", "-b", "x", "--no-keepalive"], "--no-keepalive cannot be used with a ws:// URL"),
        (&["wss://127.0.0.1:9/", "-b", "x", "--http2"], "--http2 and --h2c cannot be used with a ws:// URL"),
        (&["ws://127.0.0.1:9/", "-b", "x", "--stream"], "--stream cannot be used with a ws:// URL"),
        (&["ws://127.0.0.1:9/", "-b", "x", "--check", "status == 101"], "--check cannot be used with a ws:// URL"),
        (
            &["ws://127.0.0.1:9/", "-b", "x", "-H", "Sec-WebSocket-Key: x"],
            "'Sec-WebSocket-Key' is set by WebSocket itself; leave it out",
        ),
        (&["ws://127.0.0.1:9/", "-b", "x", "-H", "Sec-WebSocket-Protocol: x"], "write subprotocols with --subprotocol"),
        (&["ws://127.0.0.1:9/", "-b", "x", "--subprotocol", "a b"], "invalid subprotocol 'a b'"),
        (&["ws://127.0.0.1:9/", "-b", "{{x}}"], "-b '{{x}}': expected a variable that is defined before, found 'x'"),
        (
            &["ws://127.0.0.1:9/{{x}}", "-b", "x"],
            "templates {{ work in messages; a ws:// URL and its headers have none",
        ),
        (
            &["ws://127.0.0.1:9/", "-b", "x", "--reply", "$.*"],
            "--reply: invalid query '$.*': it has more than one value",
        ),
        (&["ws://127.0.0.1:9/", "-b", "x", "--reply", "$.id"], "--reply: the message 'x' has no such value"),
        (
            &["ws://127.0.0.1:9/", "-b", "x", "--listen"],
            "--listen sends no messages; to begin each connection with a message, write --first-message",
        ),
        (&["ws://127.0.0.1:9/", "--listen", "--rate", "5"], "--listen is a closed loop of connections"),
        (&["ws://127.0.0.1:9/", "--listen", "--warmup", "1s"], "--warmup and --listen cannot be combined"),
        (&["ws://127.0.0.1:9/", "-b", "x", "--ping-interval", "0s"], "--ping-interval: invalid time 0; write e.g. 10s"),
        (&["http://h/", "--listen"], "--listen: it is for WebSocket; write a ws:// or wss:// URL"),
        (&["ws://127.0.0.1:9/", "-b", "x", "--first-replies", "2"], "--first-replies needs --first-message"),
        (&["ws://127.0.0.1:9/", "-b", "x", "-s", "a.hurl"], "cannot read"),
    ] {
        let output = Weir::new().run(&[&["load"], args].concat());
        assert_eq!(output.code, 2, "{args:?}");
        assert!(output.one_line().contains(words), "{args:?}: {}", output.one_line());
    }
}

#[test]
fn replies_are_matched_by_a_value_of_their_json_whatever_their_order() {
    let serving = Serving::start(&["ws", "--delay", "1ms..40ms", "--unordered", "--ignore", "5%", "--seed", "5"]);
    let message = "{\"n\":1,\"id\":\"{{seq}}-{{newUuid}}\"}";
    let flags = ["-c", "3", "--rate", "200", "-d", "2s", "-q", "--timeout", "5s", "--reply", "jsonpath \"$.id\""];
    let run = load(&url(&serving, "/"), &[&flags[..], &["-b", message]].concat());
    let stats = stats(&serving);
    assert_eq!((run.requests.total, stats["received"].as_u64()), (400, Some(400)));
    // What has no reply fails alone: its connection goes on.
    assert_eq!((run.requests.ok, run.connections.opened), (stats["sent"].as_u64().unwrap(), 3), "{:?}", run.failures);
    assert_eq!(failures(&run, "timeout"), 400 - run.requests.ok);
    assert!(failures(&run, "timeout") > 5, "{:?}", run.failures);
    // Each reply has its own delay: in order the shortest would wait for the longest. A busy machine adds to all of them.
    let (least, most) = (run.service_ms.min.unwrap(), run.service_ms.max.unwrap());
    assert!(least < most / 2.0 && most >= 30.0, "{:?}", run.service_ms);
    assert_eq!(websocket(&run).unmatched, 0);
    assert_eq!(run.target.failure_details["timeout"], "no reply within 5s");
}

#[test]
fn messages_have_templates_and_rows_of_data() {
    let serving = Serving::start(&["ws"]);
    let weir = Weir::new();
    weir.write("users.csv", "name,age\nAnna,7\nBob,12345\n");
    let flags = ["-c", "1", "-n", "10", "-b", "{{greeting}} {{name}} {{age}}", "--data", "users.csv"];
    let run = weir.load(&url(&serving, "/"), &[&flags[..], &["--variable", "greeting=Hi"]].concat());
    assert_eq!(run.requests.ok, 10);
    // "Hi Anna 7" and "Hi Bob 12345", five times each.
    assert_eq!(stats(&serving)["received_bytes"], 5 * (9 + 12));
    let flags = ["-c", "1", "-b", "{{name}}", "--data", "users.csv", "--data-order", "unique"];
    let run = weir.load(&url(&serving, "/"), &flags);
    assert_eq!(run.requests.ok, 2, "each row once");
}

#[test]
fn a_message_that_cannot_be_rendered_is_a_failure_and_others_go_on() {
    let serving = Serving::start(&["ws"]);
    let weir = Weir::new();
    weir.write("rows.jsonl", "{\"n\":\"12\"}\n{\"n\":\"no number\"}\n");
    let flags = ["-c", "1", "-n", "6", "-b", "{{n toInt}}", "--data", "rows.jsonl"];
    let run = weir.load(&url(&serving, "/"), &flags);
    assert_eq!((run.requests.ok, failures(&run, "request")), (3, 3), "{:?}", run.target.failure_details);
    assert_eq!(stats(&serving)["received"], 3);
}

#[test]
fn a_gate_relays_the_messages() {
    let serving = Serving::start(&["ws"]);
    let gate = Serving::gate(&["--upstream", &format!("http://{}", serving.address)]);
    let run = load(&url(&gate, "/echo"), &["-c", "3", "-n", "300", "-b", "hello"]);
    assert_eq!((run.requests.ok, stats(&serving)["received"].as_u64()), (300, Some(300)));
}

#[test]
fn messages_go_over_tls() {
    let serving = Serving::start(&["ws"]);
    let (weir, authority) = (Weir::new(), Authority::new());
    authority.file(&weir, "ca.pem");
    authority.issue("127.0.0.1").files(&weir, "site");
    weir.write(
        "gate.toml",
        format!(
            "[[listeners]]\naddress = \"127.0.0.1:0\"\ntls = {{ certificates = [{{ cert = \"site.pem\", key = \
             \"site-key.pem\" }}] }}\n[upstreams.a]\nurls = [\"http://{}\"]\n[[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n\
             upstream = \"a\"\n",
            serving.address
        ),
    );
    let gate = Serving::gate_file(weir, &[]);
    let url = format!("wss://{}/echo", gate.address);
    let flags = ["load", &url, "--cacert", "ca.pem", "-b", "hello", "-c", "3", "-n", "300", "--format", "json"];
    let run: Run = gate.weir.run(&flags).json();
    assert_eq!((run.requests.ok, stats(&serving)["received"].as_u64()), (300, Some(300)));
}

#[test]
fn agents_send_the_messages_together() {
    let serving = Serving::start(&["ws"]);
    let run = load(&url(&serving, "/"), &["-c", "4", "-n", "200", "-b", "hello", "--on", "local", "--agents", "2"]);
    assert_eq!((run.requests.ok, stats(&serving)["received"].as_u64()), (200, Some(200)));
    assert_eq!(websocket(&run).upgraded, run.connections.opened);
}
