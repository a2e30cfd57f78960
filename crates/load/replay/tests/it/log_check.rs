//! What holds of every access log, however damaged: nothing panics, what is read can be sent, and records come in the
//! order of their starts. The fuzz target `accesslog` includes this file.

use weir_base::Nanos;
use weir_replay::{AccessFormat, FormatDetection, LineError, LogTimeline, RateProfile, RouteTable, WindowLimit};

/// Checks a log whose first line is a pattern, or empty: then the format is told from the lines behind it. Returns the
/// number of requests that it has.
pub(crate) fn check(bytes: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(bytes);
    let (pattern, log) = text.split_once('\n').unwrap_or((&text, ""));
    let format = match pattern {
        "" => {
            let mut detection = FormatDetection::new();
            log.lines().take(FormatDetection::LINES).for_each(|line| detection.add(line));
            detection.format(log.lines().next().unwrap_or_default()).map(|(_, format)| format).ok()
        }
        _ => pattern.parse::<AccessFormat>().ok(),
    };
    let Some(format) = format else { return 0 };
    let mut timeline = LogTimeline::new(WindowLimit { items: 8, bytes: 1 << 16 }, 1);
    let (mut profile, mut starts, mut records) = (RateProfile::with_intervals(100), Vec::new(), 0);
    for line in log.lines() {
        let record = match format.record(line) {
            Ok(record) => record,
            Err(error) => {
                assert!(!error.to_string().contains('\n') || matches!(error, LineError::Literal(_)), "{error}");
                continue;
            }
        };
        assert!(record.target.starts_with('/') && record.target.bytes().all(|byte| (0x21..=0x7e).contains(&byte)));
        assert!(record.method.bytes().all(|byte| byte.is_ascii_graphic()) && !record.method.is_empty());
        assert!(record.status.is_none_or(|status| (100..1000).contains(&status)));
        assert!(record.time.resolution > Nanos::ZERO);
        for header in [&record.host, &record.user_agent, &record.referer].into_iter().flatten() {
            assert!(!header.chars().any(char::is_control), "{header:?}");
        }
        let routes = RouteTable::of([(&*record.method, record.path())].into_iter(), 1);
        assert_eq!(routes.index(&record.method, record.path()), 0);
        records += 1;
        timeline.push(record);
        starts.extend(std::iter::from_fn(|| timeline.next(false)).map(|timed| timed.start_ns));
    }
    starts.extend(std::iter::from_fn(|| timeline.next(true)).map(|timed| timed.start_ns));
    assert!(starts.is_sorted());
    assert_eq!(starts.len() as u64 + timeline.out_of_order().1, records);
    starts.iter().for_each(|start| profile.add(*start));
    assert_eq!(profile.requests(), starts.len() as u64);
    assert!(profile.stages(2.0, 3.0).len() <= 100);
    records
}
