//! Small deterministic runs for the tests of all formats.

use std::collections::BTreeMap;
use weir_base::failure::FailureKind;

use weir_base::Nanos;
use weir_histogram::percentiles::Percentiles;
use weir_measure::agent_counts::Agent;
use weir_measure::failure_sample::FailureSample;
use weir_measure::goodput::GoodputObjectives;
use weir_measure::llm_counts::LlmCounts;
use weir_measure::llm_timeline::LlmTimeline;
use weir_measure::outcome::{Outcome, RequestEnd};
use weir_measure::recorder::{Interval, Recorder};
use weir_measure::run::{Manifest, Requests, Run, RunTarget};
use weir_measure::run_facts::RunFacts;
use weir_measure::run_llm::RunLlm;
use weir_measure::run_steps::{RunStep, StepFacts};
use weir_measure::run_streams::RunStreams;
use weir_measure::series::RunSeries;
use weir_measure::slo::Slo;
use weir_measure::stream_interval::StreamInterval;
use weir_measure::time_window::TimeWindow;
use weir_measure::{Counts, LoadModel};

/// Simulated request: response time, wait before the send, time to connect, and its end.
struct SampleRequest {
    response_us: u64,
    waited_us: u64,
    connect_us: u64,
    end: RequestEnd,
    body: u64,
}

impl Default for SampleRequest {
    fn default() -> Self {
        Self { response_us: 0, waited_us: 0, connect_us: 0, end: RequestEnd::Response(200), body: 612 }
    }
}

/// All samples.
pub(crate) fn all() -> [Run; 4] {
    [closed(), open(), wide(), empty()]
}

/// A sound closed loop: 20,000 requests in 2 s on 50 connections after 1 s of warm-up, around 5 ms, TLS.
pub(crate) fn closed() -> Run {
    let asked = |i: u64| SampleRequest {
        response_us: 3_400
            + scatter(i, 1_500)
            + scatter(i * 7 + 1, 1_500)
            + if i.is_multiple_of(150) { 9_000 } else { 0 },
        ..SampleRequest::default()
    };
    let mut sample = sample(LoadModel::Closed, 1.0, 2.0, 30_000, asked);
    sample.facts.target.url = "https://shop.example:8443/items?page=1".into();
    sample.facts.target.host = "shop.example".into();
    sample.facts.target.port = 8443;
    sample.counts.tls = Some("TLSv1.3,AES_256_GCM_SHA384".into());
    sample.set_connections(50, 50, 0);
    sample.set_in_flight_mean(49.8);
    sample.counts.cpu = Nanos::from_millis(124);
    sample.counts.cpu_utilization = 0.31;
    sample.finish(&["p99<200ms", "service.p50<10ms", "errors<1%"])
}

/// An overloaded open loop: what had to wait took long, and some arrivals were dropped or failed.
pub(crate) fn open() -> Run {
    let asked = |i: u64| SampleRequest {
        response_us: 20_000 + scatter(i, 15_000) + i * 1_400,
        waited_us: i * 1_400,
        connect_us: if i.is_multiple_of(20) { 300 + scatter(i, 400) } else { 0 },
        end: match i % 50 {
            7 => RequestEnd::Failed(FailureKind::Timeout),
            19 if i % 100 == 19 => RequestEnd::Failed(FailureKind::Reset),
            31 => RequestEnd::Response(503),
            43 => RequestEnd::Response(404),
            _ => RequestEnd::Response(200),
        },
        body: 612 + i % 2,
    };
    let mut sample = sample(LoadModel::Open, 0.0, 3.0, 1_500, asked);
    sample.facts.arrivals_end = Some(sample.facts.end);
    sample.counts.offered = 1_560;
    sample.counts.dropped = 60;
    sample.counts.unfinished = 12;
    sample.facts.interrupted = true;
    sample.facts.target.method = "POST".into();
    sample.counts.details = BTreeMap::from([
        (FailureKind::Reset, "connection reset by peer (os error 104)".into()),
        (FailureKind::Timeout, "no whole response within 2s".into()),
    ]);
    sample.set_connections(20, 75, 412);
    sample.set_in_flight_mean(503.2);
    sample.counts.cpu = Nanos::from_millis(50);
    sample.counts.cpu_utilization = 0.02;
    let mut run = sample.finish(&["p99<200ms", "errors<5%", "rate>100"]);
    let dropped = "waited longer than the timeout of 2s for a free connection";
    run.target.failure_details.insert("dropped".into(), dropped.into());
    run
}

/// Times from 20 us to 30 s.
pub(crate) fn wide() -> Run {
    let asked = |i: u64| SampleRequest {
        response_us: (20.0 * 1.5e6_f64.powf(i as f64 / 999.0)).round() as u64,
        connect_us: if i < 64 { 2_000 + i * 100 } else { 0 },
        ..SampleRequest::default()
    };
    let mut sample = sample(LoadModel::Closed, 0.0, 40.0, 1_000, asked);
    sample.set_connections(64, 64, 0);
    sample.set_in_flight_mean(46.4);
    sample.finish(&[])
}

/// Run without requests.
pub(crate) fn empty() -> Run {
    let mut sample = sample(LoadModel::Closed, 0.0, 1.0, 0, |_| SampleRequest::default());
    sample.counts.server = None;
    sample.set_connections(1, 0, 0);
    sample.finish(&["p99<200ms"])
}

/// Service that responds at once, with errors only.
pub(crate) fn broken() -> Run {
    let end = |i: u64| RequestEnd::Response(if i.is_multiple_of(4) { 404 } else { 500 });
    let mut sample = sample(LoadModel::Closed, 0.0, 2.0, 400, |i| SampleRequest {
        response_us: 900,
        end: end(i),
        ..SampleRequest::default()
    });
    sample.set_in_flight_mean(0.2);
    sample.finish(&["p99<200ms"])
}

/// Mix of two scenarios with three steps: 80 iterations, of which a quarter fails a check in the second step.
pub(crate) fn shop() -> Run {
    let mut run = sample(LoadModel::Closed, 0.0, 2.0, 0, |_| SampleRequest::default());
    let mut recorder = Recorder::new(Nanos::ZERO, run.facts.end);
    run.facts.scenarios = vec!["shop".into(), "browse".into()];
    let facts = |scenario: &str, name: &str, checks: &[&str]| StepFacts {
        name: format!("{scenario}: {name}"),
        scenario: scenario.into(),
        checks: checks.iter().map(|text| (*text).to_owned()).collect(),
    };
    run.facts.steps = vec![
        facts("shop", "login", &["status == 200"]),
        facts("shop", "order", &["status == 201", "jsonpath \"$.id\" exists"]),
        facts("browse", "GET /items", &["status == 200"]),
    ];
    let mut record = |i: u64, step: u32, ms: u64, check: Option<bool>| {
        let end = match check {
            Some(passed) => RequestEnd::Checked { status: 200, passed },
            None => RequestEnd::Response(200),
        };
        let asked = SampleRequest { response_us: ms * 1_000 + i * 10, end, ..SampleRequest::default() };
        let outcome = outcome(i, Nanos::from_millis(20 * i), &asked);
        recorder.record(&outcome);
        recorder.counts.step(step).record(&outcome);
    };
    for i in 0..40 {
        let is_ok = i % 2 == 0;
        record(i, 0, 3, None);
        record(i, 1, 9, Some(is_ok));
        record(i, 2, 5, None);
    }
    for i in 0..40_u64 {
        let is_ok = i % 2 == 0;
        let intended = Nanos::from_millis(20 * i);
        recorder.counts.step(0).record_check(0, true);
        recorder.counts.step(1).record_check(0, true);
        recorder.counts.step(1).record_check(1, is_ok);
        recorder.counts.step(2).record_check(0, true);
        if !is_ok {
            recorder.counts.step(1).record_sample(|| FailureSample {
                reason: "jsonpath \"$.id\" exists: expected something, found nothing".into(),
                response: "HTTP/1.1 200 OK\nSet-Cookie: ***\n\n{\"error\":\"sold out\"}".into(),
            });
        }
        recorder.counts.scenario(0).record(intended, intended + Nanos::from_millis(12), is_ok);
        recorder.counts.scenario(1).record(intended, intended + Nanos::from_millis(5), true);
    }
    for scenario in 0..2 {
        recorder.counts.scenario(scenario).ended_in_window = 40;
    }
    recorder.interval.in_flight = 2;
    run.series.add(0, &recorder.interval);
    run.counts = Counts { server: run.counts.server, ..recorder.counts };
    run.facts.target.method = String::new();
    run.facts.target.url = "shop.hurl, browse.hurl at http://127.0.0.1:8080".into();
    run.set_connections(4, 4, 0);
    run.set_in_flight_mean(0.34);
    run.finish(&["errors<50%"])
}

/// Closed loop of two agents and a lost third one.
pub(crate) fn agents() -> Run {
    let mut run = closed();
    let agent = |node: &str, share: f64, late_ms: f64| Agent {
        node: node.into(),
        threads: 2,
        requests: (run.requests.total as f64 * share) as u64,
        ok: (run.requests.ok as f64 * share) as u64,
        rate_per_s: run.rate_per_s.achieved * share,
        response_ms: run.response_ms,
        lateness_ms: Percentiles { p99: Some(late_ms), ..run.lateness_ms },
        cpu_us_per_request: run.cpu_us_per_request,
        cpu_utilization: run.cpu_utilization,
        start_offset_ms: late_ms / 2.0,
        clock_error_ms: 0.09,
        failure: None,
    };
    let mut agents = vec![agent("10.0.0.3 (1f0c9a4e)", 0.5, 0.05), agent("10.0.0.4 (77ab01c2)", 0.4, 0.21)];
    let lost = Some("its node is gone".into());
    agents.push(Agent { failure: lost, ..agent("a-node-with-a-name-that-is-too-long", 0.1, 0.05) });
    run.agents = agents;
    run
}

/// Requests to a language model: 200 of 1,000 tokens and 20 words each, two of which failed; some without usage.
pub(crate) fn language_model() -> Run {
    let objectives = GoodputObjectives::parse("ttft:150ms tpot:12ms").expect("objectives");
    let mut counts = LlmCounts::default();
    for i in 0..198 {
        let (intended, sent) = (Nanos::from_millis(i * 10), Nanos::from_millis(i * 10 + scatter(i, 2)));
        let mut timeline = LlmTimeline::new(intended, sent);
        (timeline.ready, timeline.first_read_delay) = (sent - Nanos(12_000), Some(Nanos(38_000)));
        let mut at = sent + Nanos::from_millis(80 + scatter(i * 3, 90));
        for chunk in 0..10 {
            timeline.record_chunk(at, &TimeWindow::ALL).into_iter().for_each(|gap| counts.record_gap(gap));
            at += Nanos(18_000_000 + 1_000 * scatter(i * 10 + chunk, 6_000));
        }
        timeline.record_usage(Some(1_000), Some(20));
        counts.record_response(&timeline, at, &objectives);
        counts.in_window.record_response(&timeline, at, &objectives, &TimeWindow::ALL);
    }
    let mut run = closed();
    run.target.url = "http://localhost:8000/v1/chat/completions".into();
    (run.target.method, run.target.tls) = ("POST".into(), None);
    run.llm = Some(RunLlm::of(&counts, &objectives, run.duration_s));
    run.requests = Requests { total: 200, ok: 198, failed: 2, ..Requests::default() };
    run.status = [("200".to_owned(), 198), ("429".to_owned(), 2)].into();
    run.failures = [("4xx".to_owned(), 2)].into();
    run.slo = Vec::new();
    let sample = FailureSample { reason: "status 429: too many tokens per minute".into(), response: String::new() };
    run.steps = vec![RunStep { samples: vec![sample], ..shop().steps[0].clone() }];
    run
}

/// The same with its streams over 12 s: gaps around 10 ms, and in each second one of 0 and one of 80 ms.
pub(crate) fn streamed() -> Run {
    let mut run = language_model();
    run.streams = Some(RunStreams { responses: 24, complete: 24, events: 744, ..RunStreams::default() });
    let mut series = RunSeries::default();
    for second in 0..12 {
        let mut streams = StreamInterval { llm_requests: 2, good: 1, output_tokens: 60, ..StreamInterval::default() };
        for i in 0..60 {
            let gap = match i {
                0 => Nanos::ZERO,
                1 => Nanos::from_millis(80),
                i => Nanos::from_millis(9) + Nanos(scatter(second * 60 + i, 2_000_000)),
            };
            streams.record_event(Some(gap));
            streams.chunk_gaps.record(gap);
        }
        for ms in [60 + second, 90] {
            streams.record_event(None);
            streams.first_event.record(Nanos::from_millis(ms - 10));
            streams.ttft.record(Nanos::from_millis(ms));
            streams.tpot.record(Nanos(10_000_000 + ms * 1_000));
            streams.e2e.record(Nanos::from_millis(400 + ms));
        }
        series.add(second, &Interval { streams: Some(Box::new(streams)), ..Interval::default() });
    }
    run.series = series.points(12.0);
    run
}

/// Compares whole reports. With `WEIR_BLESS` set it writes the golden file instead, to be reviewed before the commit.
#[allow(clippy::panic, reason = "a test says what differs")]
pub(crate) fn same(actual: &str, golden: &str, file: &str) {
    if std::env::var_os("WEIR_BLESS").is_some() {
        let path = format!("{}/src/golden/{file}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(&path, actual).expect("the source tree is writable");
    } else if actual != golden {
        panic!("{file} differs. Got:\n{actual}\nexpected:\n{golden}");
    }
}

/// Pseudo-random number below `below`.
fn scatter(i: u64, below: u64) -> u64 {
    (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) % below
}

/// Run that is not assembled yet.
struct SampleRun {
    facts: RunFacts,
    counts: Counts,
    series: RunSeries,
}

impl SampleRun {
    fn set_connections(&mut self, max: u64, opened: u64, max_backlog: u64) {
        self.facts.max_connections = max;
        (self.counts.connections, self.counts.max_backlog) = (opened, max_backlog);
    }

    fn set_in_flight_mean(&mut self, mean: f64) {
        self.counts.area = mean * (self.facts.end - self.facts.warmup).0 as f64;
    }

    /// Run as it is read from a file.
    fn finish(self, slo: &[&str]) -> Run {
        let manifest = Manifest { threads: 2, seed: 1, hostname: "lab".into(), ..Manifest::default() };
        let mut run = Run::of(self.facts, &self.counts, &[], &self.series, manifest);
        run.slo = slo.iter().map(|text| text.parse::<Slo>().expect("an objective").check(&run)).collect();
        run.weir = "0.1.0".into();
        Run::from_json(&run.to_json()).expect("own JSON")
    }
}

/// Run with `n` requests, evenly over warm-up and window.
fn sample(model: LoadModel, warmup_s: f64, duration_s: f64, n: u64, asked: impl Fn(u64) -> SampleRequest) -> SampleRun {
    let end_s = warmup_s + duration_s;
    let mut recorder = Recorder::new(Nanos::from_secs_f64(warmup_s), Nanos::from_secs_f64(end_s));
    let mut series = RunSeries::default();
    let mut second = 0;
    for i in 0..n {
        let intended = Nanos::from_secs_f64(end_s * i as f64 / n as f64);
        if intended.0 / Nanos::SECOND.0 > second {
            series.add(second, &std::mem::take(&mut recorder.interval));
            second += 1;
        }
        recorder.record(&outcome(i, intended, &asked(i)));
    }
    recorder.counts.waited = (0..n).filter(|i| asked(*i).waited_us > 0).count() as u64;
    if n > 0 {
        (recorder.interval.in_flight, recorder.interval.backlog) = (17, 3);
        series.add(second, &recorder.interval);
    }
    let target = RunTarget {
        url: "http://127.0.0.1:8080/items?page=1".into(),
        method: "GET".into(),
        host: "127.0.0.1".into(),
        port: 8080,
        path: "/items?page=1".into(),
        ..RunTarget::default()
    };
    let facts = RunFacts {
        model,
        target,
        warmup: Nanos::from_secs_f64(warmup_s),
        end: Nanos::from_secs_f64(end_s),
        ..RunFacts::default()
    };
    SampleRun { facts, counts: Counts { server: Some("nginx/1.22.1".into()), ..recorder.counts }, series }
}

fn outcome(number: u64, intended: Nanos, asked: &SampleRequest) -> Outcome {
    let us = |us: u64| Nanos(us * 1_000);
    let ready = intended + us(asked.waited_us);
    let sent = ready + us(asked.connect_us) + Nanos(11_000 + number % 40 * 1_000);
    let done = (intended + us(asked.response_us + asked.connect_us)).max(sent + us(9));
    let has_response = matches!(asked.end, RequestEnd::Response(_));
    Outcome {
        number,
        intended,
        ready: ready + us(asked.connect_us),
        sent,
        first_byte: Nanos(done.0 - (done - sent).0 / 10),
        done,
        connect: us(asked.connect_us),
        end: asked.end,
        bytes_in: if has_response { asked.body + 238 } else { 0 },
        body_in: if has_response { asked.body } else { 0 },
        bytes_out: 127,
        counted_in: 0,
    }
}
