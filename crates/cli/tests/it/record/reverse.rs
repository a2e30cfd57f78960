//! Reverse proxy for one service (`--upstream`).

use weir_testing::{Reply, Server, Serving, Weir};

use super::{assert_plays, lines, recorder, send, visit};

#[test]
fn a_client_without_a_proxy_is_recorded_and_played_against_the_service() {
    let shop = Serving::start(&["shop", "--csrf"]);
    let recorder = recorder(&["--upstream", &shop.url]);
    visit(&recorder, "");
    let (output, weir) = recorder.interrupt();
    assert_eq!(output.code, 0, "{output:?}");
    assert!(lines(&output)[0].starts_with(&format!("recording {} at http://127.0.0.1:", shop.url)), "{output:?}");
    assert!(weir.read("shop.env").contains(&format!("base_url={}\n", shop.url)));
    assert_plays(&weir, 5, &[]);
}

#[test]
fn both_sides_see_their_own_addresses() {
    let server = Server::start(|seen| {
        let origin = format!("http://{}", seen.header("host").unwrap_or_default());
        Reply::raw(format!(
            "HTTP/1.1 302 Found\r\nLocation: {origin}/home?x=1\r\nSet-Cookie: a=1; Domain=h.test; Secure; Path=/\r\n\
             Content-Length: 0\r\n\r\n"
        ))
    });
    let recorder = recorder(&["--upstream", &server.url("")]);
    let headers = format!("Origin: {0}\r\nReferer: {0}/form\r\n", "http://client");
    let answer = send(&recorder, "POST /login", &headers, "a=1");
    assert_eq!(answer.header("location"), Some("http://client/home?x=1"));
    assert_eq!(answer.header("set-cookie"), Some("a=1; Path=/"));
    let seen = &server.seen()[0];
    assert_eq!(seen.header("host"), Some(server.address().as_str()));
    assert_eq!(seen.header("origin"), Some(server.url("").as_str()));
    assert_eq!(seen.header("referer"), Some(server.url("/form").as_str()));
    let (_, weir) = recorder.interrupt();
    let hurl = weir.read("shop.hurl");
    assert!(hurl.starts_with("POST {{base_url}}/login\nOrigin: {{base_url}}\nReferer: {{base_url}}/form\n"), "{hurl}");
}

#[test]
fn an_upstream_is_a_scheme_and_a_host_and_not_the_recorder() {
    let weir = Weir::new();
    let wrong = |args: &[&str]| {
        let output = weir.run(&[&["record", "-o", "x.hurl"], args].concat());
        assert_eq!(output.code, 2, "{output:?}");
        output.one_line().to_owned()
    };
    assert!(wrong(&["--upstream", "http://h/api"]).contains("paths belong to requests; write http://host:port"));
    assert!(wrong(&["--upstream", "http://h", "--only", "h"]).contains("--only"));
    let busy = Server::hello();
    let own = wrong(&["--listen", &busy.address(), "--upstream", "http://127.0.0.1:1"]);
    assert!(own.starts_with(&format!("cannot listen on {}: Address already in use", busy.address())), "{own}");
}
