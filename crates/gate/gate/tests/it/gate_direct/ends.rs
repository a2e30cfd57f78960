//! Calls whose callers, upstreams or gateways end or wait half-way, as values and as futures.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use weir_gate::Gate;
use weir_testing::{Gate as Held, Raw, Reply, Server, until};

use super::pair::{PATIENCE, parsed, started};

const PLAIN: &str = "[upstreams.backend]\nurls = [\"URL\"]\n[[routes]]\nmatch = { path = \"/{*rest}\" }\n";
const BOTH: [bool; 2] = [true, false];

/// A gateway to an upstream that has an idle connection.
struct Front {
    gate: Gate,
    server: Server,
}

fn front(server: Server, text: &str, has_direct_calls: bool) -> Front {
    let front = Front { gate: started(&parsed(text, &server.url("")), has_direct_calls), server };
    assert_eq!(front.connect().get("/").status, 200);
    front
}

impl Front {
    fn address(&self) -> String {
        self.gate.url().trim_start_matches("http://").to_owned()
    }

    fn connect(&self) -> Raw {
        Raw::connect(&self.address())
    }

    fn has_metric(&self, line: &str) -> bool {
        self.connect().get("/metrics").text().lines().any(|found| found == line)
    }

    fn has_ended(&self, outcome: &str, count: u32) -> bool {
        self.has_metric(&format!("weir_gate_calls_total{{route=\"/{{*rest}}\",outcome=\"{outcome}\"}} {count}"))
    }

    fn is_idle(&self) -> bool {
        self.has_metric("weir_gate_attempts_in_flight{upstream=\"backend\"} 0.0")
    }

    /// A request that the upstream has.
    fn held(&self) -> Raw {
        let before = self.server.requests();
        let mut client = self.connect();
        client.send("GET /held HTTP/1.1\r\nHost: test\r\n\r\n");
        until("the upstream has the request", PATIENCE, || self.server.requests() > before);
        client
    }
}

fn post(body: &str) -> String {
    format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// An upstream that sends what it gets.
fn echo() -> Server {
    Server::start(|seen| Reply::ok(&String::from_utf8_lossy(&seen.body)))
}

/// An upstream that responds to `/held` once the gate is open.
fn holding() -> (Held, Server) {
    let held = Held::default();
    let gate = held.clone();
    let server = Server::start(move |seen| {
        let reply = Reply::nothing();
        let reply = if seen.line().contains(" /held ") { reply.wait_for(&gate) } else { reply };
        reply.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nheld")
    });
    (held, server)
}

#[test]
fn pipelined_requests_have_their_bodies_and_their_order() {
    let long = "x".repeat(20_000);
    let bodies = ["one", "", "three", &long, "five", "GET / HTTP/1.1\r\n\r\n"];
    for has_direct_calls in BOTH {
        let front = front(echo(), PLAIN, has_direct_calls);
        let mut client = front.connect();
        client.send(bodies.map(post).concat());
        for body in bodies {
            assert_eq!(client.answer().text(), body);
        }
        assert_eq!(client.post("/", "more").text(), "more");
    }
}

#[test]
fn a_body_may_come_later_than_its_head() {
    for has_direct_calls in BOTH {
        let front = front(echo(), PLAIN, has_direct_calls);
        let mut client = front.connect();
        client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 8\r\n\r\nhal");
        // That of the metrics is one, too.
        until("the head is read", PATIENCE, || front.has_metric("weir_http_requests_in_flight 2"));
        client.send("f, all\r\n\r\n");
        assert_eq!(client.answer().text(), "half, al");
        // The rest was no request.
        assert_eq!(client.answer().status, 400);
    }
}

#[test]
fn a_client_that_waits_for_a_100_gets_one() {
    for has_direct_calls in BOTH {
        let front = front(echo(), PLAIN, has_direct_calls);
        let mut client = front.connect();
        client.send("POST / HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
        assert_eq!(client.head().status, 100);
        client.send("body");
        assert_eq!(client.answer().text(), "body");
        assert_eq!(front.server.seen().last().unwrap().header("expect"), None);
    }
}

#[test]
fn a_caller_that_leaves_cancels_its_call() {
    let ends: [fn(Raw) -> Option<Raw>; 3] = [
        |client| {
            drop(client);
            None
        },
        |client| {
            client.reset();
            None
        },
        // It sends nothing more, and might read on: as for all requests, that is an end.
        |mut client| {
            client.finish();
            Some(client)
        },
    ];
    for has_direct_calls in BOTH {
        let (held, server) = holding();
        let front = front(server, PLAIN, has_direct_calls);
        for (number, end) in (1..).zip(ends) {
            assert_eq!(front.connect().get("/").text(), "held");
            let _half_closed = end(front.held());
            until("the call is over", PATIENCE, || front.has_ended("client_closed", number));
        }
        until("nothing is in flight", PATIENCE, || front.is_idle());
        held.open();
        // Each cancelled call has closed its connection.
        front.server.wait_for("the closes", |counts| counts.open == 0);
        assert_eq!(front.connect().get("/").text(), "held");
    }
}

#[test]
fn a_caller_that_leaves_a_body_ends_it() {
    for has_direct_calls in BOTH {
        let server = Server::start(|seen| match seen.line().contains(" /held ") {
            true => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\nhalf"),
            false => Reply::ok("whole"),
        });
        let front = front(server, PLAIN, has_direct_calls);
        let mut client = front.held();
        assert_eq!(client.head().status, 200);
        assert_eq!(client.take(4), b"half");
        drop(client);
        front.server.wait_for("the close", |counts| counts.open == 0);
        until("nothing is in flight", PATIENCE, || front.is_idle());
        assert!(front.has_ended("succeeded", 2));
    }
}

#[test]
fn a_stop_waits_for_a_call_in_flight_or_cuts_it() {
    for has_direct_calls in BOTH {
        let (held, server) = holding();
        let front = front(server, PLAIN, has_direct_calls);
        let mut client = front.held();
        let (address, Front { gate, server: _server }) = (front.address(), front);
        let stop = thread::spawn(move || gate.stop(Duration::from_secs(100)));
        until("nothing is accepted", PATIENCE, || TcpStream::connect(&address).is_err());
        held.open();
        assert_eq!(client.answer().text(), "held");
        assert!(client.has_ended(PATIENCE));
        assert_eq!(stop.join().unwrap().requests, 0);

        let (held, server) = holding();
        let front = self::front(server, PLAIN, has_direct_calls);
        let client = front.held();
        let Front { gate, server } = front;
        assert_eq!(gate.stop(Duration::ZERO).requests, 1);
        assert_eq!(client.leftovers(), b"");
        held.open();
        server.wait_for("the close", |counts| counts.open == 0);
    }
}

#[test]
fn a_call_keeps_the_configuration_that_it_began_with() {
    for has_direct_calls in BOTH {
        let (held, server) = holding();
        let front = front(server, PLAIN, has_direct_calls);
        let mut client = front.held();
        let other = Server::start(|_| Reply::ok("other"));
        front.gate.reload(&parsed(PLAIN, &other.url(""))).unwrap();
        assert_eq!(front.connect().get("/").text(), "other");
        held.open();
        assert_eq!(client.answer().text(), "held");
        assert_eq!(client.get("/").text(), "other");
        until("all are counted", PATIENCE, || front.has_ended("succeeded", 4));
        until("nothing is in flight", PATIENCE, || front.is_idle());
    }
}

#[test]
fn a_call_that_ends_has_the_next_one_begin() {
    let limits = ["max_in_flight = 1\nmax_queue = 9", "concurrency_limit = \"none\"\nmax_connections = 1"];
    for (has_direct_calls, limit) in BOTH.into_iter().flat_map(|has| limits.map(|limit| (has, limit))) {
        let (held, server) = holding();
        let front = front(server, &PLAIN.replace("[[routes]]", &format!("{limit}\n[[routes]]")), has_direct_calls);
        let mut first = front.held();
        let mut others: Vec<Raw> = (0..5).map(|_| front.connect()).collect();
        others.iter_mut().for_each(|client| client.send("GET /next HTTP/1.1\r\nHost: test\r\n\r\n"));
        until("all are read", PATIENCE, || front.has_metric("weir_http_requests_in_flight 7"));
        assert_eq!(front.server.requests(), 2);
        held.open();
        assert_eq!(first.answer().text(), "held");
        assert!(others.iter_mut().all(|client| client.answer().text() == "held"));
        assert_eq!(front.server.counts().connections, 1);
    }
}

#[test]
fn a_connection_that_its_upstream_has_closed_is_replaced() {
    for has_direct_calls in BOTH {
        let front = front(Server::start(|_| Reply::ok("hello").close()), PLAIN, has_direct_calls);
        for number in 2..6 {
            front.server.wait_for_close();
            assert_eq!(front.connect().get("/").text(), "hello");
            assert_eq!(front.server.counts().connections, number);
        }
    }
}

#[test]
fn an_upstream_that_stalls_is_left() {
    let text = PLAIN.replace("[[routes]]", "stall_timeout = \"1s\"\n[[routes]]");
    for part in ["", "HTTP/1.1 200 OK\r\nConte"] {
        let results = BOTH.map(|has_direct_calls| {
            let server = Server::start(move |seen| match seen.line().contains(" /held ") {
                true => Reply::raw(part),
                false => Reply::ok("hello"),
            });
            let front = front(server, &text, has_direct_calls);
            let answer = front.connect().get("/held");
            assert!(front.has_metric("weir_gate_attempts_failed_total{upstream=\"backend\",kind=\"timeout\"} 1"));
            front.server.wait_for("the close", |counts| counts.open == 0);
            (answer.status, answer.text().to_owned())
        });
        assert_eq!(results[0], results[1]);
    }
}

#[test]
fn a_host_that_fails_is_ejected() {
    let text = PLAIN
        .replace("[\"URL\"]", "[\"URL\", \"OTHER\"]\nhealth = { consecutive_failures = 3, ejection_time = \"1h\" }");
    let seen = BOTH.map(|has_direct_calls| {
        let dead = Server::start(|seen| if seen.number == 0 { Reply::ok("hello") } else { Reply::nothing().close() });
        let front = front(Server::hello(), &text.replace("OTHER", &dead.url("")), has_direct_calls);
        let statuses: Vec<u16> = (0..20).map(|_| front.connect().get("/").status).collect();
        let ejected = format!("weir_gate_host_ejected{{upstream=\"backend\",host=\"{}\"}} 1.0", dead.address());
        assert!(front.has_metric(&ejected), "{statuses:?}");
        (statuses, front.server.requests(), dead.requests())
    });
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn a_caller_that_reads_late_gets_all() {
    let body = "x".repeat(50_000);
    for has_direct_calls in BOTH {
        let sent = body.clone();
        let front = front(Server::start(move |_| Reply::ok(&sent)), PLAIN, has_direct_calls);
        let requests = "GET / HTTP/1.1\r\nHost: test\r\n\r\n".repeat(400);
        let mut client = front.connect();
        client.send(&requests);
        let mut other = front.connect();
        other.send(&requests);
        assert!((0..400).all(|_| client.answer().text() == body));
        // This one leaves in the middle.
        assert_eq!(other.answer().text(), body);
        drop(other);
        until("nothing is in flight", PATIENCE, || front.is_idle());
    }
}
