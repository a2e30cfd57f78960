//! `weir serve functions` from outside: built-in functions, and libraries in C.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::time::{Duration, Instant};

use weir_testing::{Raw, Serving, Weir, spawn_tied, until};

const TEST_TIMEOUT: Duration = Duration::from_secs(30);

const NOT_FOUND: &str = "Sorry, requested url/function not found:)";

/// A folder with `own.so` in it, built from this source.
fn library(source: &str) -> Weir {
    let weir = Weir::new();
    let source = weir.write("own.c", format!("#include <weir.h>\n#include <string.h>\n{source}"));
    compile(&weir, source.to_str().unwrap());
    weir
}

fn compile(weir: &Weir, source: &str) {
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/serve/include");
    let strict = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"];
    let built = Command::new("cc")
        .args(["-std=c11", "-O1", "-shared", "-fPIC", "-I", include, "-o"])
        .arg(weir.path("own.so"))
        .args(strict)
        .arg(source)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
}

/// A library whose one function, at /own, has this body.
fn function(body: &str) -> Weir {
    library(&format!(
        "static int own(const weir_request *request, weir_response *response, void *user) {{ {body} }}\n\
         int weir_register(weir_host *host) {{ return weir_route(host, \"/own\", own, NULL); }}"
    ))
}

fn serve(weir: Weir) -> Serving {
    Serving::start_in(weir, &["functions", "--library", "./own.so"])
}

#[test]
fn built_in_functions_respond_as_documented() {
    let serving = Serving::start(&["functions"]);
    let mut connection = serving.connect();
    let most = "x".repeat(99);
    for (target, status, body) in [
        ("/", 200, "Hello World!!"),
        ("/?x", 200, "Hello, Query parameter was not expected for this function!!"),
        ("/square", 200, "1"),
        ("/square?", 200, "1"),
        ("/square?num=5", 200, "25"),
        ("/cube?NUM=-3", 200, "-27"),
        ("/helloworld", 200, "Hello"),
        ("/helloworld?str=Raja", 200, "Hello, Raja"),
        ("/helloworld?str=a+b%26c&str=x", 200, "Hello, a b&c"),
        ("/pingpong", 200, "PingPong"),
        ("/pingpong?str=ping", 200, "ping"),
        (&format!("/pingpong?str={most}"), 200, &most),
        ("/arithmetic/prime", 200, "False"),
        ("/arithmetic/prime?num=523", 200, "True"),
        ("/arithmetic/fibonacci?num=20", 200, "6765"),
        ("/%73quare?num=5", 200, "25"),
        ("/square?x=5", 400, "Hello, num was not found in the query!!"),
        ("/square?num=a", 400, "Hello, value of num is not valid!!"),
        ("/cube?num=9999999", 400, "Hello, value of num is not valid!!"),
        ("/arithmetic/fibonacci?num=93", 400, "Hello, value of num is not valid!!"),
        ("/helloworld?str=", 400, "Hello, str was not found in the query!!"),
        ("/square/", 404, NOT_FOUND),
        ("/arithmetic", 404, NOT_FOUND),
        ("/Square", 404, NOT_FOUND),
    ] {
        let response = connection.get(target);
        assert_eq!((response.status, response.text()), (status, body), "{target}");
        assert_eq!(response.header("content-type"), Some("text/html"));
        assert_eq!(response.header("content-length"), Some(body.len().to_string().as_str()));
        let posted = connection.post(target, "a body that nobody looks at");
        assert_eq!((posted.status, posted.text()), (status, body), "POST {target}");
    }
    connection.send("HEAD /square?num=12 HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(connection.head().header("content-length"), Some("3"));
    connection.send("BREW /square?num=12 HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(connection.answer().text(), "144");
    assert_eq!(connection.get("/pingpong?str=%ff%00").body, b"\xff\0", "bytes come back as they are");
}

#[test]
fn each_client_gets_its_own_responses() {
    let serving = Serving::start(&["functions", "--threads", "3", "--max-queue", "2"]);
    let mut connections: Vec<_> = (0..50).map(|_| serving.connect()).collect();
    for round in 0..20_usize {
        for (n, connection) in connections.iter_mut().enumerate() {
            connection.send(format!("GET /square?num={} HTTP/1.1\r\nHost: test\r\n\r\n", n + round));
        }
        for (n, connection) in connections.iter_mut().enumerate() {
            assert_eq!(connection.answer().text(), ((n + round) * (n + round)).to_string());
        }
    }
    assert_eq!(serving.metric("weir_pool_jobs_total"), 1000.0);
    assert_eq!((serving.metric("weir_pool_threads"), serving.metric("weir_pool_threads_busy")), (3.0, 0.0));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the client's end has a clock of its own")]
fn a_long_computation_delays_neither_other_threads_nor_shutdown() {
    for leaves in [false, true] {
        let serving = Serving::start(&["functions", "--threads", "2", "--grace", "200ms"]);
        let mut long = serving.connect();
        // The greatest prime of 63 bits: 1.5 * 10^9 divisions.
        long.send("GET /arithmetic/prime?num=9223372036854775783 HTTP/1.1\r\nHost: test\r\n\r\n");
        until("it to begin", TEST_TIMEOUT, || serving.metric("weir_pool_threads_busy") == 1.0);
        assert_eq!(serving.get("/square?num=5").text(), "25");
        let long = if leaves {
            long.reset();
            None
        } else {
            Some(long)
        };
        let begun = Instant::now();
        let output = serving.stop();
        assert_eq!((output.code, output.stderr.as_str()), (0, ""));
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        // A shutdown that waited for it would have sent the response.
        if let Some(mut long) = long {
            assert!(!long.rest().starts_with(b"HTTP/1.1 200"));
        }
    }
}

#[test]
fn a_full_queue_rejects_with_overflow_reject() {
    let serving =
        Serving::start(&["functions", "--threads", "1", "--max-queue", "1", "--overflow", "reject", "--grace", "0s"]);
    let mut long = [serving.connect(), serving.connect()];
    for (connection, busy) in long.iter_mut().zip(["weir_pool_threads_busy", "weir_pool_queue_length"]) {
        connection.send("GET /arithmetic/prime?num=9223372036854775783 HTTP/1.1\r\nHost: test\r\n\r\n");
        until("it to come in", TEST_TIMEOUT, || serving.metric(busy) == 1.0);
    }
    let rejected = serving.get("/square?num=5");
    assert_eq!((rejected.status, rejected.text()), (503, "Sorry, too many requests wait"));
    assert_eq!(serving.metric("weir_pool_jobs_rejected_total"), 1.0);
}

#[test]
fn the_header_is_plain_c99() {
    let weir = Weir::new();
    let source =
        weir.write("own.c", "#include <weir.h>\nint weir_register(weir_host *host) { return host == NULL; }\n");
    let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/serve/include");
    let strict =
        ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only", "-I", include];
    let checked = Command::new("cc").args(strict).arg(source).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

#[test]
fn the_example_in_c_works() {
    let weir = Weir::new();
    compile(&weir, concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/functions.c"));
    let serving = serve(weir);
    assert_eq!(serving.get("/power?base=2&exponent=10").text(), "1024");
    assert_eq!(serving.get("/power?BASE=%33&Exponent=4").text(), "81");
    let rejected = serving.get("/power?exponent=2000&base=1");
    assert_eq!((rejected.status, rejected.text()), (400, "base and exponent, at most 1000"));
    for count in 1..=3 {
        let shout = serving.post("/shout", "one two");
        assert_eq!(shout.text(), format!("{count}: ONE TWO"));
        assert_eq!(shout.header("content-type"), Some("text/plain"));
    }
    assert_eq!(serving.get("/square?num=5").text(), "25", "the seven are still there");
    assert_eq!(serving.get("/powers").text(), NOT_FOUND);
}

#[test]
fn a_function_reads_the_request_and_writes_the_response() {
    let serving = serve(function(
        r#"char text[8]; size_t length; int wrong = 0;
        ptrdiff_t found = weir_param(request, "a", text, sizeof text);
        const char *body = weir_body(request, &length);
        if (found < 0) strcpy(text, "-");
        wrong += weir_param(request, NULL, text, 0) != -1;
        wrong += weir_param(request, "a", NULL, 99) != found;
        wrong += weir_status(response, 99) != -1 || weir_status(response, 600) != -1 || weir_status(response, 100) != -1;
        wrong += weir_header(response, "Content-Length", "5") != -1 || weir_header(response, "a b", "c") != -1;
        wrong += weir_header(response, "X", "a\nb") != -1 || weir_header(response, NULL, "") != -1;
        wrong += weir_write(response, NULL, 5) != -1 || weir_write(response, NULL, 0) != 0;
        wrong += weir_status(response, 201) != 0 || weir_header(response, "X-Own", "yes") != 0;
        weir_printf(response, "%s %s %td [%s] %d ", weir_method(request), weir_path(request), found, text, wrong);
        return weir_write(response, body, length);"#,
    ));
    let mut connection = serving.connect();
    for (target, seen) in [
        ("/own", "-1 [-]"),
        ("/own?b=1", "-1 [-]"),
        ("/own?A=%31+2&a=9", "3 [1 2]"),
        ("/own?a", "0 []"),
        ("/own?a=1234567", "7 [1234567]"),
        ("/own?a=123456789", "9 [1234567]"),
    ] {
        let response = connection.get(target);
        assert_eq!((response.status, response.text()), (201, format!("GET /own {seen} 0 ").as_str()), "{target}");
        assert_eq!((response.header("x-own"), response.header("content-type")), (Some("yes"), Some("text/html")));
    }
    assert_eq!(connection.post("/own", b"body").text(), "POST /own -1 [-] 0 body");
    let most = vec![b'x'; (1 << 20) - 100];
    assert_eq!(connection.post("/own", &most).body.len(), most.len() + "POST /own -1 [-] 0 ".len());
    // A body that is announced as too long is rejected before it arrives.
    connection.send(format!("POST /own HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", (1 << 20) + 1));
    assert_eq!(connection.answer().status, 413);
    assert_eq!(serving.get("/own").status, 201);
}

#[test]
fn functions_run_at_the_same_time() {
    // Each waits for the other one.
    let weir = library(
        r#"#include <stdatomic.h>
        static int meet(const weir_request *request, weir_response *response, void *user) {
            atomic_int *here = user;
            atomic_fetch_add(here, 1);
            while (atomic_load(here) < 3) {}
            return weir_printf(response, "met");
        }
        int weir_register(weir_host *host) {
            static atomic_int here;
            return weir_route(host, "/meet", meet, &here);
        }"#,
    );
    let serving = serve(weir);
    let mut connections: Vec<Raw> = (0..3).map(|_| serving.connect()).collect();
    for connection in &mut connections {
        connection.send("GET /meet HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    for connection in &mut connections {
        assert_eq!(connection.answer().text(), "met");
    }
}

#[test]
fn a_function_that_fails_gets_a_500_and_is_logged() {
    let serving = serve(function("weir_printf(response, \"half an ans\"); return 7;"));
    let mut connection = serving.connect();
    for _ in 0..100 {
        let response = connection.get("/own");
        assert_eq!((response.status, response.text()), (500, "Sorry, this function failed"));
    }
    let log = serving.stop().stderr;
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines.len(), 11, "{log}");
    assert_eq!(lines[0], "weir: /own of ./own.so returned 7");
    assert_eq!(lines[10], "weir: /own of ./own.so returned 7 (100 failures so far)");
}

#[test]
fn a_response_that_is_too_long_gets_a_500_and_is_logged() {
    let weir = function(
        "char part[1000]; memset(part, 'x', sizeof part); int full = 0;
        for (int i = 0; i < 5000; i++) full += weir_write(response, part, sizeof part) != 0;
        return full ? 0 : 1;",
    );
    let serving = serve(weir);
    let response = serving.get("/own");
    assert_eq!((response.status, response.text()), (500, "Sorry, the response of this function is too long"));
    assert_eq!(serving.stop().stderr, "weir: /own of ./own.so responded with more than 1048576 bytes\n");

    let weir = function("char part[2000]; memset(part, 'x', sizeof part); return weir_write(response, part, 2000);");
    let serving = Serving::start_in(weir, &["functions", "--library", "own.so", "--max-response", "2000"]);
    assert_eq!(serving.get("/own").body.len(), 2000);
    let long = function("return weir_printf(response, \"%2001d\", 5);");
    let serving = Serving::start_in(long, &["functions", "--library", "own.so", "--max-response", "2000"]);
    assert_eq!(serving.get("/own").status, 500);
    assert_eq!(serving.stop().stderr, "weir: /own of own.so responded with more than 2000 bytes\n");
}

/// Signal that ended the service, and its stderr, after a request for /own.
fn crash(weir: &Weir) -> (i32, String) {
    let mut child = spawn_tied(&mut weir.command(&["serve", "functions", "--library", "./own.so"])).unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("//").nth(1).unwrap().trim_end().trim_end_matches("\"}").to_owned();
    let mut connection = Raw::connect(&address);
    connection.send("GET /own HTTP/1.1\r\nHost: test\r\n\r\n");
    connection.rest();
    let status = child.wait().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (status.signal().unwrap_or_else(|| panic!("{status}: {stderr}")), stderr)
}

#[test]
fn a_function_that_crashes_is_named() {
    for (body, signal, name) in [
        ("*(volatile int *)(user) = 5; return 0;", libc::SIGSEGV, "SIGSEGV"),
        ("abort();", libc::SIGABRT, "SIGABRT"),
        ("__builtin_trap();", libc::SIGILL, "SIGILL"),
        ("extern int raise(int); return raise(8);", libc::SIGFPE, "SIGFPE"),
    ] {
        let (ended_by, stderr) = crash(&function(body));
        assert_eq!(stderr, format!("weir: /own of ./own.so crashed ({name})\n"), "{body}");
        assert_eq!(ended_by, signal, "{body}");
    }
}

#[test]
fn a_function_that_uses_up_its_stack_is_named() {
    let weir = library(
        r#"static int deep(volatile char *above) {
            volatile char here[4096];
            here[0] = above[0];
            if (here[0] == 0) return 0;
            return deep(here) + here[0];
        }
        static int own(const weir_request *request, weir_response *response, void *user) {
            volatile char first = 1;
            return deep(&first);
        }
        int weir_register(weir_host *host) { return weir_route(host, "/own", own, NULL); }"#,
    );
    let (ended_by, stderr) = crash(&weir);
    assert!(stderr.starts_with("weir: /own of ./own.so crashed (SIGSEGV)\n"), "{stderr}");
    assert_eq!(stderr.matches("crashed").count(), 1, "{stderr}");
    // The handler of the Rust runtime adds its own text and aborts.
    assert_eq!((ended_by, stderr.contains("overflowed its stack")), (libc::SIGABRT, true), "{stderr}");
}

#[test]
fn a_library_that_crashes_when_it_registers_is_named() {
    let weir = library("int weir_register(weir_host *host) { *(volatile int *)(host->api) = 5; return 0; }");
    let output = weir.run(&["serve", "functions", "--library", "./own.so"]);
    assert_eq!((output.code, output.one_line()), (-1, "weir_register of ./own.so crashed (SIGSEGV)"));
}

#[test]
fn a_library_that_is_not_as_it_should_be_is_one_line() {
    let route = |path: &str| {
        format!(
            "static int own(const weir_request *request, weir_response *response, void *user) {{ return 0; }}
            int weir_register(weir_host *host) {{ weir_route(host, {path}, own, NULL); return 0; }}"
        )
    };
    for (source, why) in [
        ("int something_else;".to_owned(), "it exports no weir_register; see include/weir.h"),
        (
            "int weir_register(weir_host *host) { return 0; }".to_owned(),
            "it registers no route; see weir_route in include/weir.h",
        ),
        ("int weir_register(weir_host *host) { return 3; }".to_owned(), "its weir_register returned 3"),
        (route("\"own\""), "its route 'own' does not begin with '/'"),
        (route("\"\""), "its route '' does not begin with '/'"),
        (route("\"/square\""), "its route /square is taken; choose another path"),
        (route("\"/metrics\""), "its route /metrics is taken; choose another path"),
        (route("NULL"), "it registers a route without a path or a function"),
        (
            "int weir_register(weir_host *host) { return host->api->route(host, 7, \"/own\", NULL, NULL); }".to_owned(),
            "it was built with version 7 of weir.h; build it with the weir.h of this program, version 2",
        ),
    ] {
        let output = library(&source).run(&["serve", "functions", "--library", "./own.so"]);
        assert_eq!(output.code, 2, "{output:?}");
        assert_eq!(output.one_line(), format!("cannot serve ./own.so: {why}"));
    }
    let weir = function("return 0;");
    let twice = weir.run(&["serve", "functions", "--library", "./own.so", "--library", "own.so"]);
    assert_eq!(twice.code, 2);
    assert_eq!(twice.one_line(), "cannot serve own.so: its route /own is taken; choose another path");
}

#[test]
fn a_file_that_is_no_library_is_one_line() {
    let weir = Weir::new();
    weir.write("text.so", "no library at all, but longer than the head of one would be: ".repeat(9));
    for (file, why) in [("none.so", "No such file or directory"), ("text.so", "invalid ELF header")] {
        let output = weir.run(&["serve", "functions", "--library", file]);
        assert_eq!((output.code, output.one_line()), (2, format!("cannot serve {file}: {why}").as_str()));
    }
    // A name that is defined nowhere is found now and not in the midst of a run.
    let weir = function("extern int nowhere(void); return nowhere();");
    let output = weir.run(&["serve", "functions", "--library", "own.so"]);
    assert_eq!((output.code, output.one_line()), (2, "cannot serve own.so: undefined symbol: nowhere"));
}

#[test]
fn arguments_out_of_range_are_one_line() {
    for args in [["--threads", "0"], ["--max-queue", "0"], ["--max-response", "0"], ["--workers", "2"]] {
        let output = Weir::new().run(&[&["serve", "functions"], &args[..]].concat());
        assert_eq!(output.code, 2);
        assert!(output.one_line().contains(args[0]), "{output:?}");
    }
}
