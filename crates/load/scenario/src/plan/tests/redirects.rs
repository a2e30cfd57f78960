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

/// Headers of the requests that have one of these names, in the order of the requests.
fn sent(trace: &Trace, names: &[&str]) -> Vec<Vec<String>> {
    let of = |text: &str| names.iter().filter_map(|name| header(text, name).map(|_| (*name).to_owned())).collect();
    trace.requests.iter().map(|request| of(&request.text)).collect()
}

#[test]
fn no_credential_follows_a_redirect_to_another_origin_or_comes_back_from_it() {
    let names = ["authorization", "proxy-authorization", "x-api-key", "x-auth-token", "cookie", "x-other"];
    let file = |first: &str, option: &str| {
        format!(
            "GET {first}/a\nAuthorization: Bearer x\nProxy-Authorization: p\nX-Api-Key: k\n{{{{name}}}}: t\nCookie: c=1\n\
             X-Other: o\n[Options]\n{option}: true\nvariable: name=X-Auth-Token\nHTTP 200\n"
        )
    };
    let chain = |to: &'static str, back: &'static str| {
        move |text: &str| match text.split(' ').nth(1).unwrap() {
            "/a" => redirect(302, to),
            "/b" => redirect(302, back),
            _ => ok(""),
        }
    };
    for (first, to, keeps) in [
        ("http://h", "/b", true),
        ("http://h", "http://H:80/b", true),
        ("http://h", "https://h/b", true),
        ("https://h", "http://h/b", false),
        ("http://h", "http://h:8080/b", false),
        ("http://h:8080", "https://h:8443/b", false),
        ("http://h", "http://www.h/b", false),
        ("http://h", "http://h./b", false),
        ("http://127.0.0.1", "http://localhost/b", false),
        ("http://127.0.0.1", "http://127.0.0.2/b", false),
        ("http://h", "//other/b", false),
    ] {
        let back = if first == "https://h" {
            "https://h/c"
        } else if first == "http://h" {
            "http://h/c"
        } else {
            "/c"
        };
        let trace = run(&plan(&file(first, "location")), chain(to, back));
        let found = sent(&trace, &names);
        assert_eq!(found[0], names, "{first} {to}");
        let kept: &[&str] = if keeps { &names } else { &["x-other"] };
        assert_eq!(found[1], kept, "{first} {to}");
        let has_upgraded = to.starts_with("https") && keeps;
        assert_eq!(found[2], if has_upgraded { &["x-other"] } else { kept }, "{first} {to} {back}");
        let trusted = run(&plan(&file(first, "location-trusted")), chain(to, back));
        assert!(sent(&trusted, &names).iter().all(|found| *found == names), "{first} {to}");
    }
}

#[test]
fn a_header_with_a_secret_value_is_a_credential_whatever_its_name_is() {
    let settings = ScenarioSettings {
        variables: [("val", "of-redact"), ("password", "of-its-name"), ("open", "page-one-of-two")]
            .map(|(name, value)| (name.to_owned(), crate::value::Value::of_text(value)))
            .to_vec(),
        secret_variables: vec!["val".to_owned()],
        ..ScenarioSettings::default()
    };
    let text = "GET http://h/first\nHTTP 200\n[Captures]\nshown: body\nhidden: body redact\nsession_token: body\n\n\
                GET http://h/a\nX-Mine: {{val}}\nX-Named: a {{password}} b\nX-Literal: of-its-name\nX-Open: {{open}}\n\
                X-Shown: {{shown}}\nX-Hidden: {{hidden}}\nX-Session: {{session_token toString}}\nX-Plain: p\n[Options]\n\
                location: true\nHTTP 200\n";
    let names = ["x-mine", "x-named", "x-literal", "x-open", "x-shown", "x-hidden", "x-session", "x-plain"];
    let trace = run(&plan_with(text, &settings), |text| match text.split(' ').nth(1).unwrap() {
        "/first" => ok("captured"),
        "/a" => redirect(302, "http://other/b"),
        _ => ok(""),
    });
    assert_eq!(sent(&trace, &names)[1..], [&names[..], &["x-open", "x-shown", "x-plain"]]);
    assert_eq!(header(&trace.requests[1].text, "x-named"), Some("a of-its-name b"));
}

#[test]
fn the_host_of_the_file_stays_at_its_origin_even_where_credentials_do_not() {
    for option in ["location", "location-trusted"] {
        let text = format!("GET http://h/a\nHost: virtual\n[Options]\n{option}: true\nHTTP 200\n");
        let trace = run(&plan(&text), |text| match text.split(' ').nth(1).unwrap() {
            "/a" => redirect(302, "/b"),
            "/b" => redirect(302, "http://h:81/c"),
            _ => ok(""),
        });
        let hosts: Vec<_> = trace.requests.iter().map(|request| header(&request.text, "host")).collect();
        assert_eq!(hosts, [Some("virtual"), Some("virtual"), Some("h:81")], "{option}");
    }
}

#[test]
fn user_and_password_of_a_url_stay_at_its_origin() {
    let plan = plan("GET http://me:pw@h/a\n[Options]\nlocation: true\nHTTP 200\n");
    let trace = run(&plan, |text| match text.split(' ').nth(1).unwrap() {
        "/a" => redirect(302, "http://h/b"),
        "/b" => redirect(302, "http://h:81/c"),
        "/c" => redirect(302, "http://h/d"),
        _ => ok(""),
    });
    let found: Vec<_> = trace.requests.iter().map(|request| header(&request.text, "authorization").is_some()).collect();
    assert_eq!(found, [true, true, false, false]);
}

#[test]
fn a_challenge_of_another_origin_is_not_answered() {
    let text = |option: &str| {
        format!("GET http://h/a\n[BasicAuth]\nme: pw\n[Options]\ndigest: true\n{option}: true\nHTTP *\n")
    };
    let challenge = r#"Digest realm="r", nonce="n", qop="auth""#;
    let service = |text: &str| match text.split(' ').nth(1).unwrap() {
        "/a" => redirect(302, "http://h:81/b"),
        _ => reply(401, &[("WWW-Authenticate", challenge)], ""),
    };
    let trace = run(&plan(&text("location")), service);
    assert_eq!(trace.requests.len(), 2, "{trace:?}");
    assert!(trace.requests.iter().all(|request| header(&request.text, "authorization").is_none()));
    let trusted = run(&plan(&text("location-trusted")), service);
    assert_eq!(trusted.requests.len(), 3, "{trusted:?}");
}

#[test]
fn credentials_of_the_settings_go_to_the_origin_of_their_url_alone() {
    let settings = |base: Option<&str>| ScenarioSettings {
        base_url: base.map(str::to_owned),
        headers: vec![
            ("X-Api-Key".into(), "k".into()),
            ("X-Other".into(), "o".into()),
            ("Cookie".into(), "c=1".into()),
        ],
        user: Some("me:pw".into()),
        ..ScenarioSettings::default()
    };
    let names = ["authorization", "x-api-key", "cookie", "x-other"];
    let others = ["x-other"];
    let compile =
        |text: &str, base| ScenarioPlan::compile(&weir_hurl::parse(text).unwrap(), &settings(base), &mut no_files);
    let plan = compile(
        "GET /a\nHTTP 200\nGET http://other/b\nHTTP 200\n[Captures]\nu: body\nGET {{u}}/c\nHTTP 200\nGET \
         http://{{u}}.h/d\nHTTP 200\nGET http://h/{{u}}\nHTTP 200\n",
        Some("http://h"),
    )
    .unwrap();
    let trace = run(&plan, |text| if text.contains(" /b ") { ok("http://h") } else { ok("") });
    assert_eq!(sent(&trace, &names)[..3], [&names[..], &others, &names]);
    let trace = run(&plan, |text| if text.contains(" /b ") { ok("http://h:81") } else { ok("") });
    assert_eq!(sent(&trace, &names)[..3], [&names[..], &others, &others]);
    let single = compile("GET http://h/a\nHTTP 200\nGET http://H:80/b\nHTTP 200\n", None).unwrap();
    assert!(sent(&run(&single, |_| ok("")), &names).iter().all(|found| *found == names));
    let errors = compile("GET http://h/a\nHTTP 200\nGET http://other/b\nHTTP 200\n", None).unwrap_err();
    assert!(errors[0].expected.contains("one host for X-Api-Key"), "{errors:?}");
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
