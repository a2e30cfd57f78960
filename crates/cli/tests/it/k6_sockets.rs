//! WebSockets of scripts of k6: what a service counts, what a script gets, and how sockets end.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use weir_measure::Run;
use weir_testing::{Output, Serving, Weir};

use crate::load_websocket::{stats, url};

/// Runs a script against a service; returns what it printed, and the run.
fn play(serving: &Serving, script: &str, args: &[&str]) -> (Output, Run) {
    let folder = Weir::new();
    folder.write("users.js", script);
    let host = format!("HOST={}", url(serving, ""));
    let flags = ["load", "-q", "-s", "users.js", "-e", &host, "-o", "run.json"];
    let output = folder.run(&[&flags, args].concat());
    let run = folder.read("run.json");
    assert!(!run.is_empty(), "{output:?}");
    (output, Run::from_json(&run).unwrap())
}

/// A statistic of a metric of the run.
fn value(run: &Run, name: &str, statistic: &str) -> f64 {
    let metrics = &run.script.as_ref().unwrap().metrics;
    metrics.iter().find(|metric| metric.name == name).map_or(0.0, |metric| metric.values[statistic])
}

const ONCE: [&str; 4] = ["-c", "1", "-n", "1"];

#[test]
fn a_socket_of_k6_ws_blocks_until_it_is_closed_and_has_its_events() {
    let serving = Serving::start(&["ws"]);
    let script = "import ws from 'k6/ws';\nimport { check } from 'k6';\n\
        export const options = { thresholds: { 'ws_msgs_received{kind:a}': ['count>=3'], ws_sessions: ['count==2'] } };\n\
        export default () => {\n\
        const seen = [];\n\
        const res = ws.connect(`${__ENV.HOST}/echo`, { headers: { 'X-A': '1' }, tags: { kind: 'a' } }, (socket) => {\n\
          socket.on('open', () => { seen.push('open'); socket.send('one'); socket.ping(); });\n\
          socket.on('message', (text) => { seen.push(text); socket.sendBinary(new Uint8Array([1, 2, 3]).buffer); });\n\
          socket.on('binaryMessage', (data) => { seen.push(data.byteLength); socket.setTimeout(() => socket.send('tick'), 5); socket.on('message', () => socket.close(3001)); });\n\
          socket.on('pong', () => seen.push('pong'));\n\
          socket.on('close', (code) => seen.push(code));\n\
        });\n\
        console.log(seen.filter((one) => one !== 'pong').join(' '), seen.includes('pong'), res.status, res.headers.Upgrade, res.error === '');\n\
        const other = ws.connect(`${__ENV.HOST}/close/4000`, (socket) => {\n\
          socket.on('open', () => socket.send('x'));\n          socket.on('close', (code) => console.log('closed by the service', code));\n\
        });\n\
        check(other, { 'is open': (r) => r.status === 101 });\n};\n";
    let (output, run) = play(&serving, script, &ONCE);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stderr.contains("one 3 tick"), "{output:?}");
    assert!(output.stderr.contains("3001 true 101 websocket true"), "{output:?}");
    assert!(output.stderr.contains("closed by the service 4000"), "{output:?}");
    assert_eq!(run.script.as_ref().unwrap().checks[0].passed, 1);
    assert!(run.slo.iter().all(|slo| slo.ok), "{:?}", run.slo);
    assert_eq!(value(&run, "ws_sessions", "count"), 2.0);
    assert!(value(&run, "ws_msgs_sent", "count") >= 3.0, "{run:?}");
    assert!(value(&run, "ws_ping", "avg") > 0.0 && value(&run, "ws_connecting", "avg") > 0.0);
    assert!(value(&run, "ws_session_duration", "max") >= 5.0, "the timer was in it");
    assert_eq!(stats(&serving)["received"].as_f64(), Some(value(&run, "ws_msgs_sent", "count")));
}

#[test]
fn sockets_of_the_events_of_a_user_keep_its_iteration_until_all_are_closed() {
    let serving = Serving::start(&["ws", "--subprotocol", "chat"]);
    let script = "import { WebSocket, Blob } from 'k6/websockets';\n\
        export default () => {\n\
        const log = [];\n\
        const echo = new WebSocket(`${__ENV.HOST}/echo`, 'chat');\n\
        log.push(echo.readyState);\n\
        echo.onopen = () => { echo.send('text'); echo.send(new Uint8Array([1, 2])); echo.send(new Blob(['a', 'bc'])); echo.ping(); log.push(echo.bufferedAmount); };\n\
        echo.addEventListener('message', async (event) => {\n\
          log.push(typeof event.data === 'string' ? event.data : (await event.data.arrayBuffer()).byteLength);\n\
          if (log.at(-1) === 3) { echo.close(1000, 'done'); log.push(echo.readyState); }\n\
        });\n\
        echo.onclose = (event) => console.log(log.join(' '), event.code, echo.readyState, echo.protocol);\n\
        const other = new WebSocket(`${__ENV.HOST}/close/3001`);\n\
        other.binaryType = 'arraybuffer';\n        other.onopen = () => other.send('x');\n\
        other.onclose = (event) => { console.log('other', event.code, event.reason); setTimeout(() => console.log('later'), 5); };\n};\n";
    for module in ["k6/websockets", "k6/experimental/websockets"] {
        let (output, run) = play(&serving, &script.replace("k6/websockets", module), &ONCE);
        assert_eq!(output.code, 0, "{output:?}");
        assert!(output.stderr.contains("0 9 text 2 3 2 1000 3 chat"), "{output:?}");
        assert!(output.stderr.contains("other 3001 on purpose") && output.stderr.contains("later"), "{output:?}");
        assert_eq!((value(&run, "ws_sessions", "count"), value(&run, "ws_msgs_sent", "count")), (2.0, 4.0));
        assert_eq!(run.iterations.unwrap().ok, 1);
    }
}

#[test]
fn a_socket_that_cannot_be_opened_is_an_error_of_the_script_and_not_its_end() {
    let serving = Serving::start(&["ws"]);
    let script = "import ws from 'k6/ws';\nimport { WebSocket } from 'k6/websockets';\n\
        export default () => {\n\
        const res = ws.connect(`${__ENV.HOST}/nothing`, (socket) => socket.on('error', (error) => console.log(error.error())));\n\
        console.log(res.status, res.error !== '');\n\
        const away = ws.connect('ws://127.0.0.1:1/', () => {});\n\
        console.log('away', away.status, away.error);\n\
        const socket = new WebSocket(`${__ENV.HOST}/nothing`);\n\
        socket.onerror = (event) => console.log('event', event.error);\n\
        socket.onclose = (event) => console.log('close', event.code);\n\
        try { socket.send('x'); } catch (error) { console.log(error.name); }\n\
        const early = new WebSocket(`${__ENV.HOST}/echo`);\n\
        early.onclose = (event) => console.log('early', event.code, early.readyState);\n\
        early.close();\n};\n";
    let (output, run) = play(&serving, script, &ONCE);
    for line in [
        "the WebSocket was rejected: status 404 in place of 101\n404 true\n",
        "away 0 connect\n",
        "InvalidStateError\n",
        "early 1006 3\n",
        "event the WebSocket was rejected: status 404",
        "close 1006\n",
    ] {
        assert!(output.stderr.contains(line), "{line}: {output:?}");
    }
    assert_eq!(value(&run, "ws_sessions", "count"), 0.0);
    assert_eq!(run.iterations.unwrap().failed, 1, "its upgrades are failures");
}

#[test]
fn services_that_break_the_protocol_end_their_sockets_and_the_iteration_goes_on() {
    let serving = Serving::start(&["ws"]);
    let script = "import ws from 'k6/ws';\n\
        export default () => {\n\
        const res = ws.connect(`${__ENV.HOST}/hostile/masked`, (socket) => {\n\
          socket.on('open', () => socket.send('x'));\n\
          socket.on('error', (error) => console.log('error', error.error() !== ''));\n\
          socket.on('close', (code) => console.log('code', code));\n\
        });\n\
        console.log('after', res.status);\n};\n";
    let (output, _) = play(&serving, script, &ONCE);
    assert!(output.stderr.contains("error true\ncode 1006\nafter 101\n"), "{output:?}");
}

#[test]
fn sockets_that_are_never_closed_are_cut_with_the_load() {
    let serving = Serving::start(&["ws", "--gap", "1ms"]);
    for script in [
        "import ws from 'k6/ws';\nexport default () => ws.connect(`${__ENV.HOST}/push`, () => {});\n",
        "import { WebSocket } from 'k6/websockets';\nexport default () => { new WebSocket(`${__ENV.HOST}/push`); };\n",
        "import ws from 'k6/ws';\nexport default () => ws.connect(`${__ENV.HOST}/silent`, (s) => s.setLoop(() => s.send('x')));\n",
        "import { WebSocket } from 'k6/websockets';\n\
         export const options = { scenarios: { a: { executor: 'constant-vus', vus: 2, duration: '3s', gracefulStop: '1s' } } };\n\
         export default () => { new WebSocket(`${__ENV.HOST}/silent`); };\n",
    ] {
        let flags: &[&str] = if script.contains("scenarios") { &[] } else { &["-c", "2", "-d", "3s"] };
        let (output, run) = play(&serving, script, flags);
        let iterations = run.iterations.as_ref().unwrap();
        assert_eq!((iterations.ok, iterations.unfinished), (0, 2), "{script} {output:?}");
        assert_eq!(value(&run, "ws_sessions", "count"), 2.0, "{script} {output:?}");
    }
}

#[test]
fn an_exception_of_a_handler_ends_the_iteration_and_closes_its_sockets() {
    let serving = Serving::start(&["ws"]);
    for script in [
        "import ws from 'k6/ws';\nexport default () => ws.connect(`${__ENV.HOST}/push`, (socket) => {\n\
         socket.on('message', () => { throw new Error('in a handler'); });\n});\n",
        "import { WebSocket } from 'k6/websockets';\nexport default () => {\nconst socket = new WebSocket(`${__ENV.HOST}/push`);\n\
         socket.onmessage = () => { throw new Error('in a handler'); };\n};\n",
    ] {
        let (output, run) = play(&serving, script, &["-c", "1", "-n", "3"]);
        assert_eq!(run.iterations.as_ref().unwrap().failed, 3, "{output:?}");
        let exceptions = &run.script.as_ref().unwrap().exceptions;
        assert!(exceptions[0].message.contains("Error: in a handler"), "{exceptions:?}");
        assert_eq!(run.websocket.unwrap().upgraded, 3);
    }
}

#[test]
fn messages_above_the_memory_of_a_script_are_exceptions_and_those_it_does_not_take_are_bounded() {
    let serving = Serving::start(&["ws"]);
    let large = "import ws from 'k6/ws';\nexport default () => ws.connect(`${__ENV.HOST}/echo`, (socket) => {\n\
        socket.on('open', () => socket.send('x'.repeat(4 << 20)));\n\
        socket.on('message', (text) => { globalThis.all = (globalThis.all ?? '') + text + text.length; socket.send(text + 'y'); });\n\
        });\n";
    let (output, run) = play(&serving, large, &["-c", "1", "-n", "1", "--js-heap", "20MB"]);
    assert!(run.script.unwrap().exceptions[0].message.contains("out of memory"), "{output:?}");
    let flood = Serving::start(&["ws", "--gap", "0ms", "--message-bytes", "1000000"]);
    let deaf = "import { WebSocket } from 'k6/websockets';\nimport { sleep } from 'k6';\n\
        export default () => {\n\
        const socket = new WebSocket(`${__ENV.HOST}/push`);\n\
        socket.onopen = () => sleep(8);\n\
        socket.onerror = (event) => console.log(event.error);\n\
        socket.onclose = (event) => console.log('closed', event.code);\n};\n";
    let (output, _) = play(&flood, deaf, &ONCE);
    assert!(
        output.stderr.contains("more than 16 MiB of messages that the script does not take\nclosed 1008"),
        "{output:?}"
    );
}

#[test]
fn wrong_arguments_are_exceptions_with_what_to_write() {
    let serving = Serving::start(&["ws"]);
    for (call, reason) in [
        ("ws.connect('http://127.0.0.1:1/', () => {})", "write ws://host:port/path"),
        ("ws.connect(`${__ENV.HOST}/echo`)", "needs a function"),
        (
            "ws.connect(`${__ENV.HOST}/echo`, { compression: 'deflate' }, () => {})",
            "compression: 'deflate' is not supported",
        ),
        ("ws.connect(`${__ENV.HOST}/echo`, (s) => s.on('opened', () => {}))", "no event 'opened'"),
        ("ws.connect(`${__ENV.HOST}/echo`, (s) => s.on('open', () => s.close(1005)))", "invalid close code 1005"),
        ("new WebSocket('/echo')", "write ws://host:port/path"),
        ("for (let i = 0; i < 40; i++) new WebSocket(`${__ENV.HOST}/silent`)", "more than 32 open WebSockets"),
    ] {
        let head = "import ws from 'k6/ws';\nimport { WebSocket } from 'k6/websockets';\n";
        let (output, run) = play(&serving, &format!("{head}export default () => {{ {call}; }};\n"), &ONCE);
        let exceptions = &run.script.unwrap().exceptions;
        assert!(exceptions.iter().any(|one| one.message.contains(reason)), "{call}: {exceptions:?} {output:?}");
    }
}
