//! Counts beside figures of whole lists.

use proptest::prelude::*;

use super::*;
use crate::run_llm::RunLlm;
use crate::time_window::TimeWindow;

#[derive(Clone, Debug)]
struct Whole {
    intended: u64,
    ready: u64,
    sent: u64,
    read_delay: Option<u64>,
    chunks: Vec<u64>,
    usage: Option<(u64, u64)>,
    done: u64,
}

fn whole() -> impl Strategy<Value = Whole> {
    let gaps = prop::collection::vec(0..100_000_000_u64, 0..12);
    let usage = prop::option::of((0..5_000_u64, 0..40_u64));
    let own = (0..500_u64, prop::option::of(0..1_000_u64));
    (0..1_000_u64, 500..1_000_u64, own, gaps, usage, 0..1_000_000_u64).prop_map(
        |(intended, late, own, gaps, usage, rest)| {
            let mut at = intended + late;
            let mut next = |gap: u64| {
                at += gap;
                at
            };
            let chunks: Vec<u64> = gaps.into_iter().map(&mut next).collect();
            let (ready, sent) = (intended + own.0, intended + late);
            Whole { intended, ready, sent, read_delay: own.1, chunks, usage, done: next(rest) }
        },
    )
}

fn timeline_of(whole: &Whole, window: &TimeWindow, mut record_gap: impl FnMut(Nanos)) -> LlmTimeline {
    let mut timeline = LlmTimeline::new(Nanos(whole.intended), Nanos(whole.sent));
    timeline.ready = Nanos(whole.ready);
    timeline.first_read_delay = whole.read_delay.map(Nanos);
    for at in &whole.chunks {
        if let Some(gap) = timeline.record_chunk(Nanos(*at), window) {
            record_gap(gap);
        }
    }
    if let Some((input, output)) = whole.usage {
        // As Anthropic's: the prompt and a first number, then the last one.
        timeline.record_usage(Some(input), Some(1));
        timeline.record_usage(None, Some(output));
    }
    timeline
}

fn record(counts: &mut LlmCounts, whole: &Whole, objectives: &GoodputObjectives, window: &TimeWindow) {
    let timeline = timeline_of(whole, window, |gap| counts.record_gap(gap));
    counts.record_response(&timeline, Nanos(whole.done), objectives);
    counts.in_window.record_response(&timeline, Nanos(whole.done), objectives, window);
}

fn histogram(times: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::precise();
    times.into_iter().for_each(|time| histogram.record(Nanos(time)));
    histogram
}

/// End to end by tokens.
fn ntpot(whole: &Whole) -> Option<u64> {
    let tokens = whole.usage.map(|usage| usage.1).filter(|tokens| *tokens > 0)?;
    Some((whole.done - whole.intended) / tokens)
}

fn tpot(whole: &Whole) -> Option<u64> {
    let ((_, tokens), first, last) = (whole.usage?, whole.chunks.first()?, whole.chunks.last()?);
    match tokens {
        0 => None,
        1 => Some(0),
        _ => Some((last - first) / (tokens - 1)),
    }
}

fn naive(all: &[Whole], ttft_limit: u64, tpot_limit: u64, window: &TimeWindow) -> LlmCounts {
    let firsts = || all.iter().filter_map(|whole| Some((whole, whole.chunks.first()?)));
    let with_usage = || all.iter().filter(|whole| whole.usage.is_some());
    let is_good = |whole: &&Whole| {
        whole.chunks.first().is_some_and(|at| at - whole.intended <= ttft_limit)
            && tpot(whole).is_some_and(|tpot| tpot <= tpot_limit)
    };
    let is_within = |at: u64| window.from.0 <= at && at <= window.until.0;
    let ended = || all.iter().filter(|whole| is_within(whole.done));
    let first_or_done = |whole: &Whole| *whole.chunks.first().unwrap_or(&whole.done);
    let chunks_within = |whole: &Whole| whole.chunks.iter().filter(|at| is_within(**at)).count() as u64;
    let output_within = |whole: &Whole| {
        let tokens = whole.usage?.1 as f64;
        let part = match whole.chunks.len() {
            0 => f64::from(u8::from(is_within(whole.done))),
            n => chunks_within(whole) as f64 / n as f64,
        };
        Some((tokens * part).round() as u64)
    };
    let in_window = LlmWindowCounts {
        requests: ended().count() as u64,
        good: ended().filter(is_good).count() as u64,
        input_tokens: with_usage()
            .filter(|whole| is_within(first_or_done(whole)))
            .filter_map(|whole| whole.usage)
            .map(|usage| usage.0)
            .sum(),
        output_tokens: all.iter().filter_map(output_within).sum(),
        chunks: all.iter().map(chunks_within).sum(),
    };
    LlmCounts {
        requests: all.len() as u64,
        good: all.iter().filter(is_good).count() as u64,
        with_usage: with_usage().count() as u64,
        without_tokens: all.iter().filter(|whole| whole.chunks.is_empty()).count() as u64,
        input_tokens: with_usage().filter_map(|whole| whole.usage).map(|usage| usage.0).sum(),
        output_tokens: with_usage().filter_map(|whole| whole.usage).map(|usage| usage.1).sum(),
        chunks: all.iter().map(|whole| whole.chunks.len() as u64).sum(),
        chunks_with_usage: with_usage().map(|whole| whole.chunks.len() as u64).sum(),
        broken_events: 0,
        ttft: histogram(firsts().map(|(whole, at)| at - whole.intended)),
        ttft_service: histogram(firsts().map(|(whole, at)| at - whole.sent)),
        ttft_lateness: histogram(firsts().map(|(whole, _)| whole.sent - whole.ready)),
        ttft_read_delay: histogram(firsts().filter_map(|(whole, _)| whole.read_delay)),
        ttft_unstamped: firsts().filter(|(whole, _)| whole.read_delay.is_none()).count() as u64,
        chunk_gaps: histogram(all.iter().flat_map(|whole| whole.chunks.windows(2).map(|pair| pair[1] - pair[0]))),
        ntpot: histogram(all.iter().filter_map(ntpot)),
        tpot: histogram(all.iter().filter(|whole| whole.usage.is_some_and(|usage| usage.1 > 1)).filter_map(tpot)),
        e2e: histogram(all.iter().map(|whole| whole.done - whole.intended)),
        in_window,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn counts_are_those_of_the_lists_however_they_are_divided(
        all in prop::collection::vec(whole(), 0..8), parts in 1..4_usize,
        (ttft, tpot) in (0..100_000_000_u64, 0..100_000_000_u64),
        (from, length) in (0..200_000_000_u64, 0..800_000_000_u64),
    ) {
        let objectives = GoodputObjectives { ttft: Some(Nanos(ttft)), tpot: Some(Nanos(tpot)), e2e: None };
        let window = TimeWindow { from: Nanos(from), until: Nanos(from + length) };
        let mut merged = LlmCounts::default();
        for part in 0..parts {
            let mut counts = LlmCounts::default();
            all.iter().skip(part).step_by(parts).for_each(|whole| record(&mut counts, whole, &objectives, &window));
            prop_assert!(counts.check().is_ok());
            merged.add(&counts);
        }
        prop_assert_eq!(&merged, &naive(&all, ttft, tpot, &window));
        let text = serde_json::to_string(&merged).expect("JSON");
        let mut read: LlmCounts = serde_json::from_str(&text).expect("own JSON");
        prop_assert!(read.check().is_ok());
        read.requests += 1;
        prop_assert!(read.check().is_err());
    }
}

#[test]
fn the_time_per_token_counts_tokens_and_not_chunks() {
    let mut timeline = LlmTimeline::new(Nanos::ZERO, Nanos::ZERO);
    for ms in [100, 120, 140] {
        timeline.record_chunk(Nanos::from_millis(ms), &TimeWindow::ALL);
    }
    assert_eq!(timeline.tpot(), None, "the number of tokens is unknown");
    timeline.record_usage(Some(7), Some(5));
    assert_eq!(timeline.tpot(), Some(Nanos::from_millis(10)));
    assert_eq!(timeline.ntpot(Nanos::from_millis(150)), Some(Nanos::from_millis(30)));
    let mut counts = LlmCounts::default();
    counts.record_response(&timeline, Nanos::from_millis(150), &GoodputObjectives::default());
    assert_eq!((counts.good, counts.tokens_per_chunk()), (1, Some(5.0 / 3.0)));
}

#[test]
fn a_failed_request_has_no_times() {
    let mut timeline = LlmTimeline::new(Nanos::ZERO, Nanos::ZERO);
    timeline.broken_events = 2;
    let mut counts = LlmCounts::default();
    counts.record_failure(&timeline);
    assert_eq!((counts.requests, counts.broken_events, counts.e2e.count()), (0, 2, 0));
}

#[test]
fn rates_are_of_what_was_generated_within_the_window() {
    // Four users, each generating 10 tokens/s without a pause, in responses of 30 s; a window of 20 s from 10 s on.
    let window = TimeWindow { from: Nanos::from_secs(10), until: Nanos::from_secs(30) };
    let objectives = GoodputObjectives::default();
    let mut counts = LlmCounts::default();
    for user in 0..4 {
        for response in 0..2 {
            let begin = (user * 3 + response * 30) * 1_000 + 50;
            let tokens = (1..=300).map(|token| (begin + token * 100) * 1_000_000).collect::<Vec<u64>>();
            let done = tokens[299];
            let intended = begin * 1_000_000;
            let whole = Whole {
                intended,
                ready: intended,
                sent: intended,
                read_delay: None,
                chunks: tokens,
                usage: Some((50, 300)),
                done,
            };
            let timeline = timeline_of(&whole, &window, |_| {});
            counts.in_window.record_response(&timeline, Nanos(done), &objectives, &window);
        }
    }
    let run = RunLlm::of(&counts, &objectives, window.length_s());
    assert_eq!(run.output_tokens_per_s, 40.0);
}
