//! Callers with certificates, and what a route makes of them.

use weir_testing::{Authority, TlsClient};

use super::{certificates, echo_of, secure, with_certificates};

#[test]
fn a_required_certificate_is_verified() {
    let (authority, other, server) = (Authority::new(), Authority::new(), echo_of("host"));
    let weir = with_certificates(&authority, &[&["localhost"]]);
    authority.file(&weir, "ca.pem");
    let tls = format!("{}\nclient_ca = \"ca.pem\"", certificates(1));
    let gate = secure(weir, &server, &tls, "");
    let (known, unknown) = (authority.issue("billing.test"), other.issue("billing.test"));
    let mut welcome = TlsClient::build().identity(&known).trusting(&authority).connect(&gate.address, "localhost");
    assert_eq!(welcome.get("/").status, 200);
    for identity in [None, Some(&unknown)] {
        let client = TlsClient::build();
        let client = match identity {
            Some(pair) => client.identity(pair),
            None => client,
        };
        // With TLS 1.3 the client learns of it from the first read.
        if let Ok(mut connection) = client.trusting(&authority).try_connect(&gate.address, "localhost") {
            let _ = connection.try_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| connection.answer())).is_err());
        }
    }
    assert_eq!(server.requests(), 1);
    gate.stop();
}

#[test]
fn an_optional_certificate_identifies_its_caller() {
    let (authority, server) = (Authority::new(), echo_of("host"));
    let weir = with_certificates(&authority, &[&["localhost"]]);
    authority.file(&weir, "ca.pem");
    let tls = format!("{}\nclient_ca = \"ca.pem\"\nclient_auth = \"optional\"", certificates(1));
    let route = "caller = { certificate = \"san\" }\nrate_limit = { rate = \"1/1h\", burst = 2 }";
    let gate = secure(weir, &server, &tls, route);
    let (first, second) = (authority.issue("first.test"), authority.issue("second.test"));
    let status = |client: &TlsClient| client.connect(&gate.address, "localhost").get("/").status;
    let first = TlsClient::build().identity(&first).trusting(&authority);
    let second = TlsClient::build().identity(&second).trusting(&authority);
    let nameless = TlsClient::build().trusting(&authority);
    for client in [&first, &second, &nameless] {
        // Each has a rate of its own, on connections with full handshakes and with resumed sessions.
        assert_eq!([status(client), status(client), status(client)], [200, 200, 429]);
    }
    gate.stop();
}
