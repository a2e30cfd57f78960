//! Counts beside figures of whole lists.

use proptest::prelude::*;

use super::*;

/// Response as a list of its times, from which all figures can be computed at once.
#[derive(Clone, Debug)]
struct Whole {
    intended: u64,
    sent: u64,
    first_byte: u64,
    events: Vec<u64>,
    end: StreamEnd,
    bytes: u64,
}

fn whole() -> impl Strategy<Value = Whole> {
    let end = prop::sample::select(vec![
        StreamEnd::Complete,
        StreamEnd::Unfinished,
        StreamEnd::Stopped,
        StreamEnd::BrokenOff,
        StreamEnd::Stalled,
        StreamEnd::TimedOut,
        StreamEnd::CutOff,
    ]);
    let gaps = prop::collection::vec(prop_oneof![Just(0), 0..1_000_000_u64, 0..10_000_000_000_u64], 0..12);
    (0..1_000_u64, 0..1_000_u64, 0..5_000_000_u64, gaps, end, 0..5_000_u64).prop_map(
        |(intended, late, wait, gaps, end, bytes)| {
            let (sent, mut at) = (intended + late, intended + late + wait);
            let first_byte = at;
            let events = gaps
                .into_iter()
                .map(|gap| {
                    at += gap;
                    at
                })
                .collect();
            Whole { intended, sent, first_byte, events, end, bytes }
        },
    )
}

fn record(counts: &mut StreamCounts, whole: &Whole) {
    let mut timeline = StreamTimeline::new(Nanos(whole.intended), Nanos(whole.sent));
    timeline.record_bytes(Nanos(whole.first_byte));
    for at in &whole.events {
        timeline.record_bytes(Nanos(*at));
        if let Some(gap) = timeline.record_event(Nanos(*at)) {
            counts.record_gap(gap);
        }
    }
    counts.record_response(&timeline, whole.end, whole.bytes);
}

fn histogram(times: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::precise();
    times.into_iter().for_each(|time| histogram.record(Nanos(time)));
    histogram
}

/// From the lists, without a timeline.
fn naive(all: &[Whole]) -> StreamCounts {
    let ends = |end| all.iter().filter(|whole| whole.end == end).count() as u64;
    let gaps = |whole: &Whole| whole.events.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>();
    let firsts = || all.iter().filter_map(|whole| Some((whole, whole.events.first()?)));
    StreamCounts {
        responses: all.len() as u64 - ends(StreamEnd::CutOff),
        complete: ends(StreamEnd::Complete),
        unfinished: ends(StreamEnd::Unfinished),
        stopped: ends(StreamEnd::Stopped),
        broken_off: ends(StreamEnd::BrokenOff),
        stalled: ends(StreamEnd::Stalled),
        timed_out: ends(StreamEnd::TimedOut),
        without_events: {
            let is_empty = |whole: &&Whole| whole.events.is_empty() && whole.end != StreamEnd::CutOff;
            all.iter().filter(is_empty).count() as u64
        },
        cut_off: ends(StreamEnd::CutOff),
        events: all.iter().map(|whole| whole.events.len() as u64).sum(),
        coalesced: all.iter().flat_map(gaps).filter(|gap| *gap == 0).count() as u64,
        bytes: all.iter().map(|whole| whole.bytes).sum(),
        first_byte: histogram(all.iter().map(|whole| whole.first_byte - whole.sent)),
        first_event: histogram(firsts().map(|(whole, at)| at - whole.intended)),
        first_event_service: histogram(firsts().map(|(whole, at)| at - whole.sent)),
        gaps: histogram(all.iter().flat_map(gaps)),
        longest_gaps: histogram(all.iter().filter_map(|whole| gaps(whole).into_iter().max())),
        events_in_window: 0,
        bytes_in_window: 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn counts_are_those_of_the_lists_however_they_are_divided(all in prop::collection::vec(whole(), 0..8), parts in 1..4_usize) {
        let mut merged = StreamCounts::default();
        for part in 0..parts {
            let mut counts = StreamCounts::default();
            all.iter().skip(part).step_by(parts).for_each(|whole| record(&mut counts, whole));
            prop_assert!(counts.check().is_ok());
            merged.add(&counts);
        }
        prop_assert_eq!(&merged, &naive(&all));
        prop_assert!(merged.check().is_ok());
        let text = serde_json::to_string(&merged).expect("JSON");
        let mut read: StreamCounts = serde_json::from_str(&text).expect("own JSON");
        prop_assert!(read.check().is_ok());
        read.responses += 1;
        prop_assert!(read.check().is_err());
    }
}

#[test]
fn a_response_stalls_behind_its_first_event_only() {
    let timeout = Nanos::from_secs(2);
    let mut timeline = StreamTimeline::new(Nanos::ZERO, Nanos(5));
    timeline.record_bytes(Nanos::from_secs(1));
    assert_eq!(timeline.stalls_at(timeout), Nanos::NEVER);
    timeline.record_event(Nanos::from_secs(3));
    assert_eq!(timeline.stalls_at(timeout), Nanos::from_secs(5));
    timeline.record_bytes(Nanos::from_secs(4));
    assert_eq!(timeline.stalls_at(timeout), Nanos::from_secs(5), "bytes without an event, as of a comment");
    assert_eq!(timeline.record_event(Nanos::from_secs(4)), Some(Nanos::SECOND));
    assert_eq!(timeline.stalls_at(timeout), Nanos::from_secs(6));
}
