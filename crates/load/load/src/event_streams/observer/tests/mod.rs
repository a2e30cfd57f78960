//! Responses by hand, and one after another.

use proptest::prelude::*;

use super::*;
use weir_events::llm::LlmApi;
use weir_histogram::Histogram;
use weir_measure::goodput::GoodputObjectives;
use weir_measure::llm_window_counts::LlmWindowCounts;

fn options(api: Option<LlmApi>) -> StreamOptions {
    StreamOptions { format: None, stall_timeout: None, max_events: None, api, objectives: GoodputObjectives::default() }
}

/// Piece that is read 30 ns after its arrival.
fn read_at(at: Nanos) -> PieceArrival {
    PieceArrival { at, read_delay: Some(Nanos(30)) }
}

/// Sinks of a run without an end.
fn sinks<'c>(
    interval: &'c mut StreamInterval,
    streams: &'c mut StreamCounts,
    llm: Option<&'c mut LlmCounts>,
) -> StreamSinks<'c> {
    let (window, is_counted) = (TimeWindow::ALL, true);
    StreamSinks { window, is_counted, interval, streams, llm, arrived: None, reads: None }
}

/// Plays pieces with their times; the response ends at `done`.
fn play(
    options: &StreamOptions,
    content_type: &str,
    pieces: &[(u64, &[u8])],
    done: u64,
) -> (StreamEnd, StreamCounts, LlmCounts) {
    let (mut streams, mut llm) = (StreamCounts::default(), LlmCounts::default());
    let mut interval = StreamInterval::default();
    let mut observer = StreamObserver::new(options);
    observer.begin(options, (Nanos(100), Nanos(150), Nanos(200)), Nanos(1_000), (200, content_type.as_bytes()));
    for (at, piece) in pieces {
        let mut sinks = sinks(&mut interval, &mut streams, options.api.map(|_| &mut llm));
        observer.body(options, piece, read_at(Nanos(*at)), &mut sinks);
        if observer.has_stopped() {
            break;
        }
    }
    let mut sinks = sinks(&mut interval, &mut streams, options.api.map(|_| &mut llm));
    let fault = observer.settle(options, Nanos(done), &mut sinks);
    let end = observer.record(options, StreamEnd::Complete, Nanos(done), fault.is_none(), &mut sinks);
    // Without a warm-up, an interval has the same as the whole.
    assert_eq!(interval.gaps.count(), streams.gaps.count());
    assert_eq!(interval.first_event.count(), streams.first_event.count());
    assert_eq!((interval.events, interval.llm_requests), (streams.events, llm.requests));
    assert_eq!((interval.good, interval.output_tokens), (llm.good, llm.output_tokens));
    let counts =
        |ttft: &Histogram, tpot: &Histogram, chunk_gaps: &Histogram| (ttft.count(), tpot.count(), chunk_gaps.count());
    let expected = counts(&llm.ttft, &llm.tpot, &llm.chunk_gaps);
    assert_eq!(counts(&interval.ttft, &interval.tpot, &interval.chunk_gaps), expected);
    (end, streams, llm)
}

const CHAT: &[&[u8]] = &[
    b"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n",
    b"data: {\"choices\":[{\"delta\":{\"content\":\"c\"}}]}\n\n",
    b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":5}}\n\ndata: [DONE]\n\n",
];

#[test]
fn a_chat_is_measured_by_its_tokens() {
    let pieces: Vec<(u64, &[u8])> = [2_000, 10_000, 18_000, 19_000].into_iter().zip(CHAT.iter().copied()).collect();
    let (end, streams, llm) = play(&options(Some(LlmApi::Chat)), "text/event-stream", &pieces, 20_000);
    assert_eq!((end, streams.events, streams.coalesced), (StreamEnd::Complete, 6, 2));
    assert_eq!(streams.first_event.max(), Some(Nanos(1_900)));
    assert_eq!((llm.chunks, llm.broken_events, llm.input_tokens, llm.output_tokens), (3, 0, 7, 5));
    // To 3 digits: 10,000 - 100, and (18,000 - 10,000) / 4.
    let near = |time: Option<Nanos>, exact: u64| time.is_some_and(|time| time.0.abs_diff(exact) <= exact / 500);
    // Of the first chunk, and not of those behind it.
    let own = [&llm.ttft_lateness, &llm.ttft_read_delay].map(Histogram::max);
    assert_eq!((own, llm.ttft_unstamped), ([Some(Nanos(50)), Some(Nanos(30))], 0));
    assert!(near(llm.ttft.max(), 9_900) && near(llm.tpot.max(), 2_000) && near(llm.e2e.max(), 19_900), "{llm:?}");
}

#[test]
fn of_a_response_to_a_request_of_the_warm_up_counts_what_comes_within_the_window() {
    let chat = options(Some(LlmApi::Chat));
    let window = TimeWindow { from: Nanos(5_000), until: Nanos(15_000) };
    let (mut interval, mut streams) = (StreamInterval::default(), StreamCounts::default());
    let mut llm = LlmCounts::default();
    let mut observer = StreamObserver::new(&chat);
    observer.begin(&chat, (Nanos(100), Nanos(150), Nanos(200)), Nanos(1_000), (200, b"text/event-stream"));
    let sinks = sinks(&mut interval, &mut streams, Some(&mut llm));
    let mut sinks = StreamSinks { window, is_counted: false, ..sinks };
    // Both ends of the window are within it; one of three chunks is.
    let token = |at: u64, piece: &'static [u8]| (Nanos(at), piece);
    let one = b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    for (at, piece) in [token(4_999, one), token(5_000, one), token(15_001, one), token(15_002, CHAT[3])] {
        observer.body(&chat, piece, read_at(at), &mut sinks);
    }
    assert_eq!(observer.settle(&chat, Nanos(15_003), &mut sinks), None);
    observer.record(&chat, StreamEnd::Complete, Nanos(15_003), true, &mut sinks);
    assert_eq!((streams.events_in_window, streams.bytes_in_window), (1, one.len() as u64));
    assert_eq!((streams.responses, streams.events, streams.gaps.count()), (0, 0, 0));
    // The prompt was read in the warm-up, and the response had not ended; a third of five tokens came meanwhile.
    let within = LlmWindowCounts { output_tokens: 2, chunks: 1, ..LlmWindowCounts::default() };
    assert_eq!(llm, LlmCounts { in_window: within, ..LlmCounts::default() });
}

#[test]
fn content_that_is_broken_or_reports_an_error_is_a_fault_by_its_event() {
    let chat = options(Some(LlmApi::Chat));
    let fault = |pieces: &[&[u8]], content_type: &str| {
        let mut observer = StreamObserver::new(&chat);
        observer.begin(&chat, (Nanos(1), Nanos(1), Nanos(2)), Nanos(3), (200, content_type.as_bytes()));
        pieces.iter().for_each(|piece| {
            assert_eq!(
                observer.body(
                    &chat,
                    piece,
                    read_at(Nanos(4)),
                    &mut sinks(&mut StreamInterval::default(), &mut StreamCounts::default(), None)
                ),
                piece.len()
            );
        });
        observer.settle(&chat, Nanos(5), &mut sinks(&mut StreamInterval::default(), &mut StreamCounts::default(), None))
    };
    let sse = "text/event-stream";
    assert_eq!(fault(CHAT, sse), None);
    assert_eq!(fault(&[CHAT[0], b"data: {broken\n\n", CHAT[3]], sse), Some(ContentFault::NotJson(2)));
    assert_eq!(
        fault(&[CHAT[0], b"data: {\"error\":{\"message\":\"no\"}}\n\n"], sse),
        Some(ContentFault::Error(2, "no".into()))
    );
    assert_eq!(fault(&[b"<html>", b"</html>"], "text/html"), Some(ContentFault::Html));
    assert_eq!(fault(&[b"OK"], "text/plain"), Some(ContentFault::NotJson(1)));
    assert_eq!(fault(&[b"data: [DONE]\n\n"], sse), Some(ContentFault::NoToken));
    assert_eq!(fault(&[], sse), Some(ContentFault::Empty));
    assert_eq!(fault(&CHAT[..3], sse), Some(ContentFault::NoEnd));
    let heartbeats: &[&[u8]] = &[b"data:\n\n", b"event: ping\ndata: 12:00\n\n", b": comment\n\n", b"data: null\n\n"];
    assert_eq!(fault(&[heartbeats, CHAT].concat(), sse), None);
    assert_eq!(fault(heartbeats, sse), Some(ContentFault::Empty));
    let failed = b"event: error\ndata: out of memory\n\n";
    assert_eq!(fault(&[CHAT[1], failed], sse), Some(ContentFault::Error(3, "out of memory".into())));
    let thinking =
        br#"data: {"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}}]}

"#;
    assert_eq!(fault(&[thinking, b"data: [DONE]\n\n"], sse), None);
    assert_eq!(fault(&[b"{\"choices\":[{\"message\":", b"{\"content\":\"a\"}}]}"], "application/json"), None);
    assert_eq!(fault(&[b"{\"choices\":"], "application/json"), Some(ContentFault::NotJson(1)));
}

#[test]
fn an_error_is_no_stream_and_what_ends_a_stream_breaks_it_off() {
    let options = options(None);
    let mut observer = StreamObserver::new(&options);
    observer.begin(&options, (Nanos(1), Nanos(1), Nanos(2)), Nanos(3), (500, b"text/event-stream"));
    assert!(!observer.is_reading());
    assert_eq!(observer.failure_kind(FailureKind::Closed), FailureKind::Closed);
    observer.begin(&options, (Nanos(1), Nanos(1), Nanos(2)), Nanos(3), (200, b"text/event-stream"));
    assert_eq!(observer.failure_kind(FailureKind::Closed), FailureKind::BrokenOff);
    assert_eq!(observer.failure_kind(FailureKind::Timeout), FailureKind::Timeout);
    let (mut streams, mut interval) = (StreamCounts::default(), StreamInterval::default());
    // The second call has nothing to record.
    for _ in 0..2 {
        let mut sinks = sinks(&mut interval, &mut streams, None);
        observer.record(&options, StreamEnd::BrokenOff, Nanos(9), false, &mut sinks);
    }
    assert_eq!((streams.responses, streams.broken_off, streams.without_events), (1, 1, 1));
}

#[test]
fn a_response_ends_after_the_events_that_were_asked_for() {
    let two = StreamOptions { max_events: Some(2), ..options(None) };
    let pieces: &[(u64, &[u8])] =
        &[(2_000, b"data: 1\n\nda"), (3_000, b"ta: 2\n\ndata: 3\n\n"), (4_000, b"data: 4\n\n")];
    let (end, streams, _) = play(&two, "text/event-stream", pieces, 5_000);
    assert_eq!((end, streams.events, streams.stopped), (StreamEnd::Stopped, 2, 1));
    assert_eq!(streams.bytes, "data: 1\n\ndata: 2\n\n".len() as u64);
    let until = StreamEndRule { max_events: None, text: Some("2".to_owned()) };
    let mut observer = StreamObserver::new(&two);
    let sse: (u16, &[u8]) = (200, b"text/event-stream");
    observer.begin(&StreamOptions::default(), (Nanos(1), Nanos(1), Nanos(2)), Nanos(3), sse);
    observer.end_by(&until);
    let read = |observer: &mut StreamObserver, piece: &[u8]| {
        (
            observer.body(
                &StreamOptions::default(),
                piece,
                read_at(Nanos(4)),
                &mut sinks(&mut StreamInterval::default(), &mut StreamCounts::default(), None),
            ),
            observer.has_stopped(),
        )
    };
    assert_eq!(read(&mut observer, b"data: 1\n\nda"), (11, false));
    assert_eq!(read(&mut observer, b"ta: 2\n\ndata: 3\n\n"), (7, true));
    assert_eq!(read(&mut observer, b"data: 4\n\n"), (0, true));
    // The next response has no such rule.
    observer.begin(&StreamOptions::default(), (Nanos(1), Nanos(1), Nanos(2)), Nanos(3), sse);
    assert_eq!(read(&mut observer, b"data: 2\n\n"), (9, false));
}

#[test]
fn a_response_that_ends_within_an_event_is_unfinished_and_a_last_line_is_none_such() {
    let (end, streams, _) = play(&options(None), "text/event-stream", &[(2_000, b"data: 1\n\ndata: 2\n")], 5_000);
    assert_eq!((end, streams.events, streams.unfinished), (StreamEnd::Unfinished, 1, 1));
    let (end, streams, _) = play(&options(None), "application/x-ndjson", &[(2_000, b"1\n2")], 5_000);
    assert_eq!((end, streams.events, streams.complete), (StreamEnd::Complete, 2, 1));
}

#[test]
fn a_stall_counts_from_the_last_event() {
    let options = StreamOptions { stall_timeout: Some(Nanos(500)), ..options(None) };
    let mut observer = StreamObserver::new(&options);
    observer.begin(&options, (Nanos(1), Nanos(1), Nanos(2)), Nanos(3), (200, b"text/event-stream"));
    assert_eq!(observer.stalls_at(&options), Nanos::NEVER);
    observer.body(
        &options,
        b"data: 1\n\n",
        read_at(Nanos(1_000)),
        &mut sinks(&mut StreamInterval::default(), &mut StreamCounts::default(), None),
    );
    observer.body(
        &options,
        b": comment\n",
        read_at(Nanos(1_400)),
        &mut sinks(&mut StreamInterval::default(), &mut StreamCounts::default(), None),
    );
    assert_eq!(observer.stalls_at(&options), Nanos(1_500));
}

proptest! {
    #[test]
    fn nothing_of_a_response_carries_over_to_the_next(cut in 0..60_usize) {
        let options = options(Some(LlmApi::Chat));
        let body = CHAT.concat();
        let whole: Vec<(u64, &[u8])> = vec![(2_000, &body)];
        let expected = play(&options, "text/event-stream", &whole, 3_000);
        let (mut streams, mut llm) = (StreamCounts::default(), LlmCounts::default());
        let (mut interval, mut observer) = (StreamInterval::default(), StreamObserver::new(&options));
        // In the warm-up.
        let warm_up = sinks(&mut interval, &mut streams, options.api.map(|_| &mut llm));
        let window = TimeWindow { from: Nanos(50), until: Nanos::NEVER };
        let mut sinks = StreamSinks { window, is_counted: false, ..warm_up };
        observer.begin(&options, (Nanos(1), Nanos(1), Nanos(2)), Nanos(3), (200, b"text/event-stream"));
        observer.body(&options, &body[..cut], read_at(Nanos(4)), &mut sinks);
        observer.record(&options, StreamEnd::BrokenOff, Nanos(5), false, &mut sinks);
        observer.begin(&options, (Nanos(100), Nanos(150), Nanos(200)), Nanos(1_000), (200, b"text/event-stream"));
        let mut sinks = StreamSinks { is_counted: true, ..sinks };
        observer.body(&options, &body, read_at(Nanos(2_000)), &mut sinks);
        let fault = observer.settle(&options, Nanos(3_000), &mut sinks);
        let end = observer.record(&options, StreamEnd::Complete, Nanos(3_000), fault.is_none(), &mut sinks);
        prop_assert_eq!((end, streams, llm), expected);
    }
}
