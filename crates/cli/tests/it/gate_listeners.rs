//! Several listeners of a gateway: their routes, redirects, Unix sockets, the PROXY protocol, sockets of systemd.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::net::TcpListener;
use std::process::{Command, Stdio};

use weir_testing::{Authority, Raw, Reply, Running, Server, Serving, TlsClient, Weir, weir_path};

/// A gateway with these listeners and routes, in front of this server.
fn gate(weir: Weir, server: &Server, listeners: &str, routes: &str) -> Serving {
    let url = server.url("");
    weir.write("gate.toml", format!("{listeners}\nupstreams.backend.urls = [\"{url}\"]\n{routes}"));
    Serving::gate_file(weir, &[])
}

const ALL: &str = "[[routes]]\nmatch = { path = \"/{*rest}\" }\n";

fn two(more: &str) -> String {
    format!(
        "listeners = [{{ name = \"public\", address = \"127.0.0.1:0\" {more} }}, \
         {{ name = \"internal\", address = \"127.0.0.1:0\" }}]"
    )
}

#[test]
fn each_listener_has_its_routes() {
    let server = Server::start(|seen| Reply::ok(seen.line()));
    let routes = "[[routes]]\nmatch = { path = \"/both\" }\n\
        [[routes]]\nmatch = { path = \"/secret\" }\nlisteners = [\"internal\"]\n\
        [[routes]]\nmatch = { path = \"/same\" }\nlisteners = [\"internal\"]\nrewrite = { path = \"/of-internal\" }\n\
        [[routes]]\nmatch = { path = \"/same\" }\nlisteners = [\"public\"]\nrewrite = { path = \"/of-public\" }\n";
    let gate = gate(Weir::new(), &server, &two(""), routes);
    let (public, internal) = (gate.listener("public"), gate.listener("internal"));
    assert_eq!(gate.address, public);
    let get = |address: &str, path: &str| {
        let answer = Raw::connect(address).get(path);
        (answer.status, answer.text().trim_end().to_owned())
    };
    assert_eq!(get(&public, "/both").0, 200);
    assert_eq!(get(&internal, "/both").0, 200);
    assert_eq!((get(&public, "/secret").0, get(&internal, "/secret").0), (404, 200));
    assert_eq!(get(&public, "/same").1, "GET /of-public HTTP/1.1");
    assert_eq!(get(&internal, "/same").1, "GET /of-internal HTTP/1.1");
    let metrics = get(&internal, "/metrics").1;
    assert!(metrics.contains("route=\"/same @public\",outcome=\"succeeded\"} 1"), "{metrics}");
    gate.stop();
}

#[test]
fn one_listener_redirects_to_the_other() {
    let (authority, server) = (Authority::new(), Server::hello());
    let weir = Weir::new();
    authority.issue("localhost").files(&weir, "site");
    let listeners = "listeners = [{ name = \"http\", address = \"127.0.0.1:0\", redirect_to_https = 8443 }, \
        { name = \"https\", address = \"127.0.0.1:0\", tls = { certificates = [{ cert = \"site.pem\", key = \"site-key.pem\" }] } }]";
    let gate = gate(weir, &server, listeners, ALL);
    let mut plain = Raw::connect(&gate.listener("http"));
    plain.send("POST /a?b=c HTTP/1.1\r\nHost: shop.test:8080\r\nContent-Length: 2\r\n\r\nhi");
    let answer = plain.answer();
    assert_eq!((answer.status, answer.header("location")), (308, Some("https://shop.test:8443/a?b=c")));
    let mut secure = TlsClient::build().trusting(&authority).connect(&gate.listener("https"), "localhost");
    assert_eq!(secure.get("/a").text(), "hello");
    assert_eq!(server.requests(), 1);
    gate.stop();
}

#[test]
fn a_unix_socket_is_served_and_removed() {
    let server = Server::start(|seen| Reply::ok(seen.header("x-forwarded-for").unwrap()));
    let weir = Weir::new();
    let path = weir.path("gate.sock");
    let url = server.url("");
    let gate =
        Serving::gate_in(weir, &["--upstream", &url, "--listen", "unix:gate.sock", "-w", "2", "--access-log", "-"]);
    assert_eq!(gate.url, "unix:gate.sock");
    for _ in 0..4 {
        let mut connection = Raw::unix(&path);
        assert_eq!(connection.get("/").text(), "127.0.0.1");
        assert_eq!(connection.post("/", vec![b'x'; 300_000]).status, 200);
    }
    let second = gate.weir.run(&["gate", "--upstream", &url, "--listen", "unix:gate.sock"]);
    assert!(second.code == 2 && second.one_line().contains("in use"), "{second:?}");
    assert!(path.exists());
    let socket = path.clone();
    let output = gate.stop();
    assert!(output.stderr.contains("\"client\":\"unix:\""), "{}", output.stderr);
    assert!(!socket.exists());
}

#[test]
fn a_socket_of_a_crashed_server_is_replaced_and_other_files_are_not() {
    let weir = Weir::new();
    drop(std::os::unix::net::UnixListener::bind(weir.path("gate.sock")).unwrap());
    weir.write("data", "precious");
    let output = weir.run(&["gate", "--upstream", "http://127.0.0.1:9", "--listen", "unix:data"]);
    assert_eq!((output.code, weir.read("data").as_str()), (2, "precious"));
    let gate = Serving::gate_in(weir, &["--upstream", "http://127.0.0.1:9", "--listen", "unix:gate.sock"]);
    assert_eq!(Raw::unix(&gate.weir.path("gate.sock")).get("/healthz").status, 200);
    gate.stop();
}

#[test]
fn trusted_proxies_name_the_client() {
    let server = Server::start(|seen| Reply::ok(seen.header("x-forwarded-for").unwrap()));
    let gate = gate(Weir::new(), &server, &two(", proxy_protocol = [\"127.0.0.0/8\"]"), ALL);
    let public = gate.listener("public");
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let v2 = [&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"[..], &[203, 0, 113, 9, 127, 0, 0, 1, 0x12, 0x34, 0, 80]].concat();
    for (header, expected) in [
        (b"PROXY TCP4 203.0.113.7 127.0.0.1 4711 80\r\n".to_vec(), "203.0.113.7"),
        (b"PROXY TCP6 2001:db8::7 ::1 4711 80\r\n".to_vec(), "2001:db8::7"),
        (b"PROXY UNKNOWN\r\n".to_vec(), "127.0.0.1"),
        (v2.clone(), "203.0.113.9"),
    ] {
        // At once, and in two pieces.
        let mut whole = Raw::connect(&public);
        whole.send([&header[..], request.as_bytes()].concat());
        assert_eq!(whole.answer().text(), expected);
        assert_eq!(whole.get("/").text(), expected, "all requests of the connection");
        let mut pieces = Raw::connect(&public);
        pieces.send(&header[..7]);
        pieces.send(&header[7..]);
        pieces.send(request);
        assert_eq!(pieces.answer().text(), expected);
    }
    // Without a header, or with a wrong one, nothing is served.
    let requests = server.requests();
    for bytes in [request.as_bytes(), b"PROXY TCP4 a b c d\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let mut connection = Raw::connect(&public);
        connection.send(bytes);
        assert_eq!(connection.rest(), b"");
    }
    assert_eq!(server.requests(), requests);
    // Where it is not expected it is no request.
    let mut other = Raw::connect(&gate.listener("internal"));
    other.send(format!("PROXY TCP4 203.0.113.7 127.0.0.1 4711 80\r\n{request}"));
    assert_eq!(other.answer().status, 400);
    gate.stop();
}

#[test]
fn a_proxy_header_comes_before_tls() {
    let (authority, server) =
        (Authority::new(), Server::start(|seen| Reply::ok(seen.header("x-forwarded-for").unwrap())));
    let weir = Weir::new();
    authority.issue("localhost").files(&weir, "site");
    let listeners = "listeners = [{ address = \"127.0.0.1:0\", proxy_protocol = [\"127.0.0.1\"], \
        tls = { certificates = [{ cert = \"site.pem\", key = \"site-key.pem\" }] } }]";
    let gate = gate(weir, &server, listeners, ALL);
    let mut stream = std::net::TcpStream::connect(&gate.address).unwrap();
    std::io::Write::write_all(&mut stream, b"PROXY TCP4 203.0.113.7 127.0.0.1 4711 443\r\n").unwrap();
    let mut connection = TlsClient::build().trusting(&authority).on(stream, "localhost").unwrap();
    assert_eq!(connection.get("/").text(), "203.0.113.7");
    gate.stop();
}

/// Starts the gateway as systemd would: with the socket as descriptor 3, and its number in the environment. A shell sets
/// the number of the process, which stays that of the program it becomes.
#[test]
fn a_socket_of_systemd_is_used() {
    let server = Server::hello();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    for (name, is_known) in [("web", true), ("0", true), ("other", false)] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        let run = format!(
            "exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=web; exec {} gate --upstream {} --listen systemd:{name}",
            weir_path().display(),
            server.url("")
        );
        command.args(["-c", &run]).current_dir(folder.path());
        // A shell passes only small numbers on by name: so the socket comes as its standard input.
        command.stdin(Stdio::from(std::os::fd::OwnedFd::from(listener.try_clone().unwrap())));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let running = Running::new(&mut command);
        if !is_known {
            let output = running.finish();
            assert!(output.code == 2 && output.one_line().contains("none of this name (web)"), "{output:?}");
            continue;
        }
        // The socket listens already: the request waits for the program.
        assert_eq!(Raw::connect(&address).get("/").text(), "hello");
        running.signal(rustix::process::Signal::TERM);
        let output = running.finish();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        assert!(output.stdout.contains(&format!("http://{address}")), "{}", output.stdout);
    }
}

#[test]
fn flags_of_one_listener_and_several_exclude_each_other() {
    let weir = Weir::new();
    weir.write("gate.toml", format!("{}\nupstreams.backend.urls = [\"http://127.0.0.1:9\"]\n{ALL}", two("")));
    let output = weir.run(&["gate", "--config", "gate.toml", "--listen", "0"]);
    assert!(output.code == 2 && output.one_line().starts_with("--listen and the file's [[listeners]]"), "{output:?}");
}
