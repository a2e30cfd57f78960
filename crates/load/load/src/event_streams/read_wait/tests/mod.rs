//! Streams in virtual time: percentiles of gaps beside those of the true arrivals.

use proptest::prelude::*;

use super::*;
use weir_base::rng::SeededRng;
use weir_histogram::Histogram;

/// Streams whose events come at known times.
#[derive(Clone, Copy, Debug)]
struct Streams {
    count: u64,
    /// Shortest and longest gap.
    gap: (u64, u64),
    /// Fraction of events that are followed by another one at once, ...
    burst: f64,
    /// ... after this gap.
    burst_gap: u64,
    response: Nanos,
}

/// Outcome of a simulation of ten seconds.
struct Played {
    /// Gaps by the true arrivals, and by the times of reads that return the arrival of their last event.
    truth: Histogram,
    read: Histogram,
    wakes: u64,
    events: u64,
    longest: Nanos,
}

fn play(streams: &Streams, seed: u64) -> Played {
    let mut rng = SeededRng::new(seed, 7);
    let mut arrivals: Vec<(u64, u64)> = Vec::new();
    for stream in 0..streams.count {
        let mut at = rng.bits() % streams.gap.1;
        while at < 10_000_000_000 {
            arrivals.push((at, stream));
            if rng.unit() < streams.burst {
                arrivals.push((at + streams.burst_gap, stream));
            }
            at += streams.gap.0 + rng.bits() % (streams.gap.1 - streams.gap.0 + 1) + streams.burst_gap;
        }
    }
    arrivals.sort_unstable();
    let mut wait = ReadWait::default();
    wait.record_response(streams.response);
    let (mut truth, mut read) = (Histogram::precise(), Histogram::precise());
    let mut true_last = vec![None; streams.count as usize];
    let mut read_last: Vec<Option<u64>> = vec![None; streams.count as usize];
    let (mut next, mut now, mut wakes, mut longest) = (0, 0, 0, Nanos::ZERO);
    while let Some((at, _)) = arrivals.get(next) {
        // A thread that sleeps is woken by the first event, and one that waits by its timer.
        now = (*at).max(now);
        let end = next + arrivals[next..].partition_point(|(at, _)| *at <= now);
        let batch = &arrivals[next..end];
        for (index, (at, stream)) in batch.iter().enumerate() {
            let stream = *stream as usize;
            if let Some(last) = true_last[stream].replace(*at) {
                truth.record(Nanos(at - last));
            }
            // The last event of the same stream in this batch has the time of the read.
            let stamp = batch[index..].iter().rfind(|(_, other)| *other as usize == stream).map_or(*at, |(at, _)| *at);
            let gap = read_last[stream].replace(stamp).map(|last| Nanos(stamp - last));
            gap.into_iter().for_each(|gap| read.record(gap));
            wait.record_event(gap);
        }
        (next, wakes) = (end, wakes + 1);
        let pause = wait.after(Nanos(now));
        longest = longest.max(pause);
        now += pause.0.max(1);
    }
    Played { truth, read, wakes, events: arrivals.len() as u64, longest }
}

/// Largest deviation of a percentile, as a part of 1% and 50 us.
fn deviation(played: &Played) -> f64 {
    let at = |quantile: f64| {
        let ns = |times: &Histogram| times.quantile(quantile).map_or(0.0, |time| time.0 as f64);
        let (truth, read) = (ns(&played.truth), ns(&played.read));
        (truth - read).abs() / (truth * 0.01 + 50_000.0)
    };
    [0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999].map(at).into_iter().fold(0.0, f64::max)
}

const SECOND: Nanos = Nanos::SECOND;
const MS: u64 = 1_000_000;

#[test]
fn many_streams_with_long_gaps_cost_a_wake_up_per_several_events() {
    let streams = Streams { count: 200, gap: (19 * MS, 21 * MS), burst: 0.0, burst_gap: 0, response: SECOND };
    let played = play(&streams, 1);
    assert_eq!(played.longest, WAITS[0]);
    assert!(played.wakes * 4 < played.events, "{} wake-ups of {} events", played.wakes, played.events);
    assert!(deviation(&played) < 0.2, "{}", deviation(&played));
}

#[test]
fn few_events_short_gaps_and_short_responses_do_not_wait() {
    let long = Streams { count: 200, gap: (19 * MS, 21 * MS), burst: 0.0, burst_gap: 0, response: SECOND };
    let rare = Streams { count: 4, ..long };
    let short = Streams { gap: (MS / 5, MS), count: 8, ..long };
    let brief = Streams { response: Nanos(20 * MS), ..long };
    let doubled = Streams { burst: 0.01, burst_gap: MS / 10, ..long };
    for (name, streams) in [("rare", rare), ("short", short), ("brief", brief), ("doubled", doubled)] {
        let played = play(&streams, 2);
        assert_eq!((played.longest, played.read.percentiles()), (Nanos::ZERO, played.truth.percentiles()), "{name}");
    }
}

#[test]
fn events_of_one_packet_and_gaps_that_no_figure_shows_do_not_keep_others_from_waiting() {
    let long = Streams { count: 200, gap: (19 * MS, 21 * MS), burst: 0.0, burst_gap: 0, response: SECOND };
    for burst_gap in [0, 30_000] {
        let played = play(&Streams { burst: 0.02, burst_gap, ..long }, 3);
        assert!(played.longest > Nanos::ZERO && deviation(&played) < 1.0, "{burst_gap}: {}", deviation(&played));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Oracle: the true arrivals.
    #[test]
    fn no_percentile_of_gaps_is_off_by_more_than_a_hundredth_and_50_us(
        (count, seed) in (1..60_u64, any::<u64>()),
        (shortest, more) in (50_000..20_000_000_u64, 0..40_000_000_u64),
        (burst, burst_gap) in (0.0..0.05_f64, 0..2_000_000_u64),
        response in 10_000_000..20_000_000_000_u64,
    ) {
        // No more than 200,000 events.
        let count = count.min(shortest / 3_000 + 1);
        let streams = Streams { count, gap: (shortest, shortest + more), burst, burst_gap, response: Nanos(response) };
        let played = play(&streams, seed);
        prop_assert!(deviation(&played) <= 1.0, "{}: waits up to {}", deviation(&played), played.longest);
        prop_assert!(played.longest.0 * RESPONSES_PER_WAIT <= response);
    }
}
