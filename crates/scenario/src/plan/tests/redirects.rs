//! Redirects.

use super::*;

fn redirect(status: u16, location: &str) -> ScriptedReply {
    reply(status, &[("Location", location)], "")
}

#[test]
fn redirects_are_followed_as_browsers_do() {
    let cases = [
        (301, "POST", "GET /b", ""),
        (302, "POST", "GET /b", ""),
        (303, "POST", "GET /b", ""),
        (303, "PUT", "GET /b", ""),
        (307, "POST", "POST /b", "x"),
        (308, "POST", "POST /b", "x"),
        (302, "PUT", "PUT /b", "x"),
        (303, "HEAD", "HEAD /b", "x"),
    ];
    for (status, method, expected, body) in cases {
        let plan = plan(&format!("{method} http://h/a\nX-A: 1\n[Options]\nlocation: true\n`x`\nHTTP 200\n"));
        let service = |text: &str| if text.contains(" /a ") { redirect(status, "b") } else { ok("") };
        let trace = run(&plan, service);
        assert!(trace.ok);
        assert_eq!(lines(&trace)[1], expected, "{status} {method}");
        assert_eq!(body_of(&trace.requests[1].text), body, "{status} {method}");
        assert_eq!(header(&trace.requests[1].text, "x-a"), Some("1"));
        let verdicts: Vec<_> = trace.findings.iter().map(|found| (found.step, found.verdict)).collect();
        assert_eq!(verdicts, [(0, Some(StepVerdict::Redirected)), (0, Some(StepVerdict::Passed))]);
    }
}

#[test]
fn redirects_are_responses_without_the_option() {
    let plan = plan("GET http://h/a\nHTTP 302\n");
    let trace = run(&plan, |_| redirect(302, "/b"));
    assert!(trace.ok && trace.requests.len() == 1);
}

#[test]
fn other_hosts_get_no_credentials() {
    let text = |option: &str| {
        format!("GET http://h/a\nAuthorization: Bearer x\n[Cookies]\nc: 1\n[Options]\n{option}: true\nHTTP 200\n")
    };
    let service = |text: &str| match text.split(' ').nth(1).unwrap() {
        "/a" => redirect(302, "/b"),
        "/b" => redirect(302, "https://other:8443/c"),
        "/c" => redirect(302, "http://h/d"),
        _ => ok(""),
    };
    let plan = plan(&text("location"));
    let trace = run(&plan, service);
    let seen: Vec<_> = trace
        .requests
        .iter()
        .map(|request| (request.origin.as_str(), header(&request.text, "authorization")))
        .collect();
    let token = Some("Bearer x");
    assert_eq!(seen, [("http://h", token), ("http://h", token), ("https://other:8443", None), ("http://h", None)]);
    assert_eq!(header(&trace.requests[0].text, "cookie"), Some("c=1"));
    assert_eq!(header(&trace.requests[1].text, "cookie"), Some("c=1"));
    assert_eq!(header(&trace.requests[2].text, "cookie"), None);
    assert_eq!(header(&trace.requests[2].text, "host"), Some("other:8443"));
    let trusted = super::plan(&text("location-trusted"));
    assert!(run(&trusted, service).requests.iter().all(|request| header(&request.text, "authorization") == token));
}

#[test]
fn the_number_of_redirects_is_limited() {
    let text = "GET http://h/a\n[Options]\nlocation: true\nmax-redirs: 3\nHTTP 200\n";
    let trace = run(&plan(text), |_| redirect(302, "/a"));
    assert_eq!(trace.requests.len(), 4);
    assert_eq!(trace.findings[3].failures, [FlowFailure::Redirects(3)]);
    assert!(!trace.ok);
    let trace = run(&plan(text), |_| redirect(302, "http://[x"));
    assert!(matches!(trace.findings[0].failures.as_slice(), [FlowFailure::Location(_)]), "{trace:?}");
}

#[test]
fn cookies_of_a_redirect_are_sent() {
    let plan = plan("POST http://h/login\n[Options]\nlocation: true\nHTTP 200\n");
    let trace = run(&plan, |text| {
        let headers = [("Location", "/home"), ("Set-Cookie", "s=1"), ("Set-Cookie", "t=2")];
        if text.contains("/login") { reply(302, &headers, "") } else { ok("") }
    });
    assert_eq!(header(&trace.requests[1].text, "cookie"), Some("s=1; t=2"));
}

#[test]
fn a_request_that_is_sent_again_has_the_same_random_values() {
    let plan = plan(
        "POST http://h/{{newUuid}}\nAuthorization: {{newUuid}}\nX: {{newUuid}}\n[Cookies]\nc: {{newUuid}}\n\
         [Options]\nlocation: true\n`{{newUuid}}`\nHTTP 200\n",
    );
    let trace = run(&plan, |text| {
        if text.contains("Authorization") { reply(307, &[("Location", "http://other")], "") } else { ok("") }
    });
    let [first, second] = trace.requests.as_slice() else { panic!("{trace:?}") };
    assert_eq!(body_of(&first.text), body_of(&second.text));
    assert_eq!(header(&first.text, "x"), header(&second.text, "x"));
    assert_ne!(header(&first.text, "x"), Some(body_of(&first.text)));
}
