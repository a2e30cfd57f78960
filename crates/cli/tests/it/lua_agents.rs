//! Lua scripts in local agents, and played once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use weir_measure::Run;
use weir_measure::end_reason::EndReason;
use weir_testing::{Output, Reply, Server, Weir};

/// Threads with numbers, each with requests of its own.
const NUMBERED: &str = "local threads, n = 0, 0\nfunction setup(thread)\n threads = threads + 1\n \
    thread:set('id', threads)\nend\nfunction init() print('thread ' .. id) end\nfunction request()\n n = n + 1\n \
    return wrk.format('GET', '/' .. id .. '/' .. n .. '/' .. math.random(1000))\nend";

fn play(server: &Server, script: &str, args: &[&str]) -> Output {
    let folder = Weir::new();
    folder.write("users.lua", script);
    folder.run(&[&["load", "-q", "-s", "users.lua", &server.url("/"), "-f", "json"], args].concat())
}

/// Lines of the requests, sorted.
fn lines(server: &Server) -> Vec<String> {
    let mut lines: Vec<String> = server.seen().iter().map(|seen| seen.line().to_owned()).collect();
    lines.sort();
    lines
}

#[test]
fn agents_have_the_threads_that_one_process_would_have() {
    let flags = ["--rate", "40", "-d", "1s", "--seed", "3"];
    let alone = Server::hello();
    let one = play(&alone, NUMBERED, &[&flags[..], &["-t", "4"]].concat());
    assert_eq!(one.code, 0, "{one:?}");
    let shared = Server::hello();
    let output = play(&shared, NUMBERED, &[&flags[..], &["-t", "2", "--on", "local", "--agents", "2"]].concat());
    assert_eq!(output.code, 0, "{output:?}");
    // Arrivals belong to the same threads, so each thread sends the same requests.
    assert_eq!(lines(&shared), lines(&alone));
    let run = output.json();
    assert_eq!((run.agents.len(), run.steps.len(), run.steps[0].requests), (2, 1, 40));
    assert_eq!((run.steps[0].name.as_str(), run.scenarios[0].name.as_str()), ("request", "users"));
    let mut printed: Vec<&str> = output.stderr.lines().collect();
    printed.sort_unstable();
    assert_eq!(
        printed,
        ["agent 1: thread 1", "agent 1: thread 3", "agent 2: thread 2", "agent 2: thread 4"],
        "what a script prints does not disturb the agents' reports"
    );
}

#[test]
fn done_is_called_once_with_the_result_of_all_agents() {
    let server = Server::hello();
    let script = "function done(summary, latency, requests)\n \
        io.stderr:write('done ' .. summary.requests .. ' ' .. tostring(latency.max > 0) .. '\\n')\nend";
    let output = play(&server, script, &["-c", "4", "-n", "20", "--on", "local", "--agents", "2"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, "done 20 true\n"), "{output:?}");
}

#[test]
fn a_done_that_may_ask_threads_of_other_processes_is_rejected_before_the_load() {
    let server = Server::hello();
    let script = "function setup(thread) end\nfunction done(summary) end";
    let output = play(&server, script, &["-c", "2", "-n", "20", "--on", "local", "--agents", "2"]);
    assert_eq!((output.code, server.requests()), (2, 0), "{output:?}");
    assert!(output.one_line().contains("users.lua has setup() and done()"), "{output:?}");
}

#[test]
fn an_error_of_one_agent_ends_the_run_of_all() {
    let server = Server::hello();
    let script = "local n = 0\nfunction request()\n n = n + 1\n if n > 5 then error('boom') end\n return \
        wrk.format()\nend";
    let output = play(&server, script, &["-c", "2", "-d", "10m", "--on", "local", "--agents", "2"]);
    assert_eq!((output.code, output.one_line()), (2, "users.lua:4: boom (in request)"), "{output:?}");
    let run: Run = output.json();
    assert_eq!(run.ended_by, Some(EndReason::ScriptError("users.lua:4: boom (in request)".into())));
    assert!((1..=9).contains(&run.requests.ok) && run.duration_s < 60.0 && !run.interrupted, "{run:?}");
    let counting = ["-c", "2", "-d", "1s", "--script-errors", "count", "--on", "local", "--agents", "2"];
    let output = play(&server, script, &counting);
    let run: Run = output.json();
    assert_eq!((output.code, run.ended_by.clone()), (0, None), "{output:?}");
    assert!(run.iterations.unwrap().failed > 2);
}

#[test]
fn a_first_request_that_an_agent_cannot_make_is_one_line() {
    let server = Server::hello();
    let script = "function request() error('no ' .. wrk.thread.addr) end";
    let output = play(&server, script, &["-c", "2", "-n", "20", "--on", "local", "--agents", "2"]);
    assert_eq!((output.code, server.requests()), (2, 0), "{output:?}");
    assert!(output.one_line().contains("users.lua:1: "), "{output:?}");
}

#[test]
fn a_script_is_played_once_with_its_request_and_response() {
    let server = Server::start(|seen| match seen.header("authorization") {
        Some(_) => Reply::raw("HTTP/1.1 200 OK\r\nSet-Cookie: sid=s-1\r\nContent-Length: 5\r\n\r\nhello"),
        None => Reply::status(401, "who?"),
    });
    let folder = Weir::new();
    for script in ["function request() return wrk.format('GET', '/items') end", "wrk.path = '/items'"] {
        folder.write("users.lua", script);
        let output = folder.run(&["run", "users.lua", &server.url("/"), "-v", "-a", "me:pw"]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
        for line in ["> GET /items HTTP/1.1", "> Authorization: ***", "< Set-Cookie: ***", "hello"] {
            assert!(output.stdout.lines().any(|printed| printed == line), "{line}: {}", output.stdout);
        }
        assert!(output.stdout.contains("passed: 1 step, 1 request"), "{}", output.stdout);
        let output = folder.run(&["run", "users.lua", &server.url("/")]);
        assert_eq!(output.code, 1, "a status of 401: {output:?}");
    }
    folder.write(
        "users.lua",
        "local n = 0\nfunction request()\n n = n + 1\n if n > 1 then error('boom') end\n \
        return wrk.format()\nend",
    );
    let output = folder.run(&["run", "users.lua", &server.url("/")]);
    assert_eq!((output.code, output.one_line()), (2, "users.lua:4: boom (in request)"), "{output:?}");
}
