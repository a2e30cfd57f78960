//! Calls of gRPC by scripts of k6: what a server gets, what a script gets, and what is measured.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use weir_measure::Run;
use weir_testing::{Output, Serving, Weir, closed_address};

const PROTO: &str = include_str!("../../../lab/serve/src/grpc/test.proto");
const HEAD: &str = "import grpc, { Client, StatusOK } from 'k6/net/grpc';\nimport { check } from 'k6';\n\
    const ECHO = 'weir.test.v1.Test/Echo';\n";
const REFLECT: &str = "const client = new Client();\n\
    const begin = () => client.connect(__ENV.HOST, { plaintext: true, reflect: true });\n";

/// Runs a script against an address; returns what it printed, and the run if there was one.
fn play(address: &str, script: &str, args: &[&str]) -> (Output, Option<Run>) {
    play_in(&Weir::new(), address, &format!("{HEAD}{script}"), args)
}

/// The same of a whole script, in this folder.
pub(crate) fn play_in(folder: &Weir, address: &str, script: &str, args: &[&str]) -> (Output, Option<Run>) {
    folder.write("users.js", script);
    std::fs::create_dir(folder.path("protos")).unwrap();
    folder.write("protos/test.proto", PROTO);
    let host = format!("HOST={address}");
    let flags = ["load", "-q", "-s", "users.js", "-e", &host, "-o", "run.json"];
    let output = folder.run(&[&flags, args].concat());
    let run = if folder.path("run.json").exists() { folder.read("run.json") } else { String::new() };
    (output, Run::from_json(&run).ok())
}

const ONCE: [&str; 4] = ["-c", "1", "-n", "1"];

#[test]
fn a_call_by_reflection_has_its_message_metadata_and_metric() {
    let serving = Serving::start(&["grpc"]);
    let script = format!(
        "{REFLECT}export const options = {{ thresholds: {{ 'grpc_req_duration{{method:/weir.test.v1.Test/Echo,kind:a}}': ['max>0'], checks: ['rate==1'] }} }};\n\
        export default () => {{\nbegin();\n\
        const res = client.invoke(ECHO, {{ text: 'hi' }}, {{ metadata: {{ 'x-echo-a': 'one, two', 'x-trailer-b': '2' }}, tags: {{ kind: 'a' }} }});\n\
        check(res, {{\n\
          ok: (r) => r.status === StatusOK && r.status === grpc.StatusOK && r.error === null,\n\
          text: (r) => r.message.text === 'hi' && r.message.number === '1' && r.message.payload === '',\n\
          metadata: (r) => r.headers['x-echo-a'][0] === 'one, two' && r.trailers['x-trailer-b'][0] === '2',\n\
        }});\n\
        const bare = client.invoke(`/${{ECHO}}`, {{}}, {{ discardResponseMessage: true }});\n\
        check(bare, {{ bare: (r) => r.status === 0 && r.message === null }});\n\
        client.close();\n}};\n"
    );
    let (output, run) = play(&serving.address, &script, &["-c", "2", "-n", "10"]);
    let run = run.unwrap();
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!((run.requests.ok, run.status["OK"]), (20, 20), "{output:?}");
    assert_eq!(run.steps[0].name, "weir.test.v1.Test/Echo");
    let script = run.script.unwrap();
    assert!(script.checks.iter().all(|check| (check.passed, check.failed) == (10, 0)), "{:?}", script.checks);
    assert!(run.slo.iter().all(|slo| slo.ok), "{:?}", run.slo);
    assert!(script.metrics.iter().all(|metric| !metric.name.starts_with("http_")), "{:?}", script.metrics);
    let stats = serving.get("/stats").json();
    assert!(stats["status"]["OK"].as_u64() >= Some(20), "{stats}");
}

#[test]
fn files_of_services_are_read_in_the_init_context() {
    let serving = Serving::start(&["grpc", "--no-reflection"]);
    let script = "const client = new Client();\nclient.load(['protos'], 'test.proto');\n\
        export default async () => {\nclient.connect(__ENV.HOST, { plaintext: true });\n\
        const all = await Promise.all([1, 2, 3].map((n) => client.asyncInvoke(ECHO, { text: `${n}`, delay: '0.01s' })));\n\
        console.log(all.map((r) => r.message.text).join(' '));\n};\n";
    let (output, run) = play(&serving.address, script, &ONCE);
    assert!(output.code == 0 && output.stderr.contains("1 2 3"), "{output:?}");
    assert_eq!(run.unwrap().requests.ok, 3);
}

#[test]
fn statuses_and_failures_are_responses_with_an_error() {
    let serving = Serving::start(&["grpc"]);
    let script = format!(
        "{REFLECT}export default () => {{\nbegin();\n\
        const shown = (name, r) => console.log(name, r.status, r.message, r.error.code, r.error.message);\n\
        shown('status', client.invoke(ECHO, {{ status: {{ code: 5, message: 'no ☺' }} }}));\n\
        shown('late', client.invoke(ECHO, {{ delay: '30s' }}, {{ timeout: '100ms' }}));\n\
        shown('reset', client.invoke(ECHO, {{ fault: 'RESET' }}));\n\
        shown('length', client.invoke(ECHO, {{ fault: 'LENGTH_TOO_LONG' }}));\n\
        shown('invalid', client.invoke(ECHO, {{ fault: 'INVALID_MESSAGE' }}));\n\
        shown('proxy', client.invoke(ECHO, {{ fault: 'HTTP_503' }}));\n\
        client.connect(__ENV.HOST, {{ plaintext: true, reflect: true, maxReceiveSize: 10 }});\n\
        shown('large', client.invoke(ECHO, {{ reply_bytes: 100 }}));\n}};\n"
    );
    let (output, run) = play(&serving.address, &script, &ONCE);
    for line in [
        "status 5 null 5 no ☺\n",
        "late 4 null 4 ",
        "reset 14 null 14 ",
        "length 13 null 13 ",
        "invalid 13 null 13 ",
        "proxy 14 null 14 HTTP status 503\n",
        "large 8 null 8 ",
    ] {
        assert!(output.stderr.contains(line), "{line}: {output:?}");
    }
    let run = run.unwrap();
    assert_eq!(run.iterations.as_ref().unwrap().failed, 1, "{output:?}");
    assert_eq!(run.status["NOT_FOUND"], 1);
}

#[test]
fn a_server_that_is_not_there_is_unavailable() {
    let script = "const client = new Client();\nclient.load(['protos'], 'test.proto');\n\
        export default () => {\nclient.connect(__ENV.HOST, { plaintext: true });\n\
        const res = client.invoke(ECHO, {});\nconsole.log('away', res.status, res.error.code);\n};\n";
    let (output, _) = play(&closed_address().to_string(), script, &ONCE);
    assert!(output.stderr.contains("away 14 14"), "{output:?}");
}

#[test]
fn mistakes_of_calls_are_exceptions_with_what_to_write() {
    let serving = Serving::start(&["grpc"]);
    for (call, reason) in [
        ("client.invoke(ECHO, {})", "call client.connect() first"),
        ("begin(); client.invoke('weir.test.v1.Test/Ech', {})", "weir.test.v1.Test/Ech: "),
        ("begin(); client.invoke(ECHO, { texts: 'a' })", "texts"),
        ("begin(); client.invoke(ECHO, {}, { metadata: { 'grpc-timeout': '1S' } })", "is set by gRPC itself"),
        ("begin(); client.invoke(ECHO, {}, { headers: {} })", "'headers' is not supported"),
        ("client.connect(__ENV.HOST, { tls: { cert: 'a' } })", "tls: key: it is missing"),
        ("client.connect(__ENV.HOST, { tls: { cacerts: 'a' } })", "tls: cacerts: no certificate"),
        ("client.connect(__ENV.HOST, { tls: { password: 'a' } })", "'password' is not supported"),
        (
            "client.connect(__ENV.HOST, { plaintext: true }); client.invoke(ECHO, {})",
            "call client.load() first, or connect with reflect: true",
        ),
        ("client.connect('http://a/b', { plaintext: true })", "write host:port"),
        ("client.load([], 'a.proto')", "is for the init context"),
        ("new grpc.Stream(client, ECHO)", "call client.connect() first"),
        ("client.healthCheck()", "call client.connect() first"),
    ] {
        let (output, run) = play(&serving.address, &format!("{REFLECT}export default () => {{ {call}; }};\n"), &ONCE);
        let exceptions = &run.unwrap().script.unwrap().exceptions;
        assert!(exceptions[0].message.contains(reason), "{call}: {exceptions:?} {output:?}");
    }
}

#[test]
fn mistakes_before_the_load_are_one_line() {
    for (body, reason) in [
        ("new Client().load(['protos'], 'other.proto');\n", "no file 'other.proto'"),
        ("new Client().loadProtoset('set.bin');\n", "set.bin"),
        ("new Client().connect('a:1');\n", "not available in the init context"),
    ] {
        let (output, run) = play("127.0.0.1:1", &format!("{body}export default () => {{}};\n"), &ONCE);
        assert!(output.code == 2 && run.is_none(), "{body}: {output:?}");
        assert!(output.one_line().contains(reason), "{body}: {output:?}");
    }
}
