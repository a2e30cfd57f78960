//! Lua scripts that fail: before the load and in it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use weir_measure::end_reason::EndReason;
use weir_testing::{Reply, Server, Weir};

/// The only line on stderr of a script that fails before the load, with exit code 2 and no request.
fn refused(script: &str, args: &[&str]) -> String {
    let server = Server::hello();
    let folder = Weir::new();
    folder.write("users.lua", script);
    let url = server.url("/");
    let output = folder.run(&[&["load", "-s", "users.lua", &url, "-c", "1", "-t", "1", "-n", "5"], args].concat());
    assert_eq!((output.code, server.requests()), (2, 0), "{output:?}");
    output.one_line().to_owned()
}

#[test]
fn mistakes_are_found_before_the_load() {
    for (script, message) in [
        ("x = = 1", "users.lua:1: unexpected symbol near '='"),
        ("local a\nprint(a.b)", "users.lua:2: attempt to index local 'a' (a nil value)"),
        ("function setup(thread)\n error('no ' .. type(thread))\nend", "users.lua:2: no userdata (in setup)"),
        (
            "function setup(t)\n t:set('f', print)\nend",
            "users.lua:2: cannot transfer 'function' to a thread (in setup)",
        ),
        ("function setup(t) t.addr = 'x' end", "users.lua:1: "),
        (
            "local function open()\n return io.open('/no/file'):read()\nend\nfunction init()\n  rows = open() .. ''\nend",
            "users.lua:2: attempt to index a nil value (in open, called by init)",
        ),
        ("function request()\n return nil\nend", "request() returned nil; return a string, such as wrk.format()"),
        ("function request() return {} end", "request() returned table; return a string, such as wrk.format()"),
        (
            "function request() return 'GET / HTTP/1.1\\r\\nHost: a\\r\\n' end",
            "request() returned an incomplete head (an empty line ends it) in line 3 of the request",
        ),
        ("wrk.path = '/a b'", "request() returned an invalid head"),
        (
            "function setup()\n wrk.lookup('127.0.0.1', 'no-such-service')\nend",
            "users.lua:2: cannot resolve 127.0.0.1:no-such-service: the service has no port (in setup)",
        ),
    ] {
        let line = refused(script, &[]);
        assert!(line.starts_with(message), "{script}: {line}");
    }
}

#[test]
fn flags_that_say_what_a_script_says_are_refused() {
    for (args, message) in [
        (
            &["--check", "status == 200"][..],
            "--check cannot be used with a Lua script; check the response in response()",
        ),
        (&["--think", "1s"], "--think cannot be used with a Lua script; write delay()"),
        (&["--pipeline", "2"], "--pipeline cannot be used with a Lua script; return several requests in one string"),
        (&["--variable", "a=1"], "--variable cannot be used with a Lua script; give arguments after --"),
        (&["-b", "a", "-b", "b"], "a Lua script takes one --body; choose among several in request()"),
        (&["--data", "a.csv"], "--data cannot be used with a Lua script; it is for scenarios"),
        (&["--on", "auto"], "--on cannot be used with a Lua script; its interpreters run on this machine: --on local"),
        (&["--processes", "2"], "--processes needs a Python script; name one with -s FILE.py"),
        (&["-s", "other.hurl"], "a Lua script must be the only scenario; leave out users.lua or the others"),
    ] {
        let line = refused("", args);
        assert!(line.starts_with(message), "{args:?}: {line}");
    }
}

#[test]
fn scripts_are_for_load_alone() {
    let folder = Weir::new();
    folder.write("users.lua", "");
    folder.write("mix.toml", "[[scenario]]\nfile = 'users.lua'\n");
    for (args, message) in [
        (&["load", "-s", "users.lua"][..], "a Lua script needs a URL; write e.g. -s users.lua http://localhost:8080/"),
        (&["load", "-s", "none.lua", "http://127.0.0.1:1/"], "cannot read the script 'none.lua': "),
        (
            &["load", "http://127.0.0.1:1/", "more"],
            "unexpected argument 'more'; arguments after the URL are for a Lua script",
        ),
        (
            &["load", "http://127.0.0.1:1/", "--script-timeout", "1s"],
            "--script-timeout needs a Lua script; name one with",
        ),
        (&["load", "-s", "mix.toml"], "mix.toml:2:8: scenario[0].file: a Lua script in a mix; write a .hurl file"),
        (&["capacity", "-s", "users.lua", "http://127.0.0.1:1/", "--slo", "p99<1s"], "agent 1 on "),
        (&["run", "users.lua"], "a Lua script needs a URL; write e.g. weir run users.lua http://localhost:8080/"),
        (&["run", "users.lua", "http://127.0.0.1:1/", "--user", "A"], "--user is for Python scripts"),
        (&["run", "users.lua", "http://127.0.0.1:1/", "--variable", "a=1"], "--variable cannot be used with a script"),
    ] {
        let output = folder.run(args);
        assert_eq!(output.code, 2, "{args:?}: {output:?}");
        assert!(output.one_line().starts_with(message), "{args:?}: {output:?}");
    }
}

#[test]
fn an_error_in_the_load_ends_it() {
    let server = Server::hello();
    let folder = Weir::new();
    let script = "local n = 0\nlocal function token()\n  return n .. nil\nend\nfunction request()\n  n = n + 1\n  \
                  if n > 9 then token() end\n  return wrk.format()\nend";
    folder.write("users.lua", script);
    let url = server.url("/");
    let output = folder.run(&["load", "-q", "-s", "users.lua", &url, "-c", "1", "-t", "1", "-d", "60s", "-f", "json"]);
    let message = "users.lua:3: attempt to concatenate a nil value (in token, called by request)";
    assert_eq!((output.code, output.one_line()), (2, message));
    let run = output.json();
    // The first call is the check before the load.
    assert_eq!((run.requests.ok, run.ended_by), (8, Some(EndReason::ScriptError(message.into()))));
    assert!(run.duration_s < 30.0);
}

#[test]
fn errors_are_failures_of_iterations_if_asked_for() {
    let server = Server::hello();
    let folder = Weir::new();
    folder.write(
        "users.lua",
        "function request() return wrk.format() end\nlocal n = 0\nfunction response()\n n = n + 1\n \
                               if n % 2 == 0 then error('even') end\nend",
    );
    let flags = ["load", "-q", "-s", "users.lua", &server.url("/"), "-c", "1", "-t", "1", "-n", "10", "-f", "json"];
    let output = folder.run(&[&flags[..], &["--script-errors", "count"]].concat());
    assert_eq!(output.code, 0, "{output:?}");
    let run = output.json();
    assert_eq!((run.requests.ok, run.requests.failed, run.iterations.unwrap().failed), (5, 5, 5));
    assert!(run.steps[0].samples[0].reason.contains("users.lua:5: even (in response)"), "{:?}", run.steps[0].samples);
    folder.write(
        "users.lua",
        "local n = 0\nfunction request()\n n = n + 1\n if n == 4 then return 7 end\n \
                               return wrk.format()\nend",
    );
    let run = folder.run(&[&flags[..], &["--script-errors", "count"]].concat()).json();
    assert_eq!((run.requests.ok, run.steps[0].unsent, run.iterations.unwrap().failed), (9, 1, 1));
}

/// Each loop is compiled by LuaJIT before it is interrupted, or is in a function that catches the error.
#[test]
fn endless_loops_are_interrupted() {
    for looping in [
        "while true do end",
        "local i = 0 while true do i = i + 1 end",
        "while true do pcall(function() while true do end end) end",
        "coroutine.wrap(function() while true do end end)()",
    ] {
        let server = Server::start(|_| Reply::ok("hello"));
        let folder = Weir::new();
        let start = "local n = 0\nfunction request()\n n = n + 1\n if n > 3 then ";
        folder.write("users.lua", format!("{start}{looping} end\n return wrk.format()\nend"));
        let flags =
            ["load", "-q", "-s", "users.lua", &server.url("/"), "-c", "1", "-t", "1", "-d", "60s", "-f", "json"];
        let output = folder.run(&[&flags[..], &["--script-timeout", "200ms"]].concat());
        let line = output.one_line();
        assert!(line.contains("the call took longer than --script-timeout"), "{looping}: {line}");
        assert!(line.starts_with("users.lua:4: "), "{looping}: {line}");
        assert_eq!((output.code, output.json().requests.ok), (2, 2), "{looping}");
    }
    let line = refused("function request() while true do end end", &["--script-timeout", "200ms"]);
    assert!(line.starts_with("users.lua:1: the call took longer than --script-timeout (in request)"), "{line}");
}

#[test]
fn a_call_that_is_not_lua_ends_the_process() {
    let server = Server::hello();
    let folder = Weir::new();
    let script = "local n = 0\nfunction request()\n n = n + 1\n if n > 3 then os.execute('exec sleep 5') end\n \
                  return wrk.format()\nend";
    folder.write("users.lua", script);
    let flags = ["load", "-q", "-s", "users.lua", &server.url("/"), "-c", "1", "-t", "1", "-d", "60s"];
    let output = folder.run(&[&flags[..], &["--script-timeout", "100ms"]].concat());
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains("cannot be interrupted: it is in a function that is not Lua"), "{output:?}");
}

#[test]
fn an_error_of_done_is_reported_after_the_result() {
    let server = Server::hello();
    let folder = Weir::new();
    folder.write("users.lua", "function done(summary)\n error(summary.requests .. ' seen')\nend");
    let flags = ["load", "-q", "-s", "users.lua", &server.url("/"), "-c", "1", "-t", "1", "-n", "4", "-f", "json"];
    let output = folder.run(&flags);
    assert_eq!((output.code, output.json().requests.ok), (2, 4));
    assert_eq!(output.one_line(), "users.lua:2: 4 seen (in done)");
}

/// The length of the string is known in the compiled loop alone, where a function of LuaJIT in C raises the error: the
/// unwinder has to find the frame of code that was not there when the program was linked.
#[test]
fn an_error_that_a_compiled_loop_raises_is_caught() {
    let script = "local times = {}
        for i = 1, 1000 do times[i] = 1 end
        times[900] = 2000000000
        local ok, message = pcall(function()
            local length = 0
            for i = 1, 1000 do length = length + #string.rep('ab', times[i]) end
            return length
        end)
        assert(not ok and message:find('memory'), tostring(message))";
    let (server, folder) = (Server::hello(), Weir::new());
    folder.write("long.lua", script);
    let output = folder.run(&["load", "-s", "long.lua", &server.url("/"), "-c", "1", "-t", "1", "-n", "5", "-q"]);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output:?}");
    assert_eq!(server.requests(), 5);
}
