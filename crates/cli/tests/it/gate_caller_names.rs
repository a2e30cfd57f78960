//! What upstreams learn of a caller: its address by the PROXY protocol, its certificate in headers.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{Read, Write};
use std::net::TcpListener;

use weir_testing::{Authority, Raw, Reply, Server, Serving, TlsClient, Weir};

const ALL: &str = "[[routes]]\nmatch = { path = \"/{*rest}\" }\n";

/// A gateway that names clients to the second gateway, by this version and with TLS or without, and the second one in
/// front of the server.
fn chain(server: &Server, (version, protocol): (&str, &str), authority: Option<&Authority>) -> (Serving, Serving) {
    let (inner, outer) = (Weir::new(), Weir::new());
    let (mut tls, mut trust, mut scheme) = ("", "", "http");
    if let Some(authority) = authority {
        authority.issue("127.0.0.1").files(&inner, "site");
        authority.file(&outer, "ca.pem");
        tls = ", tls = { certificates = [{ cert = \"site.pem\", key = \"site-key.pem\" }] }";
        (trust, scheme) = ("tls = { cacert = \"ca.pem\" }\n", "https");
    }
    inner.write(
        "gate.toml",
        format!(
            "listeners = [{{ address = \"127.0.0.1:0\", proxy_protocol = [\"127.0.0.1\"]{tls} }}]\nadmin = \"127.0.0.1:0\"\n\
             upstreams.backend.urls = [\"{}\"]\n{ALL}",
            server.url("")
        ),
    );
    let inner = Serving::gate_file(inner, &[]);
    outer.write(
        "gate.toml",
        format!(
            "listeners = [{{ address = \"127.0.0.1:0\", proxy_protocol = [\"127.0.0.1\"] }}]\n[upstreams.backend]\n\
             urls = [\"{scheme}://{}\"]\nproxy_protocol = \"{version}\"\nprotocol = \"{protocol}\"\n{trust}\
             health = {{ check = {{ tcp = true, interval = \"50ms\" }} }}\n{ALL}",
            inner.address
        ),
    );
    (Serving::gate_file(outer, &[]), inner)
}

#[test]
fn upstreams_get_the_address_of_each_client() {
    let server = Server::start(|seen| Reply::ok(seen.header("x-forwarded-for").unwrap()));
    let authority = Authority::new();
    for (version, authority) in [
        (("v1", "auto"), None),
        (("v2", "auto"), None),
        (("v2", "http2"), None),
        (("v2", "auto"), Some(&authority)),
        (("v1", "http1"), Some(&authority)),
    ] {
        let (outer, inner) = chain(&server, version, authority);
        // In turn, so that a connection that is kept would carry another client's request.
        for _ in 0..3 {
            for (header, client) in [
                ("PROXY TCP4 203.0.113.7 127.0.0.1 4711 80\r\n", "203.0.113.7"),
                ("PROXY TCP6 2001:db8::7 ::1 4711 80\r\n", "2001:db8::7"),
                ("PROXY UNKNOWN\r\n", "127.0.0.1"),
            ] {
                let mut connection = Raw::connect(&outer.address);
                connection.send(format!("{header}GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
                assert_eq!(connection.answer().text(), client, "{version:?}");
                assert_eq!(connection.get("/").text(), client, "{version:?}");
            }
        }
        let output = outer.stop();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        // Connections of health checks have a header, too: none was rejected.
        assert_eq!(inner.stop().stderr, "");
    }
}

#[test]
fn the_header_comes_first_and_names_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let weir = Weir::new();
    weir.write(
        "gate.toml",
        format!(
            "[upstreams.b]\nurls = [\"http://{}\"]\nproxy_protocol = \"v1\"\n{ALL}",
            listener.local_addr().unwrap()
        ),
    );
    let gate = Serving::gate_in(weir, &["--config", "gate.toml"]);
    let mut client = std::net::TcpStream::connect(&gate.address).unwrap();
    client.write_all(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let (mut upstream, _) = listener.accept().unwrap();
    let expected =
        format!("PROXY TCP4 127.0.0.1 0.0.0.0 {} 0\r\nGET /a HTTP/1.1\r\n", client.local_addr().unwrap().port());
    let mut first = vec![0; expected.len()];
    upstream.read_exact(&mut first).unwrap();
    assert_eq!(String::from_utf8(first).unwrap(), expected);
    upstream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").unwrap();
    let mut raw = Raw::on(client);
    assert_eq!(raw.answer().text(), "ok");
    gate.stop();
}

#[test]
fn upstreams_get_the_certificates_of_clients_and_no_forged_ones() {
    let server = Server::start(|seen| {
        let all = ["x-client-subject", "x-client-cn", "x-client-san", "x_client_cn"];
        Reply::ok(&all.map(|name| seen.header(name).unwrap_or("-")).join(" "))
    });
    let (authority, weir) = (Authority::new(), Weir::new());
    authority.issue("localhost").files(&weir, "site");
    authority.file(&weir, "ca.pem");
    weir.write(
        "gate.toml",
        format!(
            "[client_certificate_headers]\nsubject = \"x-client-subject\"\ncommon_name = \"x-client-cn\"\n\
             san = \"X-Client-SAN\"\n[[listeners]]\naddress = \"127.0.0.1:0\"\ntls = {{ certificates = [{{ cert = \
             \"site.pem\", key = \"site-key.pem\" }}], client_ca = \"ca.pem\", client_auth = \"optional\" }}\n\
             [upstreams.backend]\nurls = [\"{}\"]\n{ALL}",
            server.url("")
        ),
    );
    let gate = Serving::gate_file(weir, &[]);
    let forged = "GET / HTTP/1.1\r\nHost: a\r\nX-Client-Subject: CN=admin\r\nX-Client-CN: admin\r\nx_client_cn: admin\r\n\
                  X-Client-San: admin\r\n\r\n";
    let pair = authority.issue_for(&["billing.test", "b.test"]);
    let known = TlsClient::build().identity(&pair).trusting(&authority);
    let mut known = known.connect(&gate.address, "localhost");
    known.send(forged);
    let answer = known.answer();
    let words: Vec<&str> = answer.text().split(' ').collect();
    assert_eq!(words.last(), Some(&"-"), "{}", answer.text());
    assert!(answer.text().contains(" billing.test,b.test -"), "{}", answer.text());
    assert!(!answer.text().contains("admin"), "{}", answer.text());
    let mut nameless = TlsClient::build().trusting(&authority).connect(&gate.address, "localhost");
    nameless.send(forged);
    assert_eq!(nameless.answer().text(), "- - - -");
    gate.stop();
}
