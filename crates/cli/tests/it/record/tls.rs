//! HTTPS through tunnels, with certificates of the recorder's own authority.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use weir_testing::{Authority, Reply, Server, Serving, Weir, until};

use super::{PATIENCE, assert_plays, lines};

/// Name of the services, which is in their certificates.
const NAME: &str = "localhost";

type TlsStream = StreamOwned<ClientConnection, TcpStream>;

fn client_config(ca: &Path, protocols: &[&str]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// A socket in a tunnel to a service.
fn tunnel(recorder: &Serving, to: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&recorder.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&head));
    stream
}

/// TLS in a tunnel to a service on this machine.
fn connect(recorder: &Serving, server: &Server, ca: &Path) -> TlsStream {
    let name = ServerName::try_from(NAME).unwrap();
    let connection = ClientConnection::new(client_config(ca, &[]), name).unwrap();
    StreamOwned::new(connection, tunnel(recorder, &format!("{NAME}:{}", server.port())))
}

/// A request that closes its connection, and all that comes back.
fn ask(stream: &mut TlsStream, line: &str, headers: &str) -> std::io::Result<String> {
    stream.write_all(format!("{line} HTTP/1.1\r\nHost: {NAME}\r\n{headers}Connection: close\r\n\r\n").as_bytes())?;
    let mut all = Vec::new();
    match stream.read_to_end(&mut all) {
        Err(error) if error.kind() != std::io::ErrorKind::UnexpectedEof => Err(error),
        _ => Ok(String::from_utf8(all).unwrap()),
    }
}

/// A service with TLS that gives tokens and wants them; and the folder with the certificate that it has.
fn service() -> (Weir, Server, Authority) {
    let (weir, authority) = (Weir::new(), Authority::new());
    authority.file(&weir, "service.pem");
    let closing = |status: u16, body: &str| {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} Said\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
        Reply::raw(format!("{head}{body}")).close()
    };
    let server = Server::build().tls(authority.service(NAME)).start(move |seen| {
        let has_token = seen.header("authorization") == Some("Bearer t1-0-59ea4717472f1c4b");
        match seen.line().split(' ').nth(1) {
            Some("/login") => closing(200, "{\"token\": \"t1-0-59ea4717472f1c4b\"}"),
            _ if has_token => closing(200, "[]"),
            _ => closing(401, ""),
        }
    });
    (weir, server, authority)
}

#[test]
fn https_is_recorded_with_one_authority_for_all_recordings() {
    let (weir, server, _authority) = service();
    let recorder = Serving::record_in(weir, &["-o", "shop.hurl", "--cacert", "service.pem"]);
    let ca = recorder.weir.path("ca/ca.pem");
    let login = ask(&mut connect(&recorder, &server, &ca), "GET /login", "").unwrap();
    assert!(login.starts_with("HTTP/1.1 200 ") && login.ends_with("{\"token\": \"t1-0-59ea4717472f1c4b\"}"), "{login}");
    let token = "Authorization: Bearer t1-0-59ea4717472f1c4b\r\n";
    assert!(ask(&mut connect(&recorder, &server, &ca), "GET /items", token).unwrap().ends_with("\r\n\r\n[]"));
    let mode = |name: &str| fs::metadata(recorder.weir.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("ca"), mode("ca/ca-key.pem"), mode("ca/ca.pem")), (0o700, 0o600, 0o644));
    let before = fs::read(&ca).unwrap();
    let (output, weir) = recorder.interrupt();
    assert_eq!(output.code, 0, "{output:?}");
    let next = "next: weir load -s shop.hurl --variables-file shop.env --cacert service.pem";
    assert!(lines(&output).contains(&next), "{output:?}");
    assert!(
        weir.read("shop.hurl").contains("GET {{base_url}}/items\nHost: localhost\nAuthorization: Bearer {{token}}\n")
    );
    assert_plays(&weir, 2, &["--cacert", "service.pem"]);
    let again = Serving::record_in(weir, &["-o", "again.hurl", "--insecure"]);
    assert!(ask(&mut connect(&again, &server, &ca), "GET /login", "").unwrap().starts_with("HTTP/1.1 200 "));
    assert_eq!(fs::read(&ca).unwrap(), before);
    assert_eq!(again.interrupt().0.code, 0);
}

#[test]
fn a_client_that_does_not_trust_the_authority_is_reported_once() {
    let (weir, server, _authority) = service();
    let recorder = Serving::record_in(weir, &["-o", "shop.hurl", "--cacert", "service.pem"]);
    for _ in 0..2 {
        // It knows the service's own authority alone.
        let mut stream = connect(&recorder, &server, &recorder.weir.path("service.pem"));
        ask(&mut stream, "GET /login", "").unwrap_err();
        // The alert is sent with the error.
        let _ = stream.sock.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = stream.sock.read_to_end(&mut rest);
    }
    let (output, _) = recorder.interrupt();
    assert_eq!(output.code, 3, "{output:?}");
    let note = "localhost: the client does not trust weir's CA: add ca/ca.pem to its certificates, or pass the host through \
        with --exclude localhost";
    assert_eq!(lines(&output).iter().filter(|line| **line == note).count(), 1, "{output:?}");
    assert!(lines(&output).contains(&"no request was recorded; the client does not trust weir's CA"), "{output:?}");
    assert!(lines(&output).contains(&"  TLS that clients ended: localhost (2)"), "{output:?}");
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_host_that_is_excluded_shows_its_own_certificate() {
    let (weir, server, _authority) = service();
    let recorder = Serving::record_in(weir, &["-o", "shop.hurl", "--exclude", NAME]);
    let own = recorder.weir.path("service.pem");
    assert!(ask(&mut connect(&recorder, &server, &own), "GET /login", "").unwrap().starts_with("HTTP/1.1 200 "));
    let (output, _) = recorder.interrupt();
    assert_eq!(output.code, 3);
    assert!(lines(&output).contains(&"  passed unread: localhost"), "{output:?}");
    assert!(lines(&output).contains(&"no request was recorded; --only and --exclude left all hosts out"), "{output:?}");
}

#[test]
fn a_service_whose_certificate_is_not_trusted_is_502_with_a_remedy() {
    let (weir, server, _authority) = service();
    let recorder = Serving::record_in(weir, &["-o", "shop.hurl"]);
    let answer = ask(&mut connect(&recorder, &server, &recorder.weir.path("ca/ca.pem")), "GET /login", "").unwrap();
    assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
    assert!(answer.contains("trust its certificate with --cacert FILE, or any with --insecure"), "{answer}");
    assert_eq!(server.requests(), 0);
    assert_eq!(recorder.interrupt().0.code, 3);
}

#[test]
fn http2_of_clients_is_recorded() {
    let (weir, server, _authority) = service();
    let recorder = Serving::record_in(weir, &["-o", "shop.hurl", "--cacert", "service.pem"]);
    let config = client_config(&recorder.weir.path("ca/ca.pem"), &["h2", "http/1.1"]);
    let stream = tunnel(&recorder, &format!("{NAME}:{}", server.port()));
    stream.set_nonblocking(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let url = format!("https://{NAME}:{}/items", server.port());
    let text = runtime.block_on(async {
        let stream = tokio::net::TcpStream::from_std(stream).unwrap();
        let connector = tokio_rustls::TlsConnector::from(config);
        let stream = connector.connect(ServerName::try_from(NAME).unwrap(), stream).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let request = http::Request::post(&url)
            .header("authorization", "Bearer t1-0-59ea4717472f1c4b")
            .header("cookie", "a=1")
            .header("cookie", "b=2")
            .body(Full::new(Bytes::from("{}")))
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        response.into_body().collect().await.unwrap().to_bytes()
    });
    assert_eq!(text, "[]");
    let seen = &server.seen()[0];
    assert_eq!((seen.line(), seen.body.as_slice()), ("POST /items HTTP/1.1", &b"{}"[..]));
    assert_eq!(seen.header("cookie"), Some("a=1; b=2"));
    assert_eq!(seen.header("host"), Some(format!("{NAME}:{}", server.port()).as_str()));
    until("the record", PATIENCE, || recorder.weir.read("shop.recording.har").contains("\"HTTP/2.0\""));
    let (output, weir) = recorder.interrupt();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(weir.read("shop.hurl").starts_with("POST {{base_url}}/items\n"));
}

#[test]
fn a_key_that_others_can_read_or_that_has_another_certificate_is_an_error() {
    let (weir, server, _authority) = service();
    let recorder = Serving::record_in(weir, &["-o", "shop.hurl", "--insecure"]);
    ask(&mut connect(&recorder, &server, &recorder.weir.path("ca/ca.pem")), "GET /login", "").unwrap();
    let (_, weir) = recorder.interrupt();
    let wrong = |expected: &str| {
        let output = weir.run(&["record", "--listen", "127.0.0.1:0", "--ca-dir", "ca"]);
        assert_eq!(output.code, 2, "{output:?}");
        assert_eq!(output.one_line(), format!("certificate authority ca/{expected}"));
    };
    let key = weir.path("ca/ca-key.pem");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    wrong("ca-key.pem: others can read this private key; chmod 600 ca/ca-key.pem, or remove it for a new one");
    fs::remove_file(&key).unwrap();
    wrong("ca.pem: not the certificate of ca-key.pem beside it; remove both for new ones");
    fs::write(&key, "x").unwrap();
    wrong("ca-key.pem: not a private key; remove it for a new one");
}
