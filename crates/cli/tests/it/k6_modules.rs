//! Modules of k6 and TypeScript through the binary: what a service gets, and what a user reads.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use weir_testing::{Output, Reply, Server, Weir};

const PAGE: &str = "<html><body><form action='/login?a=1' method='post'><input name=csrf value='t&amp;1'><input name=user>\
    <button type=submit name=go value=yes>Log in</button></form>\
    <form id=search action=find><input name=q value='a b'></form><a href='next/page?x=1'>Next</a></body></html>";

/// Plays one iteration of a script against a service with a page.
fn play(name: &str, script: &str) -> (Output, Server) {
    let server = Server::start(|seen| match seen.line() {
        line if line.starts_with("GET /shop/ ") => Reply::ok(PAGE),
        _ => Reply::ok("done"),
    });
    let folder = Weir::new();
    folder.write(name, script);
    let host = format!("HOST={}", server.url("/shop/"));
    let output = folder.run(&["load", "-q", "-s", name, "-n", "1", "-c", "1", "-e", &host]);
    (output, server)
}

fn lines(server: &Server) -> Vec<String> {
    server.seen().iter().map(|seen| seen.line().replace(" HTTP/1.1", "")).collect()
}

#[test]
fn a_typescript_file_runs_and_its_errors_have_its_lines() {
    let script = "import http, { type Response } from 'k6/http';\nimport { Options } from 'k6/options';\n\
        enum Path { Home = 'shop/' }\ninterface User { name: string }\nexport const options: Options = {};\n\
        export default function (): void {\n  const user = { name: 'a' } as User;\n\
        \x20 const page: Response = http.get(__ENV.HOST!);\n  console.log(page.status, user.name, Path.Home);\n\
        \x20 throw new Error('at the end');\n}\n";
    let (output, server) = play("users.ts", script);
    assert_eq!(lines(&server), ["GET /shop/"]);
    assert!(output.stderr.contains("200 a shop/"), "{output:?}");
    assert!(output.stderr.contains("users.ts:10: Error: at the end"), "{output:?}");
}

#[test]
fn what_typescript_cannot_run_is_one_line_with_its_place() {
    let (output, server) = play("users.ts", "namespace N { export const a = 1; }\nexport default () => N.a;\n");
    assert_eq!((output.code, server.requests()), (2, 0), "{output:?}");
    assert!(output.stderr.contains("users.ts:1:1: a namespace with values is not supported"), "{output:?}");
}

#[test]
fn forms_and_links_of_a_page_become_requests() {
    let script = "import http from 'k6/http';\nexport default () => {\n\
        const page = http.get(__ENV.HOST);\n\
        page.submitForm({ fields: { user: 'me & you' }, params: { headers: { 'X-Form': '1' } } });\n\
        page.submitForm({ formSelector: '#search' });\n\
        page.clickLink();\n\
        console.log(page.html('input[name=csrf]').attr('value'), page.html().find('button').text());\n};\n";
    let (output, server) = play("pages.js", script);
    assert_eq!(output.code, 0, "{output:?}");
    let expected = ["GET /shop/", "POST /login?a=1", "GET /shop/find?q=a+b", "GET /shop/next/page?x=1"];
    assert_eq!(lines(&server), expected);
    let form = &server.seen()[1];
    assert_eq!(form.body, b"csrf=t%261&user=me+%26+you&go=yes");
    assert_eq!(form.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(form.header("x-form"), Some("1"));
    assert!(output.stderr.contains("t&1 Log in"), "{output:?}");
}

#[test]
fn a_page_without_the_form_or_the_link_fails_the_iteration_with_its_selector() {
    let script = "import http from 'k6/http';\nexport default () => {\n\
        const page = http.get(__ENV.HOST);\n  page.submitForm({ formSelector: '#none' });\n};\n";
    let (output, _) = play("pages.js", script);
    assert!(output.stderr.contains("pages.js:4: Error: no form '#none' in the response of"), "{output:?}");
}

#[test]
fn requests_are_signed() {
    let script = "import http from 'k6/http';\nimport { hmac } from 'k6/crypto';\nimport encoding from 'k6/encoding';\n\
        export default async () => {\n\
        const key = await crypto.subtle.importKey('raw', new Uint8Array([107]), { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);\n\
        const sign = await crypto.subtle.sign('HMAC', key, new Uint8Array([97]));\n\
        http.post(__ENV.HOST, 'a', { headers: { 'X-Sign': hmac('sha256', 'k', 'a', 'base64'), 'X-Same': encoding.b64encode(sign) } });\n};\n";
    let (output, server) = play("signed.js", script);
    assert_eq!(output.code, 0, "{output:?}");
    let seen = &server.seen()[0];
    assert_eq!(seen.header("x-sign").map(str::len), Some(44));
    assert_eq!(seen.header("x-sign"), seen.header("x-same"));
}

#[test]
fn rows_of_a_file_are_read_once_for_all_users() {
    let server = Server::hello();
    let folder = Weir::new();
    folder.write("users.csv", "name\nann\nbob\n");
    let script = "import http from 'k6/http';\nimport exec from 'k6/execution';\nimport { open } from 'k6/experimental/fs';\n\
        import csv from 'k6/experimental/csv';\n\
        const rows = await csv.parse(await open('./users.csv'), { asObjects: true });\n\
        export default () => http.get(`${__ENV.HOST}${rows[exec.scenario.iterationInTest % rows.length].name}`);\n";
    folder.write("rows.js", script);
    let host = format!("HOST={}", server.url("/"));
    let output = folder.run(&["load", "-q", "-s", "rows.js", "-n", "4", "-c", "2", "-e", &host]);
    assert_eq!(output.code, 0, "{output:?}");
    let mut seen = lines(&server);
    seen.sort();
    assert_eq!(seen, ["GET /ann", "GET /ann", "GET /bob", "GET /bob"]);
}

#[test]
fn modules_of_jslib_come_from_a_folder() {
    let server = Server::hello();
    let folder = Weir::new();
    std::fs::create_dir_all(folder.path("lib/k6-utils/1.4.0")).unwrap();
    folder.write("lib/k6-utils/1.4.0/index.js", "export { path } from './parts/path.js';\n");
    std::fs::create_dir(folder.path("lib/k6-utils/1.4.0/parts")).unwrap();
    folder.write(
        "lib/k6-utils/1.4.0/parts/path.js",
        "import http from 'k6/http';\nexport const path = () => `/own${http.get.length}`;\n",
    );
    let load = |version: &str| {
        let script = format!(
            "import http from 'k6/http';\nimport {{ path }} from 'https://jslib.k6.io/k6-utils/{version}/index.js';\n\
            export default () => http.get(__ENV.HOST + path());\n"
        );
        folder.write("users.js", script);
        let host = format!("HOST={}", server.url(""));
        folder.run(&["load", "-q", "-s", "users.js", "-n", "1", "-c", "1", "-e", &host, "--js-lib", "lib"])
    };
    let output = load("1.4.0");
    assert_eq!((output.code, server.requests()), (0, 1), "{output:?}");
    assert!(lines(&server)[0].starts_with("GET /own"));
    let output = load("2.0.0");
    assert_eq!((output.code, server.requests()), (2, 1), "{output:?}");
    assert!(output.one_line().contains("k6-utils/2.0.0/index.js"), "{output:?}");
}

#[test]
fn a_module_that_is_not_there_is_one_line_with_its_name() {
    for name in ["k6/browser", "k6/x/sql", "k6/experimental/redis"] {
        let (output, server) = play("a.js", &format!("import a from '{name}';\nexport default () => a;\n"));
        assert_eq!((output.code, server.requests()), (2, 0), "{output:?}");
        assert!(output.one_line().contains(&format!("'{name}' is not supported: ")), "{output:?}");
    }
}
