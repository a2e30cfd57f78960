//! `weir serve work` from outside: what becomes of requests, by rng, by script, by phase and by capacity.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "the client's end of a test has a clock of its own")]

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use weir_testing::{Answer, Raw, Serving, Weir, until};

const WORK: &str = "/api/work";
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

fn work(args: &[&str]) -> Serving {
    Serving::start(&[&["work"], args].concat())
}

/// Service with one behaviour and no delay.
fn always(behaviour: &str) -> Serving {
    work(&["--delay", "0ms", "--slow-delay", "1ms", "--mix", &format!("{behaviour}=1")])
}

fn stats(work: &Serving) -> Value {
    work.get("/stats").json()
}

fn time(answer: &Answer) -> u64 {
    let json = answer.json();
    assert_eq!(json.as_object().unwrap().len(), 1, "{json}");
    json["time"].as_u64().unwrap()
}

/// Requests without a response so far, hanging ones included.
fn open_requests(work: &Serving) -> f64 {
    // The request for the metrics is one of them.
    work.metric("weir_http_requests_in_flight") - 1.0
}

fn is_json(answer: &Answer) -> bool {
    serde_json::from_slice::<Value>(&answer.body).is_ok()
}

fn ask(work: &Serving, query: &str) -> Raw {
    let mut connection = work.connect();
    connection.send(format!("GET {WORK}{query} HTTP/1.1\r\nHost: test\r\n\r\n"));
    connection
}

#[test]
fn paths_of_another_service_respond_to_every_method_with_the_given_body() {
    let weir = Weir::new();
    weir.write("order.json", "{\"order\": 7}");
    let flags = ["work", "--delay", "0ms", "--mix", "good=1", "--path", "/v1/*", "--body", "@order.json"];
    let work = Serving::start_in(weir, &flags);
    let order = |answer: Answer| (answer.status, answer.text().to_owned());
    let expected = (200, "{\"order\": 7}".to_owned());
    // Its query is the service's that this one stands for.
    assert_eq!(order(work.get("/v1/orders/7?status=open&bytes=x")), expected);
    assert_eq!(order(work.post("/v1/orders", "{\"item\": 1}")), expected);
    assert_eq!(order(work.get(WORK)), expected, "its own path has the body as well");
    assert_eq!(work.get(&format!("{WORK}?status=404")).status, 404);
    assert_eq!((work.get("/v2/orders").status, work.post(WORK, "").status), (404, 405));
    assert_eq!(stats(&work)["behaviour"]["good"], 3);
    let failing = work_at("/orders", "error=1");
    assert_eq!((failing.get("/orders").status, failing.get("/orders/7").status), (500, 404));
}

fn work_at(path: &str, mix: &str) -> Serving {
    work(&["--delay", "0ms", "--mix", mix, "--path", path])
}

#[test]
fn a_good_response_has_the_time_that_it_took() {
    let work = work(&["--delay", "30ms..60ms", "--mix", "good=1"]);
    let mut connection = work.connect();
    for _ in 0..20 {
        let begun = Instant::now();
        let answer = connection.get(WORK);
        let took = begun.elapsed();
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        let ms = time(&answer);
        assert_eq!(answer.text(), format!("{{\"time\": {ms}}}"));
        assert!(
            (30..=60).contains(&ms) && took >= Duration::from_millis(ms),
            "{ms} ms in the response, {took:?} measured"
        );
    }
}

#[test]
fn garbage_is_a_200_that_is_not_json() {
    let answer = always("garbage").get(WORK);
    assert_eq!((answer.status, is_json(&answer)), (200, false), "{answer:?}");
}

#[test]
fn errors_and_limits_have_bodies_that_are_not_json() {
    for (behaviour, status, body) in [
        ("error", 500, "Internal Server Error"),
        ("slow", 500, "Internal Server Error"),
        ("limited", 429, "Too many requests"),
    ] {
        let answer = always(behaviour).get(WORK);
        assert_eq!((answer.status, answer.text()), (status, body), "{behaviour}");
        assert!(!is_json(&answer) && answer.header("retry-after").is_none(), "{answer:?}");
    }
}

#[test]
fn a_slow_response_has_the_slow_delay() {
    let work = work(&["--delay", "0ms", "--slow-delay", "80ms", "--mix", "slow=1"]);
    let begun = Instant::now();
    assert_eq!(work.get(WORK).status, 500);
    assert!(begun.elapsed() >= Duration::from_millis(80));
}

#[test]
fn a_reset_is_a_reset_and_not_a_close() {
    for (work, query) in [(always("reset"), ""), (always("good"), "?status=reset&delay_ms=3")] {
        assert!(ask(&work, query).is_reset(), "{query}");
        assert_eq!(work.get("/stats").status, 200, "the service goes on");
    }
}

#[test]
fn a_hanging_request_gets_no_response_and_delays_no_other() {
    for (work, query) in [(always("hang"), ""), (always("good"), "?status=hang")] {
        let mut stream = TcpStream::connect(&work.address).unwrap();
        write!(stream, "GET {WORK}{query} HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
        until("the request to come in", TEST_TIMEOUT, || open_requests(&work) == 1.0);
        assert_eq!(work.get(&format!("{WORK}?status=200&delay_ms=100")).status, 200);
        stream.set_nonblocking(true).unwrap();
        assert_eq!(stream.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
        drop(stream);
        until("the service to notice the disconnect", TEST_TIMEOUT, || open_requests(&work) == 0.0);
    }
}

#[test]
fn hanging_requests_do_not_delay_shutdown() {
    let work = work(&["--delay", "0ms", "--mix", "hang=1", "--grace", "120s"]);
    let _connection = ask(&work, "");
    until("the request to come in", TEST_TIMEOUT, || open_requests(&work) == 1.0);
    let begun = Instant::now();
    assert_eq!(work.stop().code, 0);
    assert!(begun.elapsed() < Duration::from_secs(60), "and does not use up its grace of 2 min");
}

#[test]
fn a_scripted_request_gets_what_it_names() {
    let work = work(&["--delay", "1ms", "--mix", "error=1", "--phases", "failing"]);
    let mut connection = work.connect();
    let mut get = |query: &str| connection.get(&format!("{WORK}?{query}"));
    let answer = get("delay_ms=25");
    assert_eq!((answer.status, answer.text()), (200, "{\"time\": 25}"));
    let answer = get("status=200");
    assert_eq!((answer.status, answer.text()), (200, "{\"time\": 1}"), "the delay is the default one");
    for (query, status, body, kind) in [
        ("status=500&delay_ms=0.5", 500, "Internal Server Error", "text/plain; charset=utf-8"),
        ("status=429", 429, "Too many requests", "text/plain; charset=utf-8"),
        ("status=503", 503, "Service Unavailable", "text/plain; charset=utf-8"),
        ("status=599&body=", 599, "", "text/plain; charset=utf-8"),
        ("body=%7B%22a%22:+1%7D", 200, "{\"a\": 1}", "application/json"),
        ("body=%7B%22a%22&status=404", 404, "{\"a\"", "text/plain; charset=utf-8"),
        ("bytes=5&id=7", 200, "xxxxx", "application/octet-stream"),
        ("bytes=0&status=201", 201, "", "application/octet-stream"),
    ] {
        let answer = get(query);
        assert_eq!((answer.status, answer.text()), (status, body), "{query}");
        assert_eq!(answer.header("content-type"), Some(kind), "{query}");
    }
    let big = get("bytes=3000001");
    assert!(big.body.len() == 3_000_001 && big.body.iter().all(|byte| *byte == b'x'));
    assert_eq!(get("status=204").status, 204);
    assert_eq!(get("status=304").status, 304);
    let stats = stats(&work);
    assert_eq!((&stats["scripted"], &stats["behaviour"]["error"]), (&json!(13), &json!(0)), "{stats}");
}

#[test]
fn a_parameter_out_of_range_is_400_and_one_line() {
    let work = always("good");
    for (query, why) in [
        ("delay_ms=-1", "delay_ms: a number from 0 to 3600000"),
        ("delay_ms=3600001", "delay_ms: a number from 0 to 3600000"),
        ("status=200&delay_ms=soon", "delay_ms: a number from 0 to 3600000"),
        ("status=100", "status: a whole number from 200 to 599, or reset, or hang"),
        ("status=teapot", "status: a whole number from 200 to 599, or reset, or hang"),
        ("bytes=99999999999", "bytes: a whole number from 0 to 1073741824"),
        ("bytes=1&body=x", "body, bytes: one of the two"),
    ] {
        let answer = work.get(&format!("{WORK}?{query}"));
        assert_eq!((answer.status, answer.text()), (400, why), "{query}");
    }
    assert_eq!(stats(&work)["requests"], 0, "these do not count");
}

#[test]
fn other_paths_are_404_and_other_methods_405() {
    let work = always("good");
    for path in ["/", "/api", "/api/work/", "/api/work/1", "/API/WORK"] {
        assert_eq!(work.get(path).status, 404, "{path}");
    }
    let answer = work.post(WORK, "{}");
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET")));
    assert_eq!(work.post("/stats", "").status, 405);
}

/// Status (0 for a reset) and body of 80 requests in sequence, each on a new connection.
fn sequence(args: &[&str]) -> Vec<(u16, String)> {
    let mix = "good=4,garbage=2,error=1,limited=1,slow=1,reset=1";
    let work = work(&[&["--delay", "0ms..9ms", "--slow-delay", "0ms", "--mix", mix], args].concat());
    let request = format!("GET {WORK} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    let all = (0..80).map(|_| {
        let text = String::from_utf8(work.raw(&request)).unwrap();
        let status = text.split(' ').nth(1).map_or(0, |status| status.parse().unwrap());
        (status, text.lines().last().unwrap_or_default().to_owned())
    });
    all.collect()
}

#[test]
fn a_seed_repeats_the_sequence_of_responses() {
    let first = sequence(&["--seed", "7"]);
    assert_eq!(first, sequence(&["--seed", "7"]));
    assert_eq!(first, sequence(&["--seed", "7", "--workers", "2"]), "on any number of event loops");
    assert_ne!(first, sequence(&["--seed", "8"]));
}

#[test]
fn a_phase_applies_to_all_its_requests() {
    let in_phase = |text| work(&["--delay", "1ms", "--slow-delay", "40ms", "--mix", "good=1", "--phases", text]);
    for (phase, status) in [("mix", 200), ("healthy", 200), ("slow", 200), ("failing", 500), ("limited", 429)] {
        let work = in_phase(phase);
        let answer = work.get(WORK);
        assert_eq!((answer.status, stats(&work)["phase"].as_str()), (status, Some(phase)));
        if status == 200 {
            assert_eq!(time(&answer), if phase == "slow" { 40 } else { 1 });
        }
    }
    assert!(ask(&in_phase("down"), "").is_reset());
    let hung = in_phase("hung 1h, healthy");
    let _connection = ask(&hung, "");
    until("the request to come in", TEST_TIMEOUT, || stats(&hung)["behaviour"]["hang"] == 1);
    assert_eq!(stats(&hung)["in_flight"], 1, "it has no response");
}

#[test]
fn phases_repeat_in_order() {
    let work = work(&["--delay", "0ms", "--phases", "failing 150ms, healthy 150ms, limited 150ms"]);
    let mut connection = work.connect();
    for status in [500, 200, 429, 500, 200] {
        until(&format!("status {status}"), TEST_TIMEOUT, || connection.get(WORK).status == status);
    }
}

#[test]
fn with_a_full_queue_a_request_is_rejected_at_once() {
    let work = work(&["--slots", "1", "--max-queue", "1"]);
    let in_system = |count: u64| until("requests to come in", TEST_TIMEOUT, || stats(&work)["in_system"] == count);
    // So long that the others come meanwhile, however late they are.
    let mut first = ask(&work, "?delay_ms=8000");
    in_system(1);
    let mut second = ask(&work, "?delay_ms=7");
    in_system(2);
    let third = work.get(&format!("{WORK}?delay_ms=0"));
    assert_eq!((third.status, third.text()), (429, "Too many requests"));
    let wait: u64 = third.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=8).contains(&wait), "{wait}");
    // Resets take no slot.
    assert!(ask(&work, "?status=reset").is_reset());
    assert_eq!(time(&first.answer()), 8000);
    let waited = time(&second.answer());
    assert!(waited > 7 && waited <= 8007, "it waits for the first: {waited}");
    assert_eq!(work.get(&format!("{WORK}?delay_ms=0")).status, 200);
    let stats = stats(&work);
    assert_eq!(
        (&stats["rejected"], &stats["scripted"], &stats["in_system"]),
        (&json!(1), &json!(4), &json!(0)),
        "{stats}"
    );
    assert_eq!(work.metric("weir_work_requests_total{behaviour=\"rejected\"}"), 1.0);
}

#[test]
fn the_default_queue_has_20_slots() {
    let work = work(&["--slots", "2"]);
    let mut busy: Vec<Raw> = (0..2).map(|_| ask(&work, "?delay_ms=8000")).collect();
    until("the servers to be busy", TEST_TIMEOUT, || stats(&work)["in_system"] == 2);
    busy.extend((0..20).map(|_| ask(&work, "?delay_ms=0")));
    until("the queue to be full", TEST_TIMEOUT, || stats(&work)["in_system"] == 22);
    assert_eq!(work.get(&format!("{WORK}?delay_ms=0")).status, 429);
    assert!(busy.iter_mut().all(|connection| connection.answer().status == 200));
}

#[test]
fn overflow_slow_rejects_nothing_and_degrades() {
    let work = work(&["--slots", "1", "--overflow", "slow"]);
    let mut all = vec![ask(&work, "?delay_ms=6000")];
    until("the first to come in", TEST_TIMEOUT, || stats(&work)["in_system"] == 1);
    all.extend((0..9).map(|_| ask(&work, "?delay_ms=100")));
    let times: Vec<u64> = all.iter_mut().map(|connection| time(&connection.answer())).collect();
    // Without degradation: 6000 + 9 x 100 in total; with it, the last request alone takes 10 x 100. All may come late by
    // the difference.
    let most = *times.iter().max().unwrap();
    assert!(most > 6900 && most <= 6000 + 100 * 54, "{times:?}");
    assert_eq!(stats(&work)["rejected"], 0);
}

#[test]
fn delays_come_from_a_file_of_samples() {
    let weir = Weir::new();
    weir.write("samples.txt", "# a comment\n3\n17.5 # a pause\n\n0.041s\n");
    let work = Serving::start_in(weir, &["work", "--delay", "@samples.txt", "--mix", "good=1"]);
    let mut connection = work.connect();
    let mut times: Vec<u64> = (0..40).map(|_| time(&connection.get(WORK))).collect();
    times.sort_unstable();
    times.dedup();
    assert_eq!(times, [3, 17, 41]);
}

#[test]
fn weir_load_and_the_service_count_the_same() {
    let mix = "good=5,garbage=2,error=2,limited=2,slow=1,reset=2";
    let work = work(&["--delay", "0ms..3ms", "--slow-delay", "5ms", "--mix", mix, "--workers", "2"]);
    let run = work.weir.load(&format!("{}{WORK}", work.url), &["-n", "600", "-c", "8"]);
    let stats = stats(&work);
    let of = |name: &str| stats["behaviour"][name].as_u64().unwrap();
    let status = |status: u16| run.status.get(&status.to_string()).copied().unwrap_or(0);
    assert_eq!(run.requests.total, 600);
    assert_eq!((status(200), status(429)), (of("good") + of("garbage"), of("limited")));
    assert_eq!((status(500), run.failures_of("reset")), (of("error") + of("slow"), of("reset")));
    assert_eq!((&stats["requests"], &stats["in_flight"]), (&json!(600), &json!(0)), "{stats}");
    for name in ["good", "garbage", "error", "limited", "slow", "reset"] {
        assert!(of(name) > 0, "{stats}");
        assert_eq!(work.metric(&format!("weir_work_requests_total{{behaviour=\"{name}\"}}")), of(name) as f64);
    }
}

#[test]
fn an_invalid_flag_is_one_line_with_what_to_write() {
    let weir = Weir::new();
    weir.write("bad.txt", "1\n2\nthree\n");
    for (flags, named) in [
        (["--mix", "god=1"].as_slice(), "unknown behaviour 'god'; choose from good, garbage"),
        (&["--mix", "good=0"], "are 0"),
        (&["--delay", "soon"], "invalid time 'soon'"),
        (&["--delay", "2ms..1ms"], "goes backwards"),
        (&["--delay", "@bad.txt"], "bad.txt: line 3: invalid time 'three'"),
        (&["--slow-delay", "@nowhere.txt"], "cannot read nowhere.txt"),
        (&["--slow-delay", "25h"], "a day (24h) is the most"),
        (&["--phases", "sick 1s"], "unknown phase 'sick'; choose mix, healthy"),
        (&["--phases", "down, healthy 1s"], "invalid phase 'down': no duration"),
        (&["--path", "v1/*"], "write e.g. /v1/orders"),
        (&["--body", "@nowhere.json"], "cannot read nowhere.json"),
        (&["--slots", "0"], "'--slots': 0 is not in 1..=1000000"),
        (&["--max-queue", "5"], "--max-queue needs --slots"),
        (&["--overflow", "slow"], "--overflow needs --slots"),
        (
            &["--slots", "2", "--max-queue", "5", "--overflow", "slow"],
            "--max-queue cannot be used with --overflow slow",
        ),
        (&["--slots", "2", "--overflow", "drop"], "[possible values: reject, slow]"),
    ] {
        let output = weir.run(&[&["serve", "work"], flags].concat());
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{flags:?}");
        assert!(output.one_line().contains(named), "{flags:?}: {}", output.stderr);
    }
}
