//! Access logs that are damaged in every way: the body of the fuzz target on mutated seeds.
#![allow(clippy::disallowed_methods, reason = "it reads seeds")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failed precondition fails the test")]

use std::fs;
use std::path::Path;

use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_replay::{AccessFormat, FormatDetection, LogTimeline, RateProfile, RouteTable, WindowLimit};

/// Number of damaged logs.
const LOGS: usize = 30_000;

/// Checks what the fuzz target `accesslog` checks.
fn check(bytes: &[u8]) -> u64 {
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
        let Ok(record) = format.record(line) else { continue };
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

#[test]
fn damaged_logs_are_read_without_a_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/accesslog");
    let mut seeds: Vec<(std::ffi::OsString, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name(), fs::read(entry.path()).unwrap()))
        .collect();
    seeds.sort();
    assert!(seeds.len() > 5);
    for (name, seed) in &seeds {
        assert!(check(seed) > 0, "{name:?} has no request");
    }
    let mut rng = SeededRng::new(1, 0x6c6f_6773);
    let mut read = 0;
    for _ in 0..LOGS {
        let mut bytes = seeds[rng.below(seeds.len())].1.clone();
        for _ in 0..=rng.below(6) {
            let at = rng.below(bytes.len().max(1));
            match rng.below(5) {
                0 => drop(bytes.splice(
                    at..at,
                    [b' ', b'"', b'\\', b'$', b'%', b'{', 0xff, b'['][rng.below(8)..].iter().copied().take(1),
                )),
                1 if at < bytes.len() => drop(bytes.remove(at)),
                2 if at < bytes.len() => bytes[at] = rng.bits() as u8,
                3 => bytes.truncate(at.max(1)),
                _ => {
                    let other = &seeds[rng.below(seeds.len())].1;
                    let from = rng.below(other.len());
                    bytes.splice(at.min(bytes.len()).., other[from..].iter().copied());
                }
            }
        }
        read += check(&bytes);
    }
    assert!(read > 1000, "only {read} requests were read");
}
