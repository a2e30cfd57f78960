//! How `weir send` comes to a Redis server: by TCP, over TLS, as a user with a password, to one of its databases; and what it
//! says if it does not.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod support;

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use support::{Authority, Output, Proxy, RedisServer, Reply, Server, Weir, until};

/// Timeout of each wait of a test.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Sends two jobs through this store; the output, and how many came.
fn send(weir: &Weir, store: &str) -> (Output, u64) {
    let service = Server::start(|_| Reply::ok("hello"));
    weir.write("jobs.jsonl", "{\"id\":\"a\"}\n{\"id\":\"b\"}\n");
    let url = service.url("/{id}");
    let output = weir.run(&["send", "jobs.jsonl", "--url", &url, "--store", store, "--format", "json", "-q"]);
    (output, service.requests())
}

/// It works, and does so for who only looks, too.
fn check_sent(weir: &Weir, store: &str) {
    let (output, requests) = send(weir, store);
    assert_eq!((output.code, output.stderr.as_str(), requests), (0, "", 2), "{store}: {output:?}");
    let status = weir.run(&["send", "status", store, "--format", "json"]);
    assert_eq!(status.code, 0, "{status:?}");
    let status: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["jobs"]["done"]["jobs"], 2, "{status}");
}

/// It ends with one line that says why, and no secret.
fn check_rejected(weir: &Weir, store: &str, why: &str) {
    let (output, requests) = send(weir, store);
    assert_eq!((output.code, requests), (2, 0), "{store}: {output:?}");
    let line = output.one_line();
    assert!(line.contains(why) && !line.contains("secret"), "{store}: {line}");
}

/// A server with a certificate for 127.0.0.1, the authority's certificate in `ca.pem` beside it, and a client's in
/// `client.pem` and `client.key`. Clients have to show one if `known` says so.
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
fn a_server_is_believed_over_tls_if_its_authority_is() {
    let weir = Weir::new();
    let Some(server) = over_tls(&weir, "no") else { return };
    let store = |asked: &str| format!("rediss://127.0.0.1:{}?{asked}", server.tls_port);
    check_rejected(&weir, &store("queue=orders"), "certificate");
    check_rejected(&weir, &store("cacert=other.pem"), "name its authority with cacert=FILE");
    check_rejected(&weir, &store("cacert=jobs.jsonl"), "cacert jobs.jsonl: ");
    assert!(server.say(&["KEYS", "*"]).starts_with("*0"), "nobody has written anything");
    check_sent(&weir, &store("queue=known&cacert=ca.pem"));
    check_sent(&weir, &store("queue=any&insecure=1"));
}

#[test]
fn a_server_that_wants_to_know_its_clients_is_shown_a_certificate() {
    let weir = Weir::new();
    let Some(server) = over_tls(&weir, "yes") else { return };
    let store = |asked: &str| format!("rediss://127.0.0.1:{}?cacert=ca.pem{asked}", server.tls_port);
    check_rejected(&weir, &store(""), "is unreachable");
    check_rejected(&weir, &store("&cert=client.pem"), "go together");
    check_sent(&weir, &store("&cert=client.pem&cert_key=client.key"));
}

/// What a sender has to be allowed.
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
fn all_connections_of_a_sender_are_the_users_and_to_its_database() {
    let Some(server) = RedisServer::start() else { return };
    server.say(&[&["ACL", "SETUSER", "clerk"], &RIGHTS[..]].concat());
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{\"id\":\"a\"}\n");
    let store = server.url("queue=orders&user=clerk&pass=secret&db=3");
    // A job that cannot be delivered keeps it there.
    let args = ["send", "jobs.jsonl", "--url", "http://127.0.0.1:1/{id}", "--store", &store, "--grace", "100ms", "-q"];
    let running = weir.start(&args);
    let of_clerk = || {
        let list = server.say(&["CLIENT", "LIST"]);
        list.lines().filter(|line| line.contains(" user=clerk ")).map(str::to_owned).collect::<Vec<_>>()
    };
    until("one that writes, one that reads, and one that listens", TIMEOUT, || of_clerk().len() == 3);
    let connections = of_clerk();
    assert!(connections.iter().all(|line| line.contains(" db=3 ")), "{connections:?}");
    // It may not know yet how to end in good order.
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, -1);
}

#[test]
fn a_server_that_is_not_there_is_told_in_one_line_without_the_password() {
    let weir = Weir::new();
    weir.write("jobs.jsonl", "{\"id\":\"a\"}\n");
    let store = "redis://me:secret@127.0.0.1:1/0?queue=orders";
    let output = weir.run(&["send", "jobs.jsonl", "--url", "http://127.0.0.1:1/", "--store", store]);
    assert_eq!(output.code, 2);
    let line = output.one_line();
    assert!(line.contains("'redis://127.0.0.1:1/0?queue=orders' is unreachable"), "{line}");
    assert!(!output.stderr.contains("secret"));
}
