//! Forward proxy with plain HTTP: what is recorded, what is left out.

use std::fs;
use std::thread;
use std::time::Duration;

use weir_testing::{Reply, Server, Serving};

use super::{assert_plays, lines, recorder, send, send_on, visit};

#[test]
fn a_purchase_is_recorded_with_its_tokens_and_played_by_other_users() {
    let shop = Serving::start(&["shop", "--csrf"]);
    let recorder = recorder(&[]);
    visit(&recorder, &shop.url);
    let (output, weir) = recorder.interrupt();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(
        lines(&output)[2..],
        [
            "shop.hurl: 5 requests of the recording",
            "shop.env: 2 variables",
            "next: weir load -s shop.hurl --variables-file shop.env"
        ]
    );
    let hurl = weir.read("shop.hurl");
    for part in [
        "POST {{base_url}}/login\n{\"password\":\"{{password}}\",\"user\":\"ann\"}\nHTTP 200\n",
        "csrf: jsonpath \"$.csrf\"\n",
        "token: jsonpath \"$.token\"\n",
        "GET {{base_url}}/items?page=2\nContent-Type: application/json\nAuthorization: Bearer {{token}}\nX-Csrf-Token: {{csrf}}\n",
        "POST {{base_url}}/buy\n",
        "HTTP 201\n",
    ] {
        assert!(hurl.contains(part), "{part} is not in\n{hurl}");
    }
    assert!(!hurl.contains("pw-ann") && !hurl.contains("Host:") && !hurl.contains("[Cookies]"), "{hurl}");
    assert!(!weir.path("shop.recording.har").exists());
    assert_plays(&weir, 5, &[]);
    let stats = shop.get("/stats").json();
    assert_eq!(stats["violations"].as_object().map(|all| all.values().any(|count| count != 0)), Some(false), "{stats}");
}

#[test]
fn static_files_are_comments_and_pauses_are_delays() {
    let server = Server::start(|seen| match seen.line().contains("/app.js") {
        true => Reply::raw("HTTP/1.1 200 OK\r\nContent-Type: text/javascript\r\nContent-Length: 1\r\n\r\n1"),
        false => Reply::ok("page"),
    });
    let with_static = recorder(&["--static"]);
    let without = recorder(&[]);
    for recorder in [&with_static, &without] {
        let mut connection = recorder.connect();
        let image = "Sec-Fetch-Dest: image\r\n";
        for (path, headers) in [("/a", ""), ("/app.js", ""), ("/logo", image)] {
            send_on(&mut connection, &format!("GET {}", server.url(path)), headers, "");
        }
    }
    #[allow(clippy::disallowed_methods, reason = "the user of this test thinks")]
    thread::sleep(Duration::from_millis(650));
    for recorder in [&with_static, &without] {
        send(recorder, &format!("GET {}", server.url("/b")), "", "");
    }
    let (output, weir) = without.interrupt();
    assert!(lines(&output).contains(&"left out: 2 static files"), "{output:?}");
    let hurl = weir.read("shop.hurl");
    let url = server.url("");
    assert!(hurl.starts_with("GET {{base_url}}/a\nHTTP 200\n\n"), "{hurl}");
    assert!(hurl.contains(&format!("# left out: GET {url}/app.js\n# left out: GET {url}/logo\n")), "{hurl}");
    assert!(hurl.contains("GET {{base_url}}/b\n[Options]\ndelay: ") && hurl.matches("delay: ").count() == 1, "{hurl}");
    let (_, weir) = with_static.interrupt();
    assert_eq!(weir.read("shop.hurl").matches("GET {{base_url}}/").count(), 4);
}

#[test]
fn hosts_are_chosen_and_others_pass_through() {
    let (one, other) = (Server::hello(), Server::hello());
    for flags in [["--only", &one.address()], ["--exclude", &other.address()]] {
        let recorder = recorder(&flags);
        for server in [&one, &other] {
            assert_eq!(send(&recorder, &format!("GET {}", server.url("/x")), "", "").text(), "hello");
        }
        let (output, weir) = recorder.interrupt();
        assert!(lines(&output).contains(&"left out: 1 request to another host"), "{output:?}");
        assert_eq!(weir.read("shop.hurl"), "GET {{base_url}}/x\nHTTP 200\n");
        assert!(weir.read("shop.env").contains(&format!("base_url={}\n", one.url(""))));
    }
}

#[test]
fn a_service_that_does_not_respond_is_502_and_a_comment() {
    let server = Server::start(|_| Reply::nothing().close());
    let url = server.url("/gone");
    let recorder = recorder(&[]);
    let answer = send(&recorder, &format!("GET {url}"), "", "");
    assert_eq!(answer.status, 502);
    assert_eq!(
        answer.text(),
        format!("weir record: no response of {}: connection closed before a response\n", server.url(""))
    );
    let answer = send(&recorder, "GET http://no-such-host.invalid/", "", "");
    assert!(answer.status == 502 && answer.text().contains("no address for host 'no-such-host.invalid'"), "{answer:?}");
    let (output, weir) = recorder.interrupt();
    assert_eq!(output.code, 3, "{output:?}");
    assert!(lines(&output).contains(&"no request was recorded"), "{output:?}");
    let omission = format!("  request: GET {url}: no response: connection closed before a response");
    assert!(lines(&output).contains(&omission.as_str()), "{output:?}");
    assert!(!weir.path("shop.hurl").exists());
}

#[test]
fn the_service_gets_what_the_client_sent_without_headers_of_the_connection() {
    let server = Server::hello();
    let recorder = recorder(&[]);
    let mut connection = recorder.connect();
    connection.send(format!(
        "PATCH {} HTTP/1.1\r\nHost: other.test\r\nProxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\n\
         Connection: X-Hop\r\nX-Hop: 1\r\nX-Own: a\r\nX-Own: b\r\nContent-Length: 2\r\n\r\n{{}}",
        server.url("/a%20b?c=%zz&d#e")
    ));
    assert_eq!(connection.answer().text(), "hello");
    let seen = &server.seen()[0];
    assert_eq!(seen.line(), "PATCH /a%20b?c=%zz&d HTTP/1.1");
    let mut names: Vec<&str> = seen.head.lines().skip(1).filter_map(|line| line.split(':').next()).collect();
    names.sort_unstable();
    assert_eq!(names, ["content-length", "host", "x-own", "x-own"]);
    // The URL decides.
    assert_eq!(seen.header("host"), Some(server.address().as_str()));
}

#[test]
fn the_recorder_s_own_page_tells_how_it_is_used_and_has_the_certificate() {
    let recorder = recorder(&["--for", "1h"]);
    let page = recorder.get("/");
    assert_eq!(page.status, 400);
    assert!(page.text().starts_with(&format!("weir record is a proxy: set {} as the proxy", recorder.url)), "{page:?}");
    let certificate = recorder.get("/ca.pem");
    assert_eq!((certificate.status, certificate.header("content-type")), (200, Some("application/x-x509-ca-cert")));
    assert_eq!(certificate.text(), fs::read_to_string(recorder.weir.path("ca/ca.pem")).unwrap());
    let own = send(&recorder, &format!("GET {}/", recorder.url), "", "");
    assert_eq!(own.status, 400, "a request to itself does not go round");
    let scheme = send(&recorder, "GET ftp://h/", "", "");
    assert_eq!(
        (scheme.status, scheme.text()),
        (400, "weir record: the scheme ftp does not pass here; use http or https\n")
    );
    let (output, _) = recorder.interrupt();
    assert_eq!(output.code, 3);
    let hint = "no request was recorded; is the recorder the proxy of the client, also for localhost?";
    assert!(lines(&output).contains(&hint), "{output:?}");
}
