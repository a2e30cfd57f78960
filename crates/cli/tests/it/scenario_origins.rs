//! Credentials belong to an origin: over redirects, in files with several hosts, and from the command line.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::{Arc, Mutex};

use weir_testing::{Authority, Reply, Seen, Server, Weir, load};

/// Headers of these names that a request has.
fn secrets(seen: &Seen) -> Vec<&'static str> {
    let names = ["authorization", "proxy-authorization", "x-api-key", "x-auth-token", "cookie"];
    names.into_iter().filter(|name| seen.header(name).is_some()).collect()
}

/// Service that redirects `/to` to a place that is set later, and responds to all else.
fn redirecting() -> (Server, Arc<Mutex<String>>) {
    let place = Arc::new(Mutex::new(String::new()));
    let to = Arc::clone(&place);
    let server = Server::start(move |seen| match seen.line().contains(" /to ") {
        true => {
            Reply::raw(format!("HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\n\r\n", to.lock().unwrap()))
        }
        false => Reply::ok("hello"),
    });
    (server, place)
}

const SECRETS: [&str; 6] = ["-H", "Authorization: Bearer x", "-H", "X-Api-Key: k", "-H", "Cookie: c=1"];
const ALL: [&str; 3] = ["authorization", "x-api-key", "cookie"];

#[test]
fn no_header_with_a_secret_name_follows_a_redirect_to_another_port_or_comes_back() {
    let (first, place) = redirecting();
    let (second, back) = redirecting();
    *place.lock().unwrap() = second.url("/to");
    *back.lock().unwrap() = first.url("/end");
    let flags = [&SECRETS[..], &["-H", "X-Other: o", "--max-redirects", "5", "-n", "1"]].concat();
    load(&first.url("/to"), &flags);
    let at_first: Vec<_> = first.seen().iter().filter(|seen| seen.line().starts_with("GET ")).map(secrets).collect();
    assert_eq!(at_first, [&ALL[..], &[]], "what was left out does not come back");
    assert_eq!(second.seen().iter().map(secrets).collect::<Vec<_>>(), [&[] as &[&str]]);
    assert_eq!(second.seen()[0].header("x-other"), Some("o"));
    assert_eq!(second.seen()[0].header("host"), Some(second.url("").trim_start_matches("http://")));
}

#[test]
fn a_redirect_within_the_origin_keeps_credentials_and_one_to_plain_text_does_not() {
    let (plain, place) = redirecting();
    *place.lock().unwrap() = "/end".to_owned();
    load(&plain.url("/to"), &[&SECRETS[..], &["--max-redirects", "5", "-n", "1"]].concat());
    assert!(plain.seen().iter().all(|seen| secrets(seen) == ALL), "{:?}", plain.seen());
    let authority = Authority::new();
    let weir = Weir::new();
    let cacert = authority.file(&weir, "ca.pem");
    let down = plain.url("/down");
    let safe = Server::build()
        .tls(authority.service("127.0.0.1"))
        .start(move |_| Reply::raw(format!("HTTP/1.1 307 Down\r\nLocation: {down}\r\nContent-Length: 0\r\n\r\n")));
    let flags = ["--cacert", cacert.to_str().unwrap(), "--max-redirects", "5", "-n", "1"];
    load(&safe.url("/"), &[&SECRETS[..], &flags].concat());
    let seen = plain.seen();
    let down: Vec<_> = seen.iter().filter(|seen| seen.line().contains("/down")).collect();
    assert_eq!(down.len(), 1);
    assert_eq!(secrets(down[0]), [] as [&str; 0]);
}

#[test]
fn credentials_of_the_command_line_go_to_the_origin_of_its_url_and_those_of_a_file_where_it_says() {
    let (own, other) = (Server::hello(), Server::hello());
    let weir = Weir::new();
    let file = format!(
        "GET /a\nHTTP 200\nGET {url}/b\nHTTP 200\nGET {url}/c\nX-Auth-Token: t\nHTTP 200\n[Captures]\nword: body\nGET \
         http://{{{{host}}}}/{{{{word}}}}\nHTTP 200\n",
        url = other.url("")
    );
    weir.write("two.hurl", file);
    let host = other.url("").replace("http://", "");
    let flags = ["-s", "two.hurl", "-n", "1", "--variable", &format!("host={host}")];
    weir.load(&own.url(""), &[&SECRETS[..], &flags].concat());
    assert!(own.seen().iter().filter(|seen| seen.line().contains("/a")).all(|seen| secrets(seen) == ALL));
    let found: Vec<_> = other.seen().iter().map(|seen| (seen.line().to_owned(), secrets(seen))).collect();
    let line = |path: &str| format!("GET {path} HTTP/1.1");
    assert_eq!(found, [(line("/b"), vec![]), (line("/c"), vec!["x-auth-token"]), (line("/hello"), vec![])]);
}

#[test]
fn credentials_of_the_command_line_need_their_url_where_scenarios_have_several_hosts() {
    let (own, other) = (Server::hello(), Server::hello());
    let weir = Weir::new();
    weir.write("one.hurl", format!("GET {}\nHTTP 200\n", own.url("/a")));
    weir.write("other.hurl", format!("GET {}\nHTTP 200\n", other.url("/b")));
    weir.write("both.hurl", format!("GET {}\nHTTP 200\nGET {}\nHTTP 200\n", own.url("/a"), other.url("/b")));
    for files in [&["-s", "both.hurl"][..], &["-s", "one.hurl", "-s", "other.hurl"]] {
        for secret in [&["-H", "X-Api-Key: k"][..], &["-a", "me:pw"]] {
            let output = weir.run(&[&["load", "-n", "2"], files, secret].concat());
            assert_eq!(output.code, 2, "{files:?} {output:?}");
            assert!(output.stderr.contains("of the command line") && output.stderr.contains("before -s"), "{output:?}");
        }
        let output = weir.run(&[&["load", "-n", "2", "-q"], files, &["-H", "X-Other: o"]].concat());
        assert_eq!(output.code, 0, "{output:?}");
        let output = weir.run(&[&["load", &own.url(""), "-n", "2", "-q"], files, &["-H", "X-Api-Key: k"]].concat());
        assert_eq!(output.code, 0, "{output:?}");
    }
    assert!(other.seen().iter().all(|seen| secrets(seen).is_empty()));
    assert!(own.seen().iter().any(|seen| secrets(seen) == ["x-api-key"]));
}

#[test]
fn a_location_whose_host_browsers_read_otherwise_fails_the_step() {
    let (first, place) = redirecting();
    let other = Server::hello();
    let host = other.url("").replace("http://", "");
    for location in [
        format!("http://127.0.0.1\\@{host}/"),
        format!("/\\{host}/"),
        format!("\\\\{host}/"),
        format!("/\t/{host}/"),
        format!("http:/{host}/"),
        format!("http:{host}/"),
        format!("http:///{host}/"),
        format!("http://127.0.0.1%40{host}/"),
    ] {
        *place.lock().unwrap() = location.clone();
        let output = Weir::new().run(&["load", &first.url("/to"), "--max-redirects", "5", "-n", "1", "-q"]);
        assert_ne!(output.code, 0, "{location}: {output:?}");
        assert!(other.seen().is_empty(), "{location}");
    }
}

#[test]
fn a_url_whose_host_browsers_read_otherwise_is_one_line() {
    for url in [r"http://127.0.0.1\@localhost:1/", r"http:\\localhost:1/", "http:/localhost:1/", "http:///localhost:1/"]
    {
        let output = Weir::new().run(&["load", url, "-n", "1"]);
        assert_eq!(output.code, 2, "{url}: {output:?}");
        assert!(output.one_line().contains("invalid URL"), "{url}: {output:?}");
    }
}
