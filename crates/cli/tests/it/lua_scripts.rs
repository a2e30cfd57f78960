//! Lua scripts with wrk's interface: what a service gets, and what a script gets.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;

use weir_measure::Run;
use weir_measure::end_reason::EndReason;
use weir_testing::{Output, Reply, Seen, Server, Weir};

/// Runs a script with one thread, unless `args` say more; returns what it printed, and the run.
fn play(server: &Server, script: &str, args: &[&str]) -> (Output, Run) {
    let folder = Weir::new();
    folder.write("users.lua", script);
    let url = server.url("/start?q=1");
    let flags = ["load", "-q", "-s", "users.lua", &url, "-o", "run.json", "-f", "wrk"];
    let threads: &[&str] = if args.contains(&"-t") { &[] } else { &["-t", "1"] };
    let output = folder.run(&[&flags, threads, args].concat());
    let run = Run::from_json(&folder.read("run.json")).unwrap();
    // 3: no iteration succeeded.
    assert!(
        output.code == 0 || output.code == 3 && run.iterations.as_ref().is_some_and(|all| all.ok == 0),
        "{output:?}"
    );
    (output, run)
}

fn lines(server: &Server) -> Vec<String> {
    server.seen().iter().map(|seen| seen.line().to_owned()).collect()
}

#[test]
fn without_functions_it_is_a_plain_load_of_one_request() {
    let server = Server::hello();
    let script = "wrk.method = 'PUT'\nwrk.body = 'a=1'\nwrk.headers['X-Kind'] = 'form'";
    let (_, run) = play(&server, script, &["-c", "2", "-n", "8"]);
    assert_eq!((run.requests.ok, run.iterations.is_none(), run.steps.len()), (8, true, 0));
    for seen in server.seen() {
        assert_eq!((seen.line(), seen.body.as_slice()), ("PUT /start?q=1 HTTP/1.1", &b"a=1"[..]));
        assert_eq!((seen.header("x-kind"), seen.header("content-length")), (Some("form"), Some("3")));
        assert_eq!(seen.header("host"), Some(server.address().as_str()));
    }
}

#[test]
fn flags_fill_the_table() {
    let server = Server::hello();
    let script = "function request() return wrk.format() end";
    let flags = ["-c", "1", "-n", "3", "-m", "PATCH", "-b", "body", "-H", "X-A: 1", "-a", "me:pw"];
    let (_, run) = play(&server, script, &flags);
    assert_eq!((run.requests.ok, run.scenarios[0].name.as_str()), (3, "users"));
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    for seen in seen {
        assert_eq!((seen.line(), seen.body.as_slice()), ("PATCH /start?q=1 HTTP/1.1", &b"body"[..]));
        assert_eq!((seen.header("x-a"), seen.header("authorization")), (Some("1"), Some("Basic bWU6cHc=")));
    }
}

/// As in wrk, the first request of the first thread is only checked.
#[test]
fn each_thread_counts_on_its_own() {
    let server = Server::hello();
    let script = "local n = 0\nfunction request()\n local path = '/' .. n\n wrk.headers['X-N'] = n\n n = n + 1\n \
                  return wrk.format(nil, path)\nend";
    play(&server, script, &["-t", "2", "-c", "2", "-n", "20"]);
    let seen = server.seen();
    assert_eq!(seen.len(), 20);
    let first = seen.iter().filter(|seen| seen.line().starts_with("GET /0 ")).count();
    assert_eq!(first, 1, "{:?}", lines(&server));
    for seen in &seen {
        assert_eq!(Some(seen.line()), seen.header("x-n").map(|n| format!("GET /{n} HTTP/1.1")).as_deref());
    }
}

#[test]
fn a_token_of_one_response_is_in_all_later_requests() {
    let server = Server::start(|seen| match seen.line() {
        "GET /login HTTP/1.1" => {
            Reply::raw("HTTP/1.1 200 OK\r\nX-Token: t1\r\nX-Token: t2\r\nContent-Length: 2\r\n\r\nok")
        }
        _ if seen.header("x-token") == Some("t2") => Reply::ok("in"),
        _ => Reply::status(401, "out"),
    });
    let script = "local path = '/login'\nfunction request() return wrk.format('GET', path) end\n\
                  function response(status, headers, body)\n if path == '/login' and body == 'ok' and status == 200 then\n \
                  wrk.headers['X-Token'] = headers['X-Token']\n path = '/items'\n end\nend";
    let (_, run) = play(&server, script, &["-c", "1", "-n", "5"]);
    assert_eq!((run.requests.ok, run.requests.failed), (5, 0));
    assert_eq!(lines(&server).iter().filter(|line| line.contains("/items")).count(), 4);
}

#[test]
fn a_delay_is_think_time_and_not_lateness() {
    let server = Server::hello();
    let script = "function delay() return 30 end";
    let (_, run) = play(&server, script, &["-c", "2", "-d", "3s"]);
    // 2 users, each at most every 30 ms.
    assert!((2..=202).contains(&run.requests.ok), "{:?}", run.requests);
    assert!(run.response_ms.min.unwrap() < 29.9, "{:?}", run.response_ms);
    assert!(run.iterations.unwrap().time_ms.min.unwrap() >= 29.9);
    let (_, open) = play(&server, script, &["--rate", "50", "-d", "3s"]);
    // What began late is cut off by the end.
    let iterations = open.iterations.as_ref().unwrap();
    assert!(iterations.ok > 0 && iterations.total + iterations.unfinished <= 150, "{iterations:?}");
    assert!(open.response_ms.min.unwrap() < 29.9, "{:?}", open.response_ms);
}

#[test]
fn several_requests_of_one_string_are_sent_together() {
    let server = Server::build().answers_in_batches_of(4).start(|seen: &Seen| match seen.body.as_slice() {
        b"" => Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"),
        _ => Reply::ok("posted"),
    });
    let script = "local all\nfunction init(args)\n all = table.concat({wrk.format(nil, '/a'), wrk.format('POST', '/b', nil, \
                  'x\\r\\n\\r\\ny'), wrk.format(nil, '/c'), wrk.format(nil, '/d')})\nend\n\
                  function request() return all end\n\
                  bodies = ''\nfunction response(status, headers, body) bodies = bodies .. body .. ' ' end\n\
                  local threads = {}\nfunction setup(thread) threads[1] = thread end\n\
                  function done() print(threads[1]:get('bodies')) end";
    let (output, run) = play(&server, script, &["-c", "1", "-n", "2"]);
    assert_eq!((run.requests.total, run.requests.ok, run.iterations.unwrap().ok), (8, 8, 2));
    let paths: Vec<String> = lines(&server).iter().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(paths, ["/a", "/b", "/c", "/d", "/a", "/b", "/c", "/d"]);
    assert!(output.stdout.contains("ok posted ok ok ok posted ok ok \n"), "{}", output.stdout);
    // 79 bytes and not 8 times all of them.
    let sent: usize = server.seen().iter().map(|seen| seen.head.len() + 4 + seen.body.len()).sum();
    assert!(run.bytes.written.abs_diff(sent as u64) <= 8 * 4, "{} {sent}", run.bytes.written);
}

#[test]
fn a_connection_that_closes_between_pipelined_responses_fails_the_rest() {
    let server = Server::build()
        .answers_in_batches_of(2)
        .start(|_| Reply::raw("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok").close());
    let script = "function request() return wrk.format(nil, '/a') .. wrk.format(nil, '/b') end";
    let (_, run) = play(&server, script, &["-c", "1", "-n", "2"]);
    assert_eq!((run.requests.ok, run.requests.failed), (2, 2), "{:?}", run.failures);
    assert_eq!(run.iterations.unwrap().failed, 2);
}

#[test]
fn threads_are_set_up_and_asked_by_one_interpreter() {
    let server = Server::hello();
    let script = "local threads = {}\n\
                  function setup(thread)\n threads[#threads + 1] = thread\n thread:set('id', #threads)\n \
                  thread:set('table', {a = {1, true, 'x'}})\nend\n\
                  function init(args) calls, answers = 0, 0; print('thread', id, table.a[3], args[0] ~= nil, args[1], args[2]) end\n\
                  function request() calls = calls + 1; return wrk.request() end\n\
                  function response() answers = answers + 1 end\n\
                  function done()\n local sum = 0\n for _, thread in ipairs(threads) do sum = sum + thread:get('answers') end\n \
                  print('all', sum, threads[2]:get('id'), threads[1]:get('none'))\nend";
    let script = script.replace("table.a", "_G['table'].a");
    let (output, _) = play(&server, &script, &["-t", "2", "-c", "2", "-n", "30", "--", "-x", "y z"]);
    for line in ["thread\t1\tx\ttrue\t-x\ty z\n", "thread\t2\tx\ttrue\t-x\ty z\n", "all\t30\t2\tnil\n"] {
        assert!(output.stdout.contains(line), "{line}: {}", output.stdout);
    }
}

#[test]
fn a_script_stops_its_threads() {
    let server = Server::hello();
    let script = "local n = 0\nfunction response()\n n = n + 1\n if n == 20 then wrk.thread:stop() end\nend";
    let (_, run) = play(&server, script, &["-t", "2", "-c", "2", "-d", "60s"]);
    assert_eq!(run.requests.ok, 40);
    assert_eq!(run.ended_by, Some(EndReason::ScriptStop("users".into())));
    assert!(run.duration_s < 30.0, "{}", run.duration_s);
}

#[test]
fn a_load_lasts_as_long_as_the_thread_that_a_script_does_not_stop() {
    let script = "local made = 0\nfunction setup(thread)\n made = made + 1\n thread:set('id', made)\nend\n\
                  local n = 0\nfunction response()\n n = n + 1\n if id == 1 and n == 5 then wrk.thread:stop() end\nend\n\
                  function delay() return 5 end";
    // A load that is watched reports its counts with each interval.
    for watched in [&[][..], &["--web=127.0.0.1:0"]] {
        let flags = [&["-t", "2", "-c", "2", "-d", "4s"], watched].concat();
        let (_, run) = play(&Server::hello(), script, &flags);
        assert_eq!(run.ended_by, Some(EndReason::ScriptStop("users".into())), "{watched:?}");
        // Five of one thread, and those of the other until the end.
        assert!(run.duration_s > 3.5 && run.requests.ok > 5, "{watched:?}: {} s, {:?}", run.duration_s, run.requests);
    }
}

#[test]
fn addresses_are_looked_up_tried_and_set() {
    let (server, other) = (Server::hello(), Server::hello());
    let script = format!(
        "function setup(thread)\n local found = wrk.lookup(wrk.host, wrk.port)\n \
         assert(wrk.connect(found[1]), 'connects')\n assert(not wrk.connect(wrk.lookup('127.0.0.1', 1)[1]), 'no')\n \
         assert(tostring(thread.addr) == wrk.host .. ':' .. wrk.port, tostring(thread.addr))\n \
         thread.addr = wrk.lookup('127.0.0.1', {})[1]\nend\n\
         function init() print('address ' .. tostring(wrk.thread.addr)) end",
        other.port()
    );
    let (output, run) = play(&server, &script, &["-c", "2", "-n", "10"]);
    assert!(output.stdout.contains(&format!("address 127.0.0.1:{}\n", other.port())), "{}", output.stdout);
    assert_eq!((run.requests.ok, server.requests(), other.requests()), (10, 0, 10));
    let hosts: BTreeSet<_> = other.seen().iter().map(|seen| seen.header("host").map(str::to_owned)).collect();
    assert_eq!(hosts, BTreeSet::from([Some(server.address())]));
}

#[test]
fn done_gets_the_result() {
    let server = Server::start(|seen| if seen.number % 4 == 3 { Reply::status(503, "no") } else { Reply::ok("hello") });
    let script = "function done(summary, latency, requests)\n local e = summary.errors\n \
                  print('sum', summary.requests, e.status, e.connect + e.read + e.write + e.timeout, summary.duration > 0)\n \
                  local n, last = 0, 0\n for i = 1, #latency do local value, count = latency(i); assert(value > last); \
                  n = n + count; last = value end\n \
                  print('values', n, last == latency.max, latency.min <= latency.mean, latency:percentile(50) <= latency.max, \
                  latency.stdev >= 0, requests.max > 0)\nend";
    let (output, run) = play(&server, script, &["-c", "2", "-n", "40"]);
    assert!(output.stdout.contains("sum\t40\t10\t0\ttrue\n"), "{}", output.stdout);
    assert!(output.stdout.contains("values\t40\ttrue\ttrue\ttrue\ttrue\ttrue\n"), "{}", output.stdout);
    // The report comes first.
    let report = output.stdout.find("Requests/sec").unwrap();
    assert!(report < output.stdout.find("sum\t").unwrap());
    assert_eq!((run.requests.ok, run.requests.failed), (30, 10));
}

#[test]
fn a_response_to_head_has_no_body_and_an_empty_one_is_a_string() {
    let server = Server::start(|seen| match seen.line().starts_with("HEAD") {
        true => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        false => Reply::ok(""),
    });
    let script = "local n = 0\nfunction request() n = n + 1; return wrk.format(n % 2 == 0 and 'HEAD' or 'GET') end\n\
                  function response(status, headers, body) assert(body == '' and next(headers)) end";
    let (_, run) = play(&server, script, &["-c", "1", "-n", "10"]);
    assert_eq!((run.requests.ok, run.connections.opened), (10, 1));
}

#[test]
fn the_open_loop_and_thresholds_go_with_a_script() {
    let server = Server::hello();
    let script = "local n = 0\nfunction request() n = n + 1; return wrk.format(nil, '/' .. n) end";
    let (_, run) =
        play(&server, script, &["--rate", "200", "-d", "1s", "--slo", "users: p99 < 20s", "--slo", "errors<1%"]);
    assert!((150..=200).contains(&run.requests.ok), "{:?}", run.requests);
    assert_eq!((run.slo.len(), run.slo.iter().all(|slo| slo.ok)), (2, true));
    let paths: BTreeSet<_> = lines(&server).into_iter().collect();
    // The first call of all only checks the script.
    let sent: BTreeSet<_> = (2..=run.requests.total + 1).map(|n| format!("GET /{n} HTTP/1.1")).collect();
    let difference: Vec<_> = paths.symmetric_difference(&sent).collect();
    assert!(difference.is_empty(), "{difference:?}, {:?}", run.requests);
}

#[test]
fn a_seed_repeats_the_random_numbers_of_each_thread() {
    let server = Server::hello();
    let script = "function request() return wrk.format(nil, '/' .. math.random(1000000)) end";
    let paths = |seed: &str| {
        let before = server.seen().len();
        play(&server, script, &["-t", "2", "-c", "2", "-n", "6", "--seed", seed]);
        lines(&server)[before..].iter().cloned().collect::<BTreeSet<_>>()
    };
    // Threads share the six requests as they come: at least three of one thread are the same.
    let (first, again, other) = (paths("7"), paths("7"), paths("8"));
    assert!(first.intersection(&again).count() >= 2, "{first:?} {again:?}");
    assert_eq!(first.intersection(&other).count(), 0, "{first:?} {other:?}");
    assert_eq!(first.len(), 6, "{first:?}");
}
