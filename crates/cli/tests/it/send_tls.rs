//! `weir send` over TLS: verification of certificates.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use weir_testing::{Authority, Reply, Server, Weir};

/// Sends one job to a service with a certificate of a private CA; returns exit code and stderr.
fn send(args: &[&str]) -> (i32, String, u64) {
    let (weir, authority) = (Weir::new(), Authority::new());
    authority.file(&weir, "ca.pem");
    let server = Server::build().tls(authority.service("127.0.0.1")).start(|_| Reply::ok("hello"));
    weir.write("jobs.jsonl", "{\"id\":\"j\"}\n");
    let url = format!("https://{}/{{id}}", server.address());
    let plain = ["send", "jobs.jsonl", "--url", &url, "--retries", "0", "-q"];
    let output = weir.run(&[&plain, args].concat());
    (output.code, output.stdout + &output.stderr, server.requests())
}

#[test]
fn a_certificate_of_a_private_ca_is_accepted_with_cacert() {
    let (code, said, requests) = send(&["--cacert", "ca.pem"]);
    assert_eq!((code, requests), (0, 1), "{said}");
    let (code, said, requests) = send(&["-k"]);
    assert_eq!((code, requests), (0, 1), "{said}");
}

#[test]
fn a_file_without_certificates_is_an_error_before_anything_is_sent() {
    let (code, said, requests) = send(&["--cacert", "jobs.jsonl"]);
    assert_eq!((code, requests), (2, 0), "{said}");
    assert!(said.starts_with("weir: --cacert jobs.jsonl: "), "{said}");
}
