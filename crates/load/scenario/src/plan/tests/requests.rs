//! Bytes of requests.

use super::*;

/// Bytes of the first request of a file.
fn bytes(text: &str, settings: &ScenarioSettings) -> String {
    let plan = plan_with(text, settings);
    run(&plan, |_| ok("")).requests[0].text.clone()
}

fn request(text: &str) -> String {
    bytes(text, &ScenarioSettings::default())
}

fn body(text: &str) -> String {
    body_of(&request(text)).to_owned()
}

const USER_AGENT: &str = concat!("weir/", env!("CARGO_PKG_VERSION"));

#[test]
fn a_request_has_the_headers_of_weir_load() {
    assert_eq!(
        request("GET http://shop:81/items?a=b#top"),
        format!("GET /items?a=b HTTP/1.1\r\nHost: shop:81\r\nUser-Agent: {USER_AGENT}\r\nAccept: */*\r\n\r\n")
    );
    assert_eq!(
        request("POST http://shop\nAccept: text/html\nUser-Agent:\nX-A: 1\n{\"a\": 1}"),
        "POST / HTTP/1.1\r\nHost: shop\r\nAccept: text/html\r\nUser-Agent: \r\nX-A: 1\r\nContent-Type: application/json\r\n\
         Content-Length: 8\r\n\r\n{\"a\": 1}"
    );
    assert!(request("POST http://shop").contains("\r\nContent-Length: 0\r\n\r\n"));
}

#[test]
fn variables_are_encoded_for_their_place() {
    let text = "POST http://shop/{{v}}\nX-V: {{v}}\n[Query]\nq: {{v}}\n[Options]\nvariable: v=a \"b/é\n```\n{{v}}\n```";
    assert_eq!(
        request(text),
        format!(
            "POST /a%20%22b/%C3%A9?q=a%20%22b%2F%C3%A9 HTTP/1.1\r\nHost: shop\r\nUser-Agent: {USER_AGENT}\r\n\
             Accept: */*\r\nX-V: a \"b/é\r\nContent-Length: 8\r\n\r\na \"b/é\n"
        )
    );
    let text = "POST http://shop\n[Options]\nvariable: v=a \"b\\n\nvariable: n=12\n{\"v\": \"{{v}}\", \"n\": {{n}}}";
    assert_eq!(body(text), "{\"v\": \"a \\\"b\\n\", \"n\": 12}");
}

#[test]
fn parameters_are_added_to_a_query_string() {
    let line = |url: &str| {
        let text = request(&format!("GET {url}\n[Query]\na\\u{{20}}b: c d\ne: f&g=h"));
        text.split(" HTTP").next().unwrap().to_owned()
    };
    assert_eq!(line("http://h"), "GET /?a%20b=c%20d&e=f%26g%3Dh");
    assert_eq!(line("http://h/x?y=z"), "GET /x?y=z&a%20b=c%20d&e=f%26g%3Dh");
    assert_eq!(line("http://h/x?"), "GET /x?a%20b=c%20d&e=f%26g%3Dh");
    assert_eq!(line("http://h/x#f"), "GET /x?a%20b=c%20d&e=f%26g%3Dh");
}

#[test]
fn bodies_are_of_each_kind() {
    assert_eq!(body("POST http://h\n[Form]\na\\u{20}b: c d\ne: é"), "a b=c%20d&e=%C3%A9");
    assert_eq!(body("POST http://h\n`x {{v}}`".replace("{{v}}", "y").as_str()), "x y");
    assert_eq!(body("POST http://h\nbase64,aGk=;"), "hi");
    assert_eq!(body("POST http://h\nhex,6869;"), "hi");
    assert_eq!(body("POST http://h\n<a>b</a>"), "<a>b</a>");
    assert_eq!(body("POST http://h\n```raw\n{{x}}\n```"), "{{x}}\n");
    let graphql = "POST http://h\n```graphql\nquery \"a\" {\n b\n}\n\nvariables {\n\"c\": 1\n}\n```";
    assert_eq!(body(graphql), "{\"query\":\"query \\\"a\\\" {\\n b\\n}\",\"variables\":{\"c\":1}}");
    let content_type = |text: &str| header(&request(text), "content-type").map(str::to_owned);
    assert_eq!(content_type("POST http://h\n[Form]\na: b").as_deref(), Some("application/x-www-form-urlencoded"));
    assert_eq!(content_type("POST http://h\n<a/>").as_deref(), Some("application/xml"));
    assert_eq!(content_type("POST http://h\n```json\n1\n```").as_deref(), Some("application/json"));
    assert_eq!(content_type("POST http://h\nContent-Type: a/b\n{}").as_deref(), Some("a/b"));
    assert_eq!(content_type("POST http://h\n`x`"), None);
}

#[test]
fn a_multipart_body_has_files() {
    let text = "POST http://h\n[Multipart]\na: 1\nb\\u{22}c: file,dir/x.html;\nd: file,y; text/x\n";
    let file = weir_hurl::parse(text).unwrap();
    let mut files = |name: &str| Ok(format!("[{name}]").into_bytes());
    let plan = ScenarioPlan::compile(&file, &ScenarioSettings::default(), &mut files).unwrap();
    let trace = run(&plan, |_| ok(""));
    let text = &trace.requests[0].text;
    let boundary = header(text, "content-type").unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
    let expected = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"b%22c\"; filename=\"dir/x.html\"\r\n\
         Content-Type: text/html\r\n\r\n[dir/x.html]\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"d\"; filename=\"y\"\r\n\
         Content-Type: text/x\r\n\r\n[y]\r\n--{boundary}--\r\n"
    );
    assert_eq!(body_of(text), expected);
    assert_eq!(header(text, "content-length"), Some(expected.len().to_string().as_str()));
}

#[test]
fn credentials_have_an_order() {
    let authorization = |text: &str| header(&request(text), "authorization").map(str::to_owned);
    let basic = "GET http://h\n[BasicAuth]\nbob: secret\n";
    assert_eq!(authorization(basic).as_deref(), Some("Basic Ym9iOnNlY3JldA=="));
    assert_eq!(authorization("GET http://h\n[Options]\nuser: bob:secret\n").as_deref(), Some("Basic Ym9iOnNlY3JldA=="));
    let both = "GET http://h\nAuthorization: Bearer x\n[Options]\nuser: bob:secret\n";
    assert_eq!(authorization(both).as_deref(), Some("Bearer x"));
    let dynamic = "GET http://h\n[BasicAuth]\nbob: {{p}}\n[Options]\nvariable: p=secret\n";
    assert_eq!(authorization(dynamic).as_deref(), Some("Basic Ym9iOnNlY3JldA=="));
}

#[test]
fn settings_are_below_the_file() {
    let settings = ScenarioSettings {
        base_url: Some("http://base:8080/api/".into()),
        headers: vec![("X-A".into(), "1".into()), ("X-B".into(), "2".into())],
        user_agent: Some("me".into()),
        keep_alive: false,
        ..ScenarioSettings::default()
    };
    assert_eq!(
        bytes("GET /items\nX-B: 3\n[Options]\nheader: X-C: 4\nno-header: Accept\ncompressed: true", &settings),
        "GET /api/items HTTP/1.1\r\nHost: base:8080\r\nUser-Agent: me\r\nAccept-Encoding: gzip, deflate, br\r\n\
         Connection: close\r\nX-B: 3\r\nX-C: 4\r\nX-A: 1\r\n\r\n"
    );
}

#[test]
fn a_line_break_in_a_variable_fails_the_step() {
    for text in [
        "GET http://shop/{{v}}\n[Options]\nvariable: v=\"a\\r\\nX: y\"\n",
        "GET http://shop\nX-A: {{v}}\n[Options]\nvariable: v=\"a\\r\\nX: y\"\n",
        "GET http://shop\n[Cookies]\na: {{v}}\n[Options]\nvariable: v=\"a\\r\\nX: y\"\n",
        "GET http://shop\n{{v}}: x\n[Options]\nvariable: v=\"a: b\\r\\nX\"\n",
    ] {
        let plan = plan(text);
        let trace = run(&plan, |_| ok(""));
        assert!(trace.requests.is_empty() && !trace.ok, "{trace:?}");
        assert!(
            matches!(trace.findings[0].failures[0], FlowFailure::Request(RenderError::Encoding { .. })),
            "{trace:?}"
        );
    }
}

#[test]
fn variables_that_never_change_cost_nothing() {
    let settings = ScenarioSettings {
        variables: vec![("host".into(), crate::value::Value::text("http://shop:81".to_owned()))],
        ..ScenarioSettings::default()
    };
    let plan = plan_with("GET {{host}}/items\nX-H: {{host}}\n", &settings);
    assert!(plan.steps[0].request.fixed.is_some());
    assert_eq!(plan.origins.iter().map(ToString::to_string).collect::<Vec<_>>(), ["http://shop:81"]);
    let text = bytes("GET {{host}}/items\nX-H: {{host}}\n[Options]\nvariable: host=http://other\n", &settings);
    assert_eq!(header(&text, "host"), Some("other"));
}
