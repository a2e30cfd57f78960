//! Names with several addresses, of which a service listens on one: `localhost` on most machines.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::net::SocketAddr;
use std::process::{Command, Stdio};

use weir_testing::{Output, Running, Server, Weir, full_listener, weir_path};

/// `localhost` as it is on most machines.
const BOTH: &str = "127.0.0.1 localhost\n::1 localhost\n";

/// `weir` with this hosts file, in a namespace of mounts; none where the system does not allow one.
pub(crate) fn run_with_hosts(weir: &Weir, hosts: &str, args: &[&str]) -> Option<Output> {
    let has_ipv6 = std::net::TcpListener::bind("[::1]:0").is_ok();
    let allows = |flags: &&str| {
        let mounts = "mount --bind /etc/hosts /etc/hosts";
        let tried = Command::new("unshare").args([*flags, "sh", "-c", mounts]).stderr(Stdio::null()).status();
        tried.is_ok_and(|status| status.success())
    };
    let Some(flags) = ["-m", "-rm"].into_iter().find(allows).filter(|_| has_ipv6) else {
        eprintln!("skipped: no namespace of mounts, or no ::1");
        return None;
    };
    let hosts = weir.write("hosts", hosts);
    let mut command = Command::new("unshare");
    command.args([flags, "sh", "-c", "mount --bind \"$0\" /etc/hosts && exec \"$@\""]).arg(hosts).arg(weir_path());
    command.args(args).current_dir(weir.path("")).env_remove("NO_COLOR");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(Running::new(&mut command).finish())
}

fn port_of(server: &Server) -> u16 {
    server.address().parse::<SocketAddr>().unwrap().port()
}

/// Runs the ways to a service whose name is `localhost`; each has to succeed.
fn all_ways_succeed(weir: &Weir, port: u16) {
    let url = format!("http://localhost:{port}");
    weir.write("one.hurl", format!("GET {url}/a\n"));
    weir.write("two.hurl", "GET {{host}}/a\n");
    weir.write("mix.toml", "[[scenario]]\nfile = \"one.hurl\"\n");
    weir.write("wrk.lua", "function request() return wrk.format('GET', '/') end\n");
    weir.write("jobs.jsonl", format!("{{\"url\": \"{url}/a\"}}\n"));
    let (host, target) = (format!("host={url}"), format!("localhost:{port}"));
    for args in [
        &["run", "one.hurl"][..],
        &["run", "two.hurl", "--variable", &host],
        &["load", "-s", "one.hurl", "-n", "4"],
        &["load", "-s", "two.hurl", "--variable", &host, "-n", "4"],
        &["load", "-s", "mix.toml", "-n", "4"],
        &["load", "-s", "one.hurl", "--connect-to", &target, "-n", "4"],
        &["load", "-s", "one.hurl", "--rate", "50", "-n", "4"],
        &["load", "-s", "wrk.lua", &url, "-n", "4"],
        &["load", &url, "-n", "4", "-c", "2"],
        &["load", &url, "-n", "4", "--rate", "50"],
        &["send", "jobs.jsonl", "--out", "results.jsonl"],
    ] {
        let Some(output) = run_with_hosts(weir, BOTH, args) else { return };
        assert_eq!(output.code, 0, "{args:?}: {output:?}");
    }
}

#[test]
fn a_service_on_one_address_of_localhost_is_reached_by_all_commands() {
    let (weir, server) = (Weir::new(), Server::hello());
    all_ways_succeed(&weir, port_of(&server));
}

#[test]
fn a_service_on_the_first_address_of_localhost_is_reached_as_well() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return;
    }
    let weir = Weir::new();
    let server = weir_testing::Builder::default().start_v6(|_| weir_testing::Reply::ok("hello"));
    all_ways_succeed(&weir, port_of(&server));
}

#[test]
fn an_address_that_swallows_connections_is_passed_over() {
    let (weir, server) = (Weir::new(), Server::hello());
    let port = port_of(&server);
    let Some(_full) = full_listener(&format!("[::1]:{port}")) else { return };
    weir.write("one.hurl", format!("GET http://localhost:{port}/a\n"));
    for args in [&["run", "one.hurl"][..], &["load", "-s", "one.hurl", "-n", "4", "-c", "2"]] {
        let Some(output) = run_with_hosts(&weir, BOTH, args) else { return };
        assert_eq!(output.code, 0, "{args:?}: {output:?}");
    }
}

#[test]
fn a_failure_names_all_addresses() {
    let weir = Weir::new();
    let port = weir_testing::closed_address().port();
    weir.write("one.hurl", format!("GET http://localhost:{port}/a\n"));
    for args in [&["run", "one.hurl"][..], &["load", "-s", "one.hurl", "-n", "1"]] {
        let Some(output) = run_with_hosts(&weir, BOTH, args) else { return };
        assert_eq!(output.code, 2, "{args:?}");
        let expected = format!("Connection refused ([::1]:{port}), Connection refused (127.0.0.1:{port})");
        assert!(output.stderr.contains(&expected), "{args:?}: {}", output.stderr);
    }
}
