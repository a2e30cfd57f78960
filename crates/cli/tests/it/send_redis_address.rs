//! Connections of `weir send` to a Redis server: TCP, TLS, a user with a password, a database; and errors.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use weir_testing::{Authority, Output, Proxy, RedisServer, Reply, Server, Weir, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends two jobs through this store; returns the output and the number of requests.
fn send(weir: &Weir, store: &str) -> (Output, u64) {
    let service = Server::start(|_| Reply::ok("hello"));
    weir.write("jobs.jsonl", "{\"id\":\"a\"}\n{\"id\":\"b\"}\n");
    let url = service.url("/{id}");
    let output = weir.run(&["send", "jobs.jsonl", "--url", &url, "--store", store, "--format", "json", "-q"]);
    (output, service.requests())
}

/// Sends and inspects successfully.
fn check_sent(weir: &Weir, store: &str) {
    let (output, requests) = send(weir, store);
    assert_eq!((output.code, output.stderr.as_str(), requests), (0, "", 2), "{store}: {output:?}");
    let status = weir.run(&["send", "status", store, "--format", "json"]);
    assert_eq!(status.code, 0, "{status:?}");
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["jobs"]["done"]["jobs"], 2, "{status}");
}

/// Fails with one line that has the reason, and no secret.
fn check_rejected(weir: &Weir, store: &str, why: &str) {
    let (output, requests) = send(weir, store);
    assert_eq!((output.code, requests), (2, 0), "{store}: {output:?}");
    let line = output.one_line();
    assert!(line.contains(why) && !line.contains("secret"), "{store}: {line}");
}

/// Server with a certificate for 127.0.0.1, its CA certificate in `ca.pem`, and a client certificate in `client.pem`
/// and `client.key`, which the server requires if `known` says so.
fn over_tls(weir: &Weir, known: &str) -> Option<RedisServer> {
    let authority = Authority::new();
    let ca = authority.file(weir, "ca.pem");
    Authority::new().file(weir, "other.pem");
    let (server, client) = (authority.issue("127.0.0.1"), authority.issue("client"));
    let (cert, key) = (weir.write("server.pem", server.cert), weir.write("server.key", server.key));
    weir.write("client.pem", client.cert);
    weir.write("client.key", client.key);
    let [ca, cert, key] = [&ca, &cert, &key].map(|path| path.to_str().unwrap());
    let files = ["--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca];
    RedisServer::with_tls(&[&files[..], &["--tls-auth-clients", known]].concat())
}

#[test]
fn a_certificate_is_accepted_if_its_ca_is_trusted() {
    let weir = Weir::new();
    let Some(server) = over_tls(&weir, "no") else { return };
    let store = |asked: &str| format!("rediss://127.0.0.1:{}?{asked}", server.tls_port);
    check_rejected(&weir, &store("queue=orders"), "certificate");
    check_rejected(&weir, &store("cacert=other.pem"), "name its authority with cacert=FILE");
    check_rejected(&weir, &store("cacert=jobs.jsonl"), "cacert jobs.jsonl: ");
    assert!(server.say(&["KEYS", "*"]).starts_with("*0"), "nothing was written");
    check_sent(&weir, &store("queue=known&cacert=ca.pem"));
    check_sent(&weir, &store("queue=any&insecure=1"));
}

#[test]
fn a_server_that_requires_a_client_certificate_gets_one() {
    let weir = Weir::new();
    let Some(server) = over_tls(&weir, "yes") else { return };
    let store = |asked: &str| format!("rediss://127.0.0.1:{}?cacert=ca.pem{asked}", server.tls_port);
    check_rejected(&weir, &store(""), "is unreachable");
    check_rejected(&weir, &store("&cert=client.pem"), "go together");
    check_sent(&weir, &store("&cert=client.pem&cert_key=client.key"));
}

/// Rights that a sender needs.
const RIGHTS: [&str; 13] = [
    "on",
    ">secret",
    "~weir:orders:*",
    "&weir:orders:*",
    "-@all",
    "+@read",
    "+@write",
    "+@connection",
    "+@pubsub",
    "+evalsha",
    "+script|load",
    "+info",
    "+time",
];

#[test]
fn a_user_with_a_password_and_few_rights_has_a_queue_in_a_database_of_its_own() {
    let Some(server) = RedisServer::start() else { return };
    let said = server.say(&[&["ACL", "SETUSER", "clerk"], &RIGHTS[..]].concat());
    assert!(said.starts_with("+OK"), "{said}");
    let (weir, proxy) = (Weir::new(), Proxy::start(&server));
    let store = |user: &str| format!("redis://{user}@{}/3?queue=orders", proxy.place());
    check_sent(&weir, &store("clerk:secret"));
    let keys = server.say(&["INFO", "keyspace"]);
    assert!(keys.contains("db3:") && !keys.contains("db0:"), "{keys}");

    check_rejected(&weir, &store("clerk:secretly"), "cannot be used: ");
    check_rejected(&weir, &store("stranger:secret"), "cannot be used: ");
    let said = server.say(&["ACL", "SETUSER", "clerk", "-info"]);
    assert!(said.starts_with("+OK"), "{said}");
    check_rejected(&weir, &store("clerk:secret"), "info");
}

#[test]
fn all_connections_of_a_sender_use_its_user_and_database() {
    let Some(server) = RedisServer::start() else { return };
    server.say(&[&["ACL", "SETUSER", "clerk"], &RIGHTS[..]].concat());
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{\"id\":\"a\"}\n");
    let store = server.url("queue=orders&user=clerk&pass=secret&db=3");
    // A job that cannot be delivered keeps it running.
    let args = ["send", "jobs.jsonl", "--url", "http://127.0.0.1:1/{id}", "--store", &store, "--grace", "100ms", "-q"];
    let running = weir.start(&args);
    let of_clerk = || {
        let list = server.say(&["CLIENT", "LIST"]);
        list.lines().filter(|line| line.contains(" user=clerk ")).map(str::to_owned).collect::<Vec<_>>()
    };
    until("one that writes, one that reads, and one that listens", TIMEOUT, || of_clerk().len() == 3);
    let connections = of_clerk();
    assert!(connections.iter().all(|line| line.contains(" db=3 ")), "{connections:?}");
    // Signal handlers may not be installed yet.
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, -1);
}

#[test]
fn an_unreachable_server_is_one_line_without_the_password() {
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{\"id\":\"a\"}\n");
    let store = "redis://me:secret@127.0.0.1:1/0?queue=orders";
    let output = weir.run(&["send", "jobs.jsonl", "--url", "http://127.0.0.1:1/", "--store", store]);
    assert_eq!(output.code, 2);
    let line = output.one_line();
    assert!(line.contains("'redis://127.0.0.1:1/0?queue=orders' is unreachable"), "{line}");
    assert!(!output.stderr.contains("secret"));
}
