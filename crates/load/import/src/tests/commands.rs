//! cURL and `.http`.

use super::{hurl, imported, omissions, value};

#[test]
fn a_command_of_a_browser_is_a_step_and_its_credentials_are_variables() {
    let text = "curl 'https://shop.example/api/items?q=tea' \\\n  -H 'accept: */*' \\\n  -H 'authorization: Bearer t-123' \\\n  \
        -H 'content-length: 13' -b 'sid=s-1' --data-raw $'{\"a\":\"it\\'s\"}' -H 'content-type: application/json' --compressed\n";
    let import = imported(text);
    let expected = "POST https://shop.example/api/items?q=tea\naccept: */*\nauthorization: Bearer {{bearer_token}}\n\
        Cookie: {{cookie}}\n[Options]\ncompressed: true\n{\"a\":\"it's\"}\n";
    assert_eq!(crate::to_hurl(&import.scenarios[0]), expected);
    assert_eq!((value(&import, "bearer_token"), value(&import, "cookie")), (Some("t-123"), Some("sid=s-1")));
    assert_eq!(omissions(&import), Vec::<String>::new());
}

#[test]
fn a_command_of_windows_is_read_as_cmd_does() {
    let text = "curl ^\"http://h/a?b=1^&c=2^\" ^\r\n  -H ^\"X: 1^\" ^\r\n  --data-raw ^\"^{^\\^\"a^\\^\": 1^}^\"";
    assert_eq!(
        hurl(text),
        "POST http://h/a?b=1&c=2\nX: 1\nContent-Type: application/x-www-form-urlencoded\n`{\"a\": 1}`\n"
    );
}

#[test]
fn forms_files_and_several_urls_are_taken_as_curl_takes_them() {
    assert_eq!(hurl("curl -G http://h/a -d x=1 --data-urlencode 'q=a b'"), "GET http://h/a?x=1&q=a+b\n");
    assert_eq!(
        hurl("curl http://h/a -F name=tea -F 'f=@a.png;type=image/png'"),
        "POST http://h/a\n[Multipart]\nname: tea\nf: file,a.png; image/png\n"
    );
    assert_eq!(hurl("curl -I http://h/a http://h/b"), "HEAD http://h/a\n\nHEAD http://h/b\n");
    assert_eq!(hurl("curl http://h/a --next -X DELETE http://h/b"), "GET http://h/a\n\nDELETE http://h/b\n");
    assert_eq!(hurl("curl h:8080/a -sSfLo /dev/null"), "GET http://h:8080/a\n[Options]\nlocation: true\n");
}

#[test]
fn other_commands_and_flags_are_omissions_with_their_lines() {
    let import = imported("#!/bin/bash\nset -e\ncurl -k \"$HOST/items/${ID}\" --fancy | jq .id\n");
    assert_eq!(
        crate::to_hurl(&import.scenarios[0]),
        "# left out: the command set -e\n# left out: the flag --insecure, connections have flags of weir load\n\
         # left out: the flag --fancy\nGET {{HOST}}/items/{{ID}}\n"
    );
    let expected = [
        "file:2: script: the command set -e",
        "file:3: setting: the flag --insecure, connections have flags of weir load",
        "file:3: setting: the flag --fancy",
    ];
    assert_eq!(omissions(&import), expected);
    let undefined: Vec<&str> = import.undefined().map(|variable| variable.name.as_str()).collect();
    assert_eq!(undefined, ["HOST", "ID"]);
}

#[test]
fn responses_of_named_requests_become_captures() {
    let text = "@host = localhost:8080\n\n### Login\n# @name login\nPOST http://{{host}}/login\nContent-Type: application/json\n\n\
        {\"user\": \"ada\"}\n\n###\n# the first page\nGET http://{{host}}/items\n  ?page=1\n  &size=2\n\
        Authorization: Bearer {{login.response.body.$.token}}\n";
    let import = imported(text);
    let expected = "# @name login\n# @success status < 400\nPOST http://{{host}}/login\n[Options]\nlocation: true\n{\"user\": \"ada\"}\nHTTP *\n[Captures]\n\
        login_token: jsonpath \"$.token\"\n\n# the first page\nGET http://{{host}}/items?page=1&size=2\n\
        Authorization: Bearer {{login_token}}\n[Options]\nlocation: true\n";
    assert_eq!(crate::to_hurl(&import.scenarios[0]), expected);
    assert_eq!(value(&import, "host"), Some("localhost:8080"));
}

#[test]
fn handlers_of_jetbrains_are_captures_or_omissions() {
    let text = "### a\nGET http://h/a\n\n> {%\n  client.global.set(\"token\", response.body.token);\n%}\n\n### b\n\
        GET http://h/b\n\n> {%\n  if (x) { y() }\n%}\n\n###\nWEBSOCKET ws://h/c\n";
    let import = imported(text);
    let shown = crate::to_hurl(&import.scenarios[0]);
    assert!(shown.contains("[Captures]\ntoken: jsonpath \"$.token\""), "{shown}");
    assert!(shown.contains("# GET ws://h/c"), "{shown}");
    let lines: Vec<String> = omissions(&import).iter().map(|line| line.chars().take(15).collect()).collect();
    assert_eq!(lines, ["file:12: script", "file:16: reques"]);
}

#[test]
fn scripts_and_checks_of_httpyac_are_no_bodies() {
    let text = "{{\n  exports.date = new Date();\n}}\n###\n{{\n  sign(request);\n}}\nGET http://h/a\nX: {{date}}\n\n?? status == 200\n\
        ?? js response.parsedBody.id == 1\n\n{{+after\n  ok(response.body);\n}}\n\nGET http://h/b\n\n###\nPOST http://h/c\n\n{{body}}\n";
    let import = imported(text);
    let expected = "\nX: {{date}}\n[Options]\nlocation: true\nHTTP 200\n\n\
        GET http://h/b\n[Options]\nlocation: true\n\nPOST http://h/c\n[Options]\nlocation: true\n{{body}}\n";
    let shown = crate::to_hurl(&import.scenarios[0]);
    assert_eq!(shown.split_once("GET http://h/a").unwrap().1, expected);
    let expected = [
        "file:2: script: a script of the file: exports.date = new Date();",
        "file:6: script: a script before the request, 1 line: sign(request);",
        "file:12: check: ?? js response.parsedBody.id == 1",
        "file:15: script: a script after the response, 1 line: ok(response.body);",
    ];
    let mut found = omissions(&import);
    found.sort_by_key(|line| line.split(':').nth(1).and_then(|line| line.parse::<u32>().ok()));
    assert_eq!(found, expected);
}
