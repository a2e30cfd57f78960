//! Calls of gRPC that are streams, by scripts of k6, and requests of HTTP beside them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use crate::k6_grpc::play_in;
use weir_measure::Run;
use weir_testing::{Output, Serving, Weir};

const HEAD: &str = "import grpc, { Client, Stream } from 'k6/net/grpc';\nimport http from 'k6/http';\n\
    import { check, sleep } from 'k6';\nconst TEST = 'weir.test.v1.Test';\nconst client = new Client();\n\
    const begin = () => client.connect(__ENV.HOST, { plaintext: true, reflect: true });\n";

/// Runs a script against an address; returns what it printed, and the run if there was one.
fn play(address: &str, script: &str, args: &[&str]) -> (Output, Option<Run>) {
    play_in(&Weir::new(), address, &format!("{HEAD}{script}"), args)
}

const ONCE: [&str; 4] = ["-c", "1", "-n", "1"];

/// Sum of a counter of the script.
fn counted(run: &Run, name: &str) -> f64 {
    let metrics = &run.script.as_ref().unwrap().metrics;
    metrics.iter().find(|metric| metric.name == name).map_or(0.0, |metric| metric.values["count"])
}

#[test]
fn streams_of_all_kinds_have_their_messages_and_their_end() {
    let serving = Serving::start(&["grpc"]);
    let script = "export const options = { summaryTrendStats: ['count', 'max'] };\n\
        const events = (name, method, messages) => new Promise((done) => {\n\
          const seen = [];\nconst stream = new Stream(client, `${TEST}/${method}`, { tags: { kind: name } });\n\
          stream.on('data', (message, { ts }) => seen.push(message.text ?? message.messages, ts > 1.6e12));\n\
          stream.on('error', (e) => seen.push(`error ${e.code} ${e.message}`));\n\
          stream.on('end', () => { console.log(name, seen.join(' ')); done(); });\n\
          for (const message of messages) stream.write(message);\nstream.end();\n});\n\
        export default async () => {\nbegin();\n\
        await events('server', 'List', [{ count: 3, echo: { text: 'a' } }]);\n\
        await events('client', 'Collect', [{ text: 'b' }, { text: 'c' }]);\n\
        await events('both', 'Chat', [{ text: 'd' }, { text: 'e' }]);\n\
        await events('empty', 'Chat', []);\n\
        await events('status', 'Chat', [{ text: 'f' }, { status: { code: 5, message: 'no ☺' } }]);\n\
        await events('unary', 'Echo', [{ text: 'g' }]);\n};\n";
    let (output, run) = play(&serving.address, script, &ONCE);
    for line in [
        "server a true a true a true\n",
        "client 2 true\n",
        "both d true e true\n",
        "empty \n",
        "status f true error 5 no ☺\n",
        "unary g true\n",
    ] {
        assert!(output.stderr.contains(line), "{line}: {output:?}");
    }
    let run = run.unwrap();
    assert_eq!((run.requests.total, run.status["OK"], run.status["NOT_FOUND"]), (6, 5, 1), "{output:?}");
    assert_eq!(counted(&run, "grpc_streams"), 6.0);
    assert_eq!((counted(&run, "grpc_streams_msgs_sent"), counted(&run, "grpc_streams_msgs_received")), (8.0, 8.0));
    assert_eq!(counted(&run, "grpc_req_duration"), 6.0);
}

#[test]
fn a_message_follows_from_the_one_before_and_calls_go_on_beside_it() {
    let serving = Serving::start(&["grpc"]);
    let script = "export default () => {\nbegin();\n\
        const stream = new Stream(client, `${TEST}/Chat`);\nlet n = 0;\n\
        stream.on('data', (m) => {\n\
          if (client.invoke(`${TEST}/Echo`, { text: 'beside' }).message.text !== 'beside') console.log('wrong');\n\
          n += 1;\nif (n < 5) stream.write({ text: `${n}` });\nelse stream.end();\n});\n\
        stream.on('end', () => { console.log('end', n); client.close(); });\n\
        stream.write({ text: '0' });\n};\n";
    let (output, run) = play(&serving.address, script, &["-c", "3", "-n", "6"]);
    let run = run.unwrap();
    assert_eq!(output.stderr.matches("end 5\n").count(), 6, "{output:?}");
    assert_eq!((run.requests.ok, run.iterations.unwrap().ok), (36, 6), "{output:?}");
    // A user's calls share a connection.
    assert_eq!(run.connections.opened, 3, "{output:?}");
}

#[test]
fn a_long_stream_keeps_its_order_and_reads_while_it_writes() {
    let serving = Serving::start(&["grpc"]);
    let script = "export default () => {\nbegin();\n\
        const stream = new Stream(client, `${TEST}/Chat`);\nconst payload = 'A'.repeat(4000);\nlet n = 0;\n\
        stream.on('data', (m) => {\n\
          if (m.text !== `${n}` || m.payload !== payload) throw new Error(`${m.text} in place of ${n}`);\nn += 1;\n});\n\
        stream.on('end', () => console.log('end', n));\n\
        for (let i = 0; i < 1000; i += 1) stream.write({ text: `${i}`, payload });\nstream.end();\n};\n";
    let (output, run) = play(&serving.address, script, &ONCE);
    assert!(output.code == 0 && output.stderr.contains("end 1000\n"), "{output:?}");
    assert!(run.unwrap().bytes.written > 3_000_000, "{output:?}");
}

#[test]
fn requests_of_http_and_calls_are_of_one_script() {
    let (shop, grpc) = (Serving::start(&["httpbin"]), Serving::start(&["grpc"]));
    let script = "export default () => {\nbegin();\n\
        const page = http.get(`http://${__ENV.SHOP}/`);\n\
        const call = client.invoke(`${TEST}/Echo`, { text: 'a' });\n\
        check(null, { 'http': () => page.status === 200 && page.proto === 'HTTP/1.1', 'grpc': () => call.message.text === 'a' });\n};\n";
    let shop_at = format!("SHOP={}", shop.address);
    let (output, run) = play(&grpc.address, script, &["-c", "2", "-n", "8", "-e", &shop_at]);
    let run = run.unwrap();
    assert_eq!((output.code, run.requests.ok), (0, 16), "{output:?}");
    assert_eq!((run.status["OK"], run.status["200"]), (8, 8), "{output:?}");
    assert!(run.script.unwrap().checks.iter().all(|check| (check.passed, check.failed) == (8, 0)), "{output:?}");
    assert!(grpc.get("/stats").json()["status"]["OK"].as_u64() >= Some(8));
}

#[test]
fn a_stream_that_is_given_up_or_late_ends_its_iteration() {
    let serving = Serving::start(&["grpc"]);
    let script = "export default () => {\nbegin();\n\
        const open = (name, params) => {\nconst stream = new Stream(client, `${TEST}/List`, params);\n\
          stream.on('error', (e) => console.log(name, 'error', e.code));\n\
          stream.on('end', () => console.log(name, 'end'));\n\
          stream.write({ count: 1000, gap: '0.05s' });\nstream.end();\nreturn stream;\n};\n\
        if (__ITER === 0) return open('late', { timeout: '200ms' });\n\
        open('closed').on('data', () => client.close());\nreturn undefined;\n};\n";
    let (output, run) = play(&serving.address, script, &["-c", "1", "-n", "2"]);
    for line in ["late error 4\nlate end\n", "closed end\n"] {
        assert!(output.stderr.contains(line), "{line}: {output:?}");
    }
    let run = run.unwrap();
    assert_eq!(run.iterations.unwrap().total, 2, "{output:?}");
    // Weir and the server both have the deadline.
    let late = run.failures.get("timeout").or(run.status.get("DEADLINE_EXCEEDED"));
    assert_eq!(late, Some(&1), "{output:?}");
}

#[test]
fn a_stream_without_end_is_cut_off_with_the_load() {
    let serving = Serving::start(&["grpc"]);
    let script = "export default () => {\nbegin();\n\
        const stream = new Stream(client, `${TEST}/List`);\n\
        stream.on('data', () => {});\nstream.write({ count: 1000000, gap: '0.01s' });\nstream.end();\n};\n";
    // Long enough for the first message on a busy machine, and far from the end of the streams.
    let (output, run) = play(&serving.address, script, &["-c", "4", "-d", "3s"]);
    let run = run.unwrap();
    assert!(counted(&run, "grpc_streams_msgs_received") >= 1.0, "{output:?}");
    assert!(run.duration_s < 60.0, "{output:?}");
    let stopped = serving.get("/stats").json();
    assert!(stopped["status"]["OK"].as_u64().unwrap_or(0) < 10, "{stopped}");
}

#[test]
fn mistakes_of_streams_are_exceptions_with_what_to_write() {
    let serving = Serving::start(&["grpc"]);
    for (call, reason) in [
        ("new Stream(client, `${TEST}/Chat`)", "call client.connect() first"),
        ("begin(); new Stream(client, `${TEST}/Chats`)", "Chat"),
        ("begin(); new Stream({}, `${TEST}/Chat`)", "takes a client"),
        ("begin(); new Stream(client, `${TEST}/Chat`, { headers: {} })", "'headers' is not supported"),
        ("begin(); new Stream(client, `${TEST}/Chat`).on('close', () => {})", "choose data, error, end"),
        ("begin(); new Stream(client, `${TEST}/Chat`).write({ texts: 1 })", "texts"),
        ("begin(); const s = new Stream(client, `${TEST}/Chat`); s.end(); s.write({})", "behind end()"),
        (
            "begin(); const s = new Stream(client, `${TEST}/Chat`); s.on('data', () => { throw new Error('own'); }); s.write({}); s.end()",
            "own",
        ),
    ] {
        let (output, run) = play(&serving.address, &format!("export default () => {{ {call}; }};\n"), &ONCE);
        let exceptions = &run.unwrap().script.unwrap().exceptions;
        assert!(exceptions[0].message.contains(reason), "{call}: {exceptions:?} {output:?}");
    }
}
