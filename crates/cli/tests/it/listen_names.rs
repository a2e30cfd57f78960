//! Listening on a name: all its addresses, at one port.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use rustix::process::{Signal, kill_process};
use weir_testing::{Raw, Running, Server, Serving, Weir, running_in, until};

const BOTH: &str = "127.0.0.1 localhost\n::1 localhost\n";
const PATIENCE: Duration = Duration::from_secs(20);

fn weir() -> Weir {
    let weir = Weir::new();
    weir.write("hosts", BOTH);
    weir
}

fn port(serving: &Serving) -> u16 {
    serving.address.rsplit_once(':').unwrap().1.parse().unwrap()
}

/// Both families, at the port that is announced.
fn responds_at_both(serving: &Serving) {
    let port = port(serving);
    for address in [format!("127.0.0.1:{port}"), format!("[::1]:{port}")] {
        assert_eq!(Raw::connect(&address).get("/status/204").status, 204, "{address}");
    }
}

#[test]
fn a_server_on_localhost_has_both_families() {
    for workers in ["1", "3"] {
        let serving = Serving::with_hosts(weir(), &["serve", "httpbin", "--host", "localhost", "-w", workers]);
        for _ in 0..8 {
            responds_at_both(&serving);
        }
        let announced = serving.announced.as_object().unwrap();
        assert_eq!((announced.len(), serving.stop().stderr.as_str()), (1, ""));
    }
}

#[test]
fn a_gateway_on_localhost_has_both_families_also_in_a_new_process() {
    let upstream = Serving::start(&["httpbin"]);
    let args = ["gate", "--listen", "localhost:0", "--admin", "localhost:0", "--upstream", &upstream.url, "-w", "2"];
    let gate = Serving::with_hosts(weir(), &args);
    responds_at_both(&gate);
    let admin = gate.announced["admin"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
    for address in [format!("127.0.0.1:{admin}"), format!("[::1]:{admin}")] {
        let mut connection = Raw::connect(&address);
        connection.send(format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\n\r\n"));
        assert_eq!(connection.answer().status, 200, "{address}");
    }
    gate.signal(Signal::HUP);
    responds_at_both(&gate);
    gate.stop();
}

#[test]
fn a_recorder_on_localhost_has_both_families() {
    let service = Serving::start(&["httpbin"]);
    let args = ["record", "--listen", "localhost:0", "--upstream", &service.url, "-o", "two.hurl"];
    let recorder = Serving::with_hosts(weir(), &args);
    for _ in 0..3 {
        responds_at_both(&recorder);
    }
    let output = recorder.stop();
    assert_eq!(output.code, 0, "{output:?}");
}

#[test]
fn a_name_of_which_one_address_is_open_to_others_is_rejected_by_a_recorder() {
    let weir = Weir::new();
    weir.write("hosts", "127.0.0.1 name.test\n:: name.test\n");
    let mut command = Serving::command_with_hosts(&weir, &["record", "--listen", "name.test:0", "-o", "a.hurl"]);
    command.stdout(std::process::Stdio::piped());
    let output = Running::new(&mut command).finish();
    assert!(output.code == 2 && output.one_line().contains("lets other machines use this proxy"), "{output:?}");
}

#[test]
fn an_address_of_a_name_that_is_in_use_is_an_error() {
    let taken = TcpListener::bind("[::1]:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let weir = weir();
    let args = ["serve", "httpbin", "--host", "localhost", "--port", &port];
    let mut command = Serving::command_with_hosts(&weir, &args);
    command.stdout(std::process::Stdio::piped());
    let output = Running::new(&mut command).finish();
    let line = output.one_line();
    assert_eq!(output.code, 2, "{output:?}");
    assert!(line.starts_with(&format!("cannot listen on localhost:{port}: Address already in use")), "{line}");
    assert!(TcpStream::connect(("127.0.0.1", taken.local_addr().unwrap().port())).is_err());
}

#[test]
fn an_address_that_the_machine_does_not_have_is_left_out_with_a_line() {
    let weir = Weir::new();
    // TEST-NET-1 is on no machine.
    weir.write("hosts", "192.0.2.1 name.test\n127.0.0.1 name.test\n::1 name.test\n127.0.0.1 name.test\n");
    let serving = Serving::with_hosts(weir, &["serve", "httpbin", "--host", "name.test"]);
    responds_at_both(&serving);
    let log = serving.stop().stderr;
    let expected = "weir: name.test:0: not listening on 192.0.2.1:";
    assert!(log.starts_with(expected) && log.lines().count() == 1, "{log}");

    let weir = Weir::new();
    weir.write("hosts", "192.0.2.1 name.test\n");
    let mut command = Serving::command_with_hosts(&weir, &["serve", "httpbin", "--host", "name.test"]);
    command.stdout(std::process::Stdio::piped());
    let output = Running::new(&mut command).finish();
    assert!(output.code == 2 && output.one_line().starts_with("cannot listen on name.test:0: "), "{output:?}");
}

#[test]
fn a_new_process_has_the_sockets_of_both_families() {
    let server = Server::start(|_| weir_testing::Reply::status(204, ""));
    let gate = Serving::with_hosts(weir(), &["gate", "--listen", "localhost:0", "--upstream", &server.url("")]);
    responds_at_both(&gate);
    let (port, first) = (port(&gate), gate.pid().cast_signed());
    gate.signal(Signal::USR2);
    let others = || running_in(&gate.weir.path(""));
    until("the new process alone", PATIENCE, || matches!(others()[..], [pid] if pid.as_raw_nonzero().get() != first));
    responds_at_both(&gate);
    assert_eq!(gate.get("/status/204").status, 204, "{port}");
    for pid in others() {
        kill_process(pid, Signal::TERM).unwrap();
    }
    gate.finish();
}
