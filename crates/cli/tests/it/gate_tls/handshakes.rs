//! Certificates, versions and protocols of connections.

use std::io::Write;
use std::net::TcpStream;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::HandshakeKind;
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use weir_testing::{Authority, Raw, Serving, TlsClient, Weir};

use super::{certificates, config, echo_of, secure, with_certificates};

#[test]
fn requests_over_tls_reach_the_upstream_as_https() {
    let (authority, server) = (Authority::new(), echo_of("x-forwarded-proto"));
    let gate = secure(with_certificates(&authority, &[&["localhost"]]), &server, &certificates(1), "");
    assert!(gate.url.starts_with("https://127.0.0.1:"), "{}", gate.url);
    let mut connection = TlsClient::build().trusting(&authority).connect(&gate.address, "localhost");
    assert_eq!(connection.get("/a").text(), "https");
    let long = vec![b'x'; 300_000];
    assert_eq!(connection.post("/b", &long).text(), "https", "the connection goes on");
    gate.stop();
}

#[test]
fn the_certificate_is_that_of_the_server_name() {
    let (authority, server) = (Authority::new(), echo_of("host"));
    let names: [&[&str]; 3] = [&["default.test"], &["*.wild.test", "second.test"], &["exact.wild.test"]];
    let weir = with_certificates(&authority, &names);
    let shown: Vec<_> = (0..3).map(|index| weir.read(&format!("{index}.pem"))).collect();
    let gate = secure(weir, &server, &certificates(3), "");
    let client = TlsClient::build().trusting(&authority);
    for (name, index) in
        [("default.test", 0), ("a.wild.test", 1), ("SECOND.test", 1), ("exact.wild.test", 2), ("default.test", 0)]
    {
        let connection = client.connect(&gate.address, name);
        let certificate = &connection.tls().peer_certificates().unwrap()[0];
        let expected = weir_testing::Pair { cert: shown[index].clone(), key: String::new() }.der();
        assert_eq!(*certificate, expected, "{name}");
    }
    // An unknown name gets the first certificate, which is not for it.
    let error = client.try_connect(&gate.address, "a.b.wild.test").unwrap_err().to_string();
    assert!(error.contains("default.test") || error.contains("not valid for name"), "{error}");
    gate.stop();
}

#[test]
fn both_versions_of_tls_resume_sessions_and_the_oldest_one_can_be_raised() {
    let (authority, server) = (Authority::new(), echo_of("host"));
    let gate = secure(with_certificates(&authority, &[&["localhost"]]), &server, &certificates(1), "");
    for version in [&TLS12, &TLS13] {
        let versions = [version];
        let client = TlsClient::build().versions(&versions).trusting(&authority);
        let mut first = client.connect(&gate.address, "localhost");
        assert_eq!(first.tls().protocol_version(), Some(version.version));
        assert_eq!(first.tls().handshake_kind(), Some(HandshakeKind::Full));
        // Tickets of TLS 1.3 come after the handshake.
        first.get("/");
        let mut second = client.connect(&gate.address, "localhost");
        assert_eq!(second.tls().handshake_kind(), Some(HandshakeKind::Resumed), "{version:?}");
        second.get("/");
    }
    gate.stop();
    let tls = format!("{}\nmin_version = \"1.3\"", certificates(1));
    let gate = secure(with_certificates(&authority, &[&["localhost"]]), &server, &tls, "");
    let old = TlsClient::build().versions(&[&TLS12]).trusting(&authority);
    assert!(old.try_connect(&gate.address, "localhost").is_err());
    let new = TlsClient::build().versions(&[&TLS13]).trusting(&authority);
    assert_eq!(new.connect(&gate.address, "localhost").get("/").status, 200);
    gate.stop();
}

#[test]
fn http2_is_negotiated() {
    let (authority, server) = (Authority::new(), echo_of("host"));
    let gate = secure(with_certificates(&authority, &[&["localhost"]]), &server, &certificates(1), "");
    for (offered, expected) in [(&["h2", "http/1.1"][..], Some("h2")), (&["http/1.1"], Some("http/1.1")), (&[], None)] {
        let client = TlsClient::build().alpn(offered).trusting(&authority);
        let connection = client.connect(&gate.address, "localhost");
        let chosen = connection.tls().alpn_protocol().map(|protocol| String::from_utf8(protocol.to_vec()).unwrap());
        assert_eq!(chosen.as_deref(), expected);
    }
    let client = TlsClient::build().alpn(&["h2"]).trusting(&authority);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(&gate.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = tokio_rustls::TlsConnector::from(client.config()).connect(name, stream).await.unwrap();
        let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        for _ in 0..3 {
            let request = http::Request::get("https://api.test/x").body(Full::<Bytes>::default()).unwrap();
            let response = sender.send_request(request).await.unwrap();
            assert_eq!(response.status(), 200);
            assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "api.test");
        }
    });
    gate.stop();
}

#[test]
fn http_on_the_port_of_https_gets_an_explanation() {
    let (authority, server) = (Authority::new(), echo_of("host"));
    let gate = secure(with_certificates(&authority, &[&["localhost"]]), &server, &certificates(1), "");
    let answer = gate.get("/");
    assert_eq!((answer.status, answer.header("connection")), (400, Some("close")));
    assert!(answer.text().contains("HTTPS"), "{}", answer.text());
    // Bytes that are neither.
    let mut noise = TcpStream::connect(&gate.address).unwrap();
    noise.write_all(&[0x16, 3, 1, 0xff, 0xff, 1, 2, 3]).unwrap();
    let _ = Raw::on(noise).rest();
    let mut good = TlsClient::build().trusting(&authority).connect(&gate.address, "localhost");
    let metrics = good.get("/metrics").text().to_owned();
    for cause in ["plain_http", "tls_handshake"] {
        assert!(
            metrics.contains(&format!("weir_connections_ended_total{{cause=\"{cause}\"}} 1")),
            "{cause}: {metrics}"
        );
    }
    assert_eq!(server.requests(), 0);
    gate.stop();
}

#[test]
fn a_handshake_that_stalls_is_closed_and_an_idle_connection_after_it_is_not() {
    let (authority, server) = (Authority::new(), echo_of("host"));
    let weir = with_certificates(&authority, &[&["localhost"]]);
    weir.write("gate.toml", config(&server, &certificates(1), ""));
    let gate = Serving::gate_file(weir, &["--head-timeout", "300ms"]);
    let mut idle = TlsClient::build().trusting(&authority).connect(&gate.address, "localhost");
    let mut stalls = gate.connect();
    stalls.send([0x16, 3, 1]);
    assert_eq!(stalls.rest(), b"");
    assert_eq!(idle.get("/").status, 200);
    gate.stop();
}

#[test]
fn flags_give_one_listener_a_certificate() {
    let (authority, server) = (Authority::new(), echo_of("x-forwarded-proto"));
    let weir = with_certificates(&authority, &[&["localhost"]]);
    let gate =
        Serving::gate_in(weir, &["--upstream", &server.url(""), "--tls-cert", "0.pem", "--tls-key", "0-key.pem"]);
    let mut connection = TlsClient::build().trusting(&authority).connect(&gate.address, "localhost");
    assert_eq!(connection.get("/").text(), "https");
    gate.stop();
    let url = server.url("");
    let weir = Weir::new();
    let output = weir.run(&["gate", "--upstream", &url, "--listen", "0", "--tls-cert", "a.pem", "--tls-key", "b.pem"]);
    assert_eq!(output.code, 2);
    assert_eq!(output.one_line(), "--tls-cert, --tls-key: a.pem: No such file or directory");
    let output = weir.run(&["gate", "--upstream", &url, "--tls-cert", "a.pem"]);
    assert!(output.code == 2 && output.one_line().contains("--tls-key"), "{output:?}");
}
