//! Certificates that change while the gateway runs.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use weir_testing::{Authority, Serving, TlsClient, until};

use super::{certificates, config, echo_of, secure, with_certificates};

const PATIENCE: Duration = Duration::from_secs(20);

/// Whether new connections get a certificate of this authority.
fn shows(gate: &Serving, authority: &Authority) -> bool {
    TlsClient::build().trusting(authority).try_connect(&gate.address, "localhost").is_ok()
}

#[test]
fn changed_files_are_read_without_a_signal() {
    let (old, new, server) = (Authority::new(), Authority::new(), echo_of("host"));
    let gate = secure(with_certificates(&old, &[&["localhost"]]), &server, &certificates(1), "");
    let mut open = TlsClient::build().trusting(&old).connect(&gate.address, "localhost");
    assert_eq!(open.get("/").status, 200);
    // For a moment certificate and key are of different pairs.
    let pair = new.issue("localhost");
    gate.weir.write("0.pem", &pair.cert);
    assert!(!shows(&gate, &new));
    gate.weir.write("0-key.pem", &pair.key);
    until("the new certificate", PATIENCE, || shows(&gate, &new));
    assert_eq!(open.get("/").status, 200, "the connection goes on");
    let output = gate.stop();
    assert!(output.stderr.contains("listener 127.0.0.1:0: certificates reloaded"), "{}", output.stderr);
}

#[test]
fn a_signal_reads_certificates_and_other_names_of_files() {
    let (old, new, server) = (Authority::new(), Authority::new(), echo_of("host"));
    let gate = secure(with_certificates(&old, &[&["localhost"]]), &server, &certificates(1), "");
    new.issue("localhost").files(&gate.weir, "next");
    let tls = "certificates = [{ cert = \"next.pem\", key = \"next-key.pem\" }]";
    gate.weir.write("gate.toml", config(&server, tls, ""));
    gate.signal(Signal::HUP);
    until("the new certificate", PATIENCE, || shows(&gate, &new));
    // An invalid file leaves the old configuration.
    fs::write(gate.weir.path("next-key.pem"), "no key").unwrap();
    gate.signal(Signal::HUP);
    let output = gate.stop();
    assert!(output.stderr.contains("configuration reloaded"), "{}", output.stderr);
}

#[test]
fn no_call_fails_while_certificates_are_reloaded() {
    let (authority, server) = (Authority::new(), echo_of("host"));
    let gate = secure(with_certificates(&authority, &[&["localhost"]]), &server, &certificates(1), "");
    let (is_done, address) = (AtomicBool::new(false), gate.address.as_str());
    let client = TlsClient::build().trusting(&authority);
    thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|caller| {
                let (client, is_done) = (client.clone(), &is_done);
                scope.spawn(move || {
                    let mut kept = client.connect(address, "localhost");
                    let mut calls = 0;
                    while !is_done.load(Ordering::Relaxed) || calls < 50 {
                        assert_eq!(kept.get("/kept").status, 200);
                        // New connections as well, each second one without a session.
                        if caller % 2 == 0 {
                            assert_eq!(client.connect(address, "localhost").get("/new").status, 200);
                        }
                        calls += 1;
                    }
                    calls
                })
            })
            .collect();
        for round in 0..20 {
            authority.issue("localhost").files(&gate.weir, &round.to_string());
            let tls = format!("certificates = [{{ cert = \"{round}.pem\", key = \"{round}-key.pem\" }}]");
            gate.weir.write_over("gate.toml", &config(&server, &tls, ""));
            let before = server.requests();
            gate.signal(Signal::HUP);
            until("some calls", PATIENCE, || server.requests() > before + 20);
        }
        is_done.store(true, Ordering::Relaxed);
        let calls: u32 = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
        assert!(calls >= 200, "{calls}");
    });
    let output = gate.stop();
    assert!(output.stderr.contains("configuration reloaded"), "{}", output.stderr);
    assert!(!output.stderr.contains("not reloaded"), "{}", output.stderr);
}
