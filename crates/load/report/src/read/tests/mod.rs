//! Results of every tool, as it writes them: those of wrk, ab and weir are real ones, those of the others follow their
//! documentation.

use proptest::prelude::*;

use super::{Tool, ToolResult, read, time_ms};
use crate::tests::fixtures;
use weir_measure::LoadModel;

fn known(text: &str) -> ToolResult {
    read(text).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn wrk_s_report_is_read() {
    let reading = known(include_str!("../golden/wrk.txt"));
    assert_eq!((reading.tool, reading.plan.model), (Tool::Wrk, Some(LoadModel::Closed)));
    assert_eq!((reading.plan.path.as_deref(), reading.plan.connections), (Some("/api/work?page=1"), Some(4)));
    assert_eq!((reading.requests, reading.failed, reading.rate_per_s), (364, 0, Some(181.02)));
    assert_eq!((reading.mean_ms, reading.max_ms), (Some(22.04), Some(57.83)));
    assert_eq!(reading.percentiles, [(50.0, 20.63), (75.0, 22.1), (90.0, 23.52), (99.0, 57.82)]);
    assert!(reading.doubts.is_empty() && reading.machine.is_none());
}

#[test]
fn wrk_s_failures_count_and_percentiles_may_be_missing() {
    let reading = known(include_str!("../golden/wrk_errors.txt"));
    assert_eq!((reading.requests, reading.failed), (7276, 7276));
    assert!(reading.percentiles.is_empty() && reading.doubts.is_empty(), "without --latency");
    let broken = include_str!("../golden/wrk.txt")
        .replace("Requests/sec", "  Socket errors: connect 1, read 2, write 3, timeout 4\nRequests/sec");
    assert_eq!((known(&broken).requests, known(&broken).failed), (374, 10));
}

#[test]
fn ab_s_report_is_read_and_answers_of_another_length_are_no_failures() {
    let reading = known(include_str!("../golden/ab.txt"));
    assert_eq!((reading.tool, reading.requests, reading.failed), (Tool::Ab, 300, 0));
    assert_eq!((reading.rate_per_s, reading.mean_ms, reading.max_ms), (Some(217.22), Some(23.018), Some(27.0)));
    assert_eq!((reading.percentile_ms(50.0), reading.percentile_ms(99.0)), (Some(22.0), Some(27.0)));
    assert_eq!((reading.plan.path.as_deref(), reading.plan.connections), (Some("/api/work?page=1"), Some(5)));
    let dynamic = include_str!("../golden/ab.txt").replace(
        "Failed requests:        0\n",
        "Failed requests:        9\n   (Connect: 0, Receive: 2, Length: 7, Exceptions: 0)\n",
    );
    assert_eq!(known(&dynamic).failed, 2);
    assert_eq!(known(include_str!("../golden/ab_errors.txt")).failed, 200);
}

#[test]
fn oha_s_json_and_text_say_the_same() {
    for text in [include_str!("../golden/oha.json"), include_str!("../golden/oha.txt")] {
        let reading = known(text);
        assert_eq!((reading.tool, reading.requests, reading.failed), (Tool::Oha, 500, 20), "without the 5 cut off");
        assert_eq!(reading.rate_per_s, Some(245.5));
        for (percentile, ms) in [(50.0, 20.1), (99.0, 45.5), (99.9, 50.2)] {
            let read = reading.percentile_ms(percentile).unwrap_or(0.0);
            assert!((read - ms).abs() < 1e-9, "{percentile}: {read}");
        }
        assert!(
            (reading.max_ms.unwrap_or(0.0) - 51.2).abs() < 1e-9 && (reading.mean_ms.unwrap_or(0.0) - 20.4).abs() < 1e-9
        );
    }
}

#[test]
fn k6_s_summaries_of_both_kinds_are_read() {
    for text in [include_str!("../golden/k6_export.json"), include_str!("../golden/k6_handle_summary.json")] {
        let reading = known(text);
        assert_eq!((reading.tool, reading.requests, reading.failed), (Tool::K6, 1000, 20));
        assert_eq!((reading.rate_per_s, reading.mean_ms, reading.max_ms), (Some(99.5), Some(20.4), Some(51.2)));
        assert_eq!((reading.percentile_ms(50.0), reading.percentile_ms(95.0)), (Some(20.1), Some(30.1)));
    }
    let reading = known(include_str!("../golden/k6_export.json"));
    assert_eq!(reading.percentile_ms(99.0), Some(45.5));
    assert!(reading.doubts[0].contains("dropped 7 iterations"), "{:?}", reading.doubts);
}

#[test]
fn k6_s_points_are_read_also_when_the_last_is_cut_off() {
    let points = include_str!("../golden/k6_points.json");
    let reading = known(points);
    assert_eq!((reading.tool, reading.requests, reading.failed), (Tool::K6, 100, 2));
    assert!((reading.rate_per_s.unwrap_or(0.0) - 100.0 / 9.92).abs() < 0.01, "{:?}", reading.rate_per_s);
    assert!((reading.percentile_ms(50.0).unwrap_or(0.0) - 24.0).abs() < 0.1);
    let cut = &points[..points.trim_end().len() - 20];
    assert_eq!(known(cut).requests, 100);
    let broken = points.replacen("{\"metric\":\"http_req_duration\"", "{broken", 1);
    assert!(read(&broken).is_err_and(|why| why.contains("line 3 is not JSON")));
}

#[test]
fn vegeta_s_report_is_read() {
    let reading = known(include_str!("../golden/vegeta.json"));
    assert_eq!(
        (reading.tool, reading.plan.model, reading.plan.offered_per_s),
        (Tool::Vegeta, Some(LoadModel::Open), Some(100.1))
    );
    assert_eq!((reading.requests, reading.failed, reading.rate_per_s), (1000, 20, Some(97.9)));
    assert_eq!((reading.percentile_ms(50.0), reading.percentile_ms(99.0)), (Some(20.1), Some(45.5)));
}

#[test]
fn jmeter_s_log_is_read_with_any_delimiter_quotes_and_failures() {
    let reading = known(include_str!("../golden/jmeter.jtl"));
    assert_eq!((reading.tool, reading.requests, reading.failed), (Tool::Jmeter, 4, 2));
    assert_eq!(reading.rate_per_s, Some(1.5), "answers, from the first start to the last end");
    assert_eq!(reading.plan.path.as_deref(), Some("/a?b=1"));
    assert!((reading.max_ms.unwrap_or(0.0) - 40.0).abs() < 0.1);
    let own = known(include_str!("../golden/weir.jtl"));
    assert_eq!((own.requests, own.failed), (60, 0));
    assert!(own.percentile_ms(50.0).is_some_and(|ms| (20.0..25.0).contains(&ms)));
}

#[test]
fn a_run_of_weir_says_everything_and_any_percentile() {
    let run = fixtures::closed();
    let reading = known(&run.to_json());
    assert_eq!((reading.tool, reading.requests), (Tool::Weir, run.requests.total));
    assert_eq!(reading.rate_per_s, Some(run.rate_per_s.achieved));
    assert_eq!(reading.percentile_ms(99.0), run.response_ms.p99);
    assert!(reading.percentile_ms(37.5).is_some() && reading.machine.is_some());
    assert_eq!(known(&fixtures::open().to_json()).doubts, fixtures::open().trust.reasons);
    assert_eq!(known(&fixtures::empty().to_json()).percentile_ms(50.0), None);
}

#[test]
fn what_is_not_a_result_is_rejected_with_the_known_tools() {
    for (text, words) in [
        ("", "not a result of a tool"),
        ("hello\nworld", "vegeta"),
        ("{\"a\": 1}", "not a result of a tool"),
        ("{", "not JSON"),
        ("<?xml version=\"1.0\"?><testResults/>", "save it as CSV"),
        ("Running 2s test @ http://h/\n  Thread Stats", "cut off"),
        ("timeStamp,elapsed,success\n", "without a request"),
        ("timeStamp,elapsed\n1,2\n", "without the column success"),
        ("{\"metrics\": {}}", "no HTTP"),
    ] {
        let why = read(text).err().unwrap_or_default();
        assert!(why.contains(words) && !why.contains('\n'), "{text}: {why}");
    }
}

#[test]
fn times_of_all_units() {
    for (text, ms) in
        [("250.00us", 0.25), ("1.5s", 1500.0), ("0.0123 secs", 12.3), ("2.00m", 120_000.0), ("5 ns", 5e-6)]
    {
        assert!(time_ms(text).is_some_and(|read| (read - ms).abs() < 1e-9), "{text}");
    }
    assert_eq!((time_ms("5"), time_ms("ms"), time_ms("")), (None, None, None));
}

proptest! {
    /// Whatever is cut off or damaged in a result: an error or a reading, and no panic.
    #[test]
    fn damaged_results_are_errors_and_no_panics(which in 0..11_usize, at in 0.0..1.0_f64, by in any::<char>(), cut: bool) {
        let all = [
            include_str!("../golden/wrk.txt"), include_str!("../golden/wrk_errors.txt"), include_str!("../golden/ab.txt"),
            include_str!("../golden/ab_errors.txt"), include_str!("../golden/oha.json"), include_str!("../golden/oha.txt"),
            include_str!("../golden/k6_export.json"), include_str!("../golden/k6_handle_summary.json"),
            include_str!("../golden/k6_points.json"), include_str!("../golden/vegeta.json"), include_str!("../golden/jmeter.jtl"),
        ];
        let mut chars: Vec<char> = all[which].chars().collect();
        let place = ((at * chars.len() as f64) as usize).min(chars.len() - 1);
        if cut { chars.truncate(place) } else { chars[place] = by }
        let _ = read(&chars.into_iter().collect::<String>());
    }
}
