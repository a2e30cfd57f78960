//! DNS of `weir gate`: times to live, SRV records, and servers that are silent, forge or fail.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::collections::HashSet;
use std::time::Duration;

use weir_testing::{Authority, DnsManner, DnsServer, Reply, Server, Serving, Weir, until};

use crate::gate_upstreams::{at_one_port, configured, while_calls_are_made};

const PATIENCE: Duration = Duration::from_secs(20);

/// A gateway whose only upstream is resolved by these servers.
fn gate(upstream: &str, servers: &[&DnsServer]) -> Serving {
    let weir = Weir::new();
    weir.write("gate.toml", configured(&format!("{upstream}\n{}", resolver(servers))));
    Serving::gate_in(weir, &["--config", "gate.toml"])
}

fn resolver(servers: &[&DnsServer]) -> String {
    let all: Vec<String> = servers.iter().map(|server| format!("\"{}\"", server.address())).collect();
    format!("resolver = [{}]", all.join(", "))
}

/// Hosts of the upstream, as the metrics have them.
fn hosts(gate: &Serving) -> Vec<String> {
    let text = gate.get("/metrics").text().to_owned();
    let of_line = |line: &str| Some(line.strip_prefix("weir_gate_host_ejected{upstream=\"a\",host=\"")?.to_owned());
    text.lines().filter_map(of_line).map(|line| line.split('"').next().unwrap().to_owned()).collect()
}

/// Bodies of this many calls.
fn calls(gate: &Serving, count: usize) -> Vec<String> {
    let mut connection = gate.connect();
    (0..count)
        .map(|_| {
            let answer = connection.get("/");
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.text().to_owned()
        })
        .collect()
}

fn count(all: &[String], text: &str) -> usize {
    all.iter().filter(|it| *it == text).count()
}

#[test]
fn addresses_come_and_go_by_their_time_to_live() {
    let [one, two, three] = at_one_port(["one", "two", "three"], Reply::ok);
    let records = |numbers: &[usize]| -> String {
        numbers.iter().map(|number| format!("backend.test 1 A 127.0.0.{number}\n")).collect()
    };
    let dns = DnsServer::start(&records(&[1, 2]));
    let port = one.port();
    let gate = gate(&format!("urls = [\"http://backend.test:{port}\"]\nresolve = \"ttl\""), &[&dns]);
    // The first call waits for the first answer.
    let first = calls(&gate, 6);
    assert_eq!(count(&first, "three"), 0);
    let expected = |numbers: &[usize]| -> Vec<String> {
        numbers.iter().map(|number| format!("127.0.0.{number}:{port}")).collect()
    };
    until("two hosts", PATIENCE, || hosts(&gate) == expected(&[1, 2]));
    assert_eq!(count(&calls(&gate, 6), "one"), 3);

    while_calls_are_made(&gate, || {
        for numbers in [&[3][..], &[1], &[2, 3]] {
            dns.set_records(&records(numbers));
            until("other hosts", PATIENCE, || {
                hosts(&gate).into_iter().collect::<HashSet<_>>() == expected(numbers).into_iter().collect()
            });
        }
    });
    until("the close of the connections", PATIENCE, || one.counts().open == 0);
    drop((two, three));
    // Both families are asked for, each by a message with an ID and from a port of its own.
    let seen = dns.seen();
    assert!(seen.iter().any(|it| it.kind == 1) && seen.iter().any(|it| it.kind == 28), "{seen:?}");
    let ids: HashSet<u16> = seen.iter().map(|it| it.id).collect();
    let ports: HashSet<u16> = seen.iter().map(|it| it.port).collect();
    assert!(ids.len() > 3 && ports.len() > 3, "{seen:?}");
    let log = gate.stop().stderr;
    assert!(log.lines().all(|line| line.starts_with("weir: upstream a: added by DNS: 127.0.0.")), "{log}");
}

#[test]
fn a_long_time_to_live_is_waited_for() {
    let server = Server::hello();
    let dns =
        DnsServer::start("backend.test 3600 A 127.0.0.1\nalias.test 1 CNAME other.test\nother.test 3600 A 127.0.0.1");
    let (long, short) =
        (format!("http://backend.test:{}", server.port()), format!("http://alias.test:{}", server.port()));
    let gate = gate(&format!("urls = [\"{long}\", \"{short}\"]\nresolve = \"ttl\""), &[&dns]);
    // The alias is valid for a second, and what it leads to for long.
    until("the third question for the alias", PATIENCE, || {
        dns.seen().iter().filter(|it| it.name == "alias.test" && it.kind == 1).count() == 3
    });
    assert_eq!(dns.seen().iter().filter(|it| it.name == "backend.test" && it.kind == 1).count(), 1);
    assert_eq!(calls(&gate, 1), ["hello"]);
}

#[test]
fn srv_records_have_ports_weights_and_priorities() {
    let [heavy, light, spare] = ["heavy", "light", "spare"].map(|name| Server::start(move |_| Reply::ok(name)));
    let services = format!(
        "_http._tcp.api.test 1 SRV 10 30 {} one.api.test\n_http._tcp.api.test 1 SRV 10 10 {} two.api.test\n\
         _http._tcp.api.test 1 SRV 20 0 {} spare.test\nspare.test 60 A 127.0.0.1\n",
        heavy.port(),
        light.port(),
        spare.port()
    );
    let dns = DnsServer::start(&format!("{services}one.api.test 60 A 127.0.0.1\ntwo.api.test 60 A 127.0.0.1\n"));
    dns.set_adds_targets(true);
    let weir = Weir::new();
    let upstream = format!("urls = [\"http://_http._tcp.api.test\"]\nresolve = \"ttl\"\n{}", resolver(&[&dns]));
    weir.write("gate.toml", configured(&upstream) + "rewrite = { host = \"upstream\" }\n");
    let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
    calls(&gate, 1);
    until("both hosts", PATIENCE, || hosts(&gate).len() == 2);
    let all = calls(&gate, 40);
    assert_eq!([count(&all, "heavy"), count(&all, "light"), count(&all, "spare")], [30, 10, 0]);
    assert_eq!(heavy.seen()[0].header("host"), Some("api.test"));
    assert!(dns.seen().iter().all(|it| it.kind == 33), "the addresses came along: {:?}", dns.seen());

    // The addresses are asked for if they do not come along, and the next priority takes over if there are none.
    dns.set_adds_targets(false);
    until("questions for addresses", PATIENCE, || {
        dns.seen().iter().any(|it| it.name == "two.api.test" && it.kind == 28)
    });
    assert_eq!(count(&calls(&gate, 8), "heavy"), 6);
    assert!(dns.seen().iter().all(|it| it.name != "spare.test"));
    dns.set_records(&services);
    until("the next priority", PATIENCE, || hosts(&gate) == [format!("127.0.0.1:{}", spare.port())]);
    assert_eq!(count(&calls(&gate, 4), "spare"), 4);

    // A service without targets keeps its hosts.
    dns.set_records("_http._tcp.api.test 1 SRV 0 0 0 .");
    let asked = dns.seen().len();
    until("further questions", PATIENCE, || dns.seen().len() >= asked + 2);
    assert_eq!(count(&calls(&gate, 4), "spare"), 4);
    let output = gate.stop();
    let expected = "weir: upstream a: _http._tcp.api.test cannot be resolved, and keeps its hosts: no target of its SRV \
                    records has an address\n";
    assert!(output.stderr.ends_with(expected), "{}", output.stderr);
    assert_eq!(output.stderr.matches("added by DNS").count(), 1, "{}", output.stderr);
}

#[test]
fn the_certificate_of_a_service_names_its_domain() {
    let authority = Authority::new();
    let server = Server::build().tls(authority.service("api.test")).start(|_| Reply::ok("secret"));
    let records = format!("_https._tcp.api.test 60 SRV 0 0 {} node.test\nnode.test 60 A 127.0.0.1", server.port());
    let dns = DnsServer::start(&records);
    let weir = Weir::new();
    authority.file(&weir, "ca.pem");
    let upstream = "urls = [\"https://_https._tcp.api.test\"]\nresolve = \"1h\"\ntls.cacert = \"ca.pem\"";
    weir.write("gate.toml", configured(&format!("{upstream}\n{}", resolver(&[&dns]))));
    let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
    assert_eq!(calls(&gate, 1), ["secret"]);
    assert!(server.names().contains(&Some("api.test".to_owned())), "{:?}", server.names());
}

#[test]
fn a_reload_to_other_records_fails_no_call() {
    let (old, new) = (Server::start(|_| Reply::ok("old")), Server::start(|_| Reply::ok("new")));
    let service = |name: &str, port: u16| format!("_http._tcp.{name}.test 60 SRV 0 0 {port} node.test\n");
    let records = service("old", old.port()) + &service("new", new.port()) + "node.test 60 A 127.0.0.1";
    let dns = DnsServer::start(&records);
    let upstream = |name: &str| {
        configured(&format!("urls = [\"http://_http._tcp.{name}.test\"]\nresolve = \"ttl\"\n{}", resolver(&[&dns])))
    };
    let weir = Weir::new();
    weir.write("gate.toml", upstream("old"));
    let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
    let mut connection = gate.connect();
    assert_eq!(connection.get("/").text(), "old");
    for name in ["new", "old", "new"] {
        gate.weir.write("gate.toml", upstream(name));
        gate.signal(rustix::process::Signal::HUP);
        until("the other upstream", PATIENCE, || {
            let answer = connection.get("/");
            assert_eq!(answer.status, 200, "{}", answer.text());
            answer.text() == name
        });
    }
}

#[test]
fn what_is_too_long_for_udp_is_asked_for_over_tcp() {
    let server = Server::hello();
    let dns = DnsServer::start("backend.test 60 A 127.0.0.1");
    dns.set_manner(DnsManner::Truncating);
    let gate = gate(&format!("urls = [\"http://backend.test:{}\"]\nresolve = \"ttl\"", server.port()), &[&dns]);
    assert_eq!(calls(&gate, 1), ["hello"]);
    let of = |over_tcp| dns.seen().iter().filter(|it| it.over_tcp == over_tcp && it.kind == 1).count();
    assert_eq!([of(false), of(true)], [1, 1]);
}

#[test]
fn forged_responses_are_ignored() {
    let server = Server::hello();
    let dns = DnsServer::start("backend.test 1 A 127.0.0.1");
    dns.set_manner(DnsManner::Forged);
    let gate = gate(&format!("urls = [\"http://backend.test:{}\"]\nresolve = \"ttl\"", server.port()), &[&dns]);
    assert_eq!(calls(&gate, 1), ["hello"]);
    until("three answers", PATIENCE, || dns.seen().iter().filter(|it| it.kind == 1).count() == 3);
    assert_eq!(hosts(&gate), [format!("127.0.0.1:{}", server.port())]);
    assert_eq!(gate.stop().stderr, "");
}

#[test]
fn the_next_server_is_asked_after_one_that_fails_or_is_silent() {
    let server = Server::hello();
    let records = "backend.test 60 A 127.0.0.1";
    let servers: [DnsServer; 4] = std::array::from_fn(|_| DnsServer::start(records));
    servers[0].set_manner(DnsManner::Failing);
    servers[1].set_manner(DnsManner::Silent);
    servers[2].set_manner(DnsManner::WithoutEdns);
    let gone = DnsServer::start(records);
    let address = gone.address();
    drop(gone);
    let [first, second, third, fourth] = &servers;
    let all = resolver(&[first, second, third, fourth]).replace('[', &format!("[\"{address}\", "));
    let weir = Weir::new();
    let upstream = format!("urls = [\"http://backend.test:{}\"]\nresolve = \"ttl\"\n{all}", server.port());
    weir.write("gate.toml", configured(&upstream));
    let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
    assert_eq!(calls(&gate, 1), ["hello"]);
    let asked = servers.each_ref().map(|server| server.seen().iter().filter(|it| it.kind == 1).count());
    assert_eq!(asked, [1, 1, 2, 0], "the third answers the second question, which is without EDNS");
    assert_eq!(gate.stop().stderr, "");
}

#[test]
fn a_name_that_is_gone_keeps_its_hosts_and_is_logged_once() {
    let server = Server::hello();
    let records = "backend.test 1 A 127.0.0.1";
    let dns = DnsServer::start("");
    let gate = gate(&format!("urls = [\"http://backend.test:{}\"]\nresolve = \"ttl\"", server.port()), &[&dns]);
    // Before the first success a call fails with what DNS has said.
    let answer = gate.get("/");
    assert_eq!(answer.status, 502, "{}", answer.text());
    dns.set_records(records);
    until("the name", PATIENCE, || gate.get("/").status == 200);
    let outage = |manner: DnsManner, records: &str| {
        dns.set_records(records);
        dns.set_manner(manner);
        let before = dns.seen().len();
        until("two more look-ups", PATIENCE, || dns.seen().len() >= before + 4);
        assert_eq!(calls(&gate, 1), ["hello"]);
    };
    outage(DnsManner::Plain, "");
    outage(DnsManner::Plain, records);
    outage(DnsManner::Plain, "backend.test 1 CNAME nowhere.test");
    outage(DnsManner::Plain, records);
    outage(DnsManner::Failing, records);
    let text = gate.stop().stderr;
    let why = |line: &str| line.split("cannot be resolved, and keeps its hosts: ").nth(1).unwrap_or(line).to_owned();
    let from = dns.address();
    let no_name = format!("the name does not exist (NXDOMAIN) ({from})");
    let lines: Vec<String> = text.lines().filter(|line| line.contains("cannot be")).map(why).collect();
    let no_address = format!("the name has no address ({from})");
    assert_eq!(lines, [no_name.clone(), no_name, no_address, format!("SERVFAIL ({from})")], "{text}");
}

#[test]
fn an_address_that_comes_starts_slowly() {
    let (old, new) = (Server::start(|_| Reply::ok("old")), Server::start(|_| Reply::ok("new")));
    let dns = DnsServer::start("backend.test 60 A 127.0.0.1");
    let urls = format!("urls = [\"{}\", \"http://backend.test:{}\"]", old.url(""), new.port());
    let gate = gate(&format!("{urls}\nresolve = \"ttl\"\nslow_start = \"1h\""), &[&dns]);
    until("the address", PATIENCE, || hosts(&gate).contains(&format!("127.0.0.1:{}", new.port())));
    let of_new = count(&calls(&gate, 110), "new");
    assert!((9..=11).contains(&of_new), "{of_new}");
}

#[test]
fn names_of_the_system_go_by_its_files() {
    let server = Server::hello();
    let weir = Weir::new();
    weir.write("hosts", "127.0.0.1 localhost backend.test\n");
    weir.write("resolv.conf", "search a.test\nnameserver 127.0.0.77\noptions timeout:1 attempts:1\n");
    let url = |name: &str| format!("http://{name}:{}", server.port());
    let upstream = |name: &str, url: &str| format!("[upstreams.{name}]\nurls = [\"{url}\"]\nresolve = \"ttl\"\n");
    let route = |name: &str| format!("[[routes]]\nmatch = {{ path = \"/{name}\" }}\nupstream = \"{name}\"\n");
    let all = [("a", url("backend.test")), ("b", url("localhost")), ("c", url("api"))];
    let text: String =
        all.iter().map(|(name, url)| upstream(name, url)).chain(all.iter().map(|(name, _)| route(name))).collect();
    weir.write("gate.toml", text);
    let gate = Serving::gate_with_hosts(weir, &["--config", "gate.toml"]);
    assert_eq!([gate.get("/a").text(), gate.get("/b").text()], ["hello", "hello"]);
    assert_eq!(gate.get("/c").status, 502, "no server is there");
    gate.weir.write_over("hosts", "127.0.0.2 Backend.Test # moved\n");
    until("the other address", PATIENCE, || hosts(&gate) == [format!("127.0.0.2:{}", server.port())]);
    let output = gate.stop();
    assert!(output.stderr.contains("upstream c: api cannot be resolved"), "{}", output.stderr);
    assert!(output.stderr.contains("(127.0.0.77:53)"), "{}", output.stderr);
}
