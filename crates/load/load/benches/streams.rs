//! CPU time per event of an observer: reader, times, histograms. `cargo bench -p weir-load --bench streams`
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::Instant;

use weir_base::Nanos;
use weir_events::llm::LlmApi;
use weir_load::event_streams::{PieceArrival, StreamObserver, StreamOptions, StreamSinks};
use weir_measure::goodput::GoodputObjectives;
use weir_measure::llm_counts::LlmCounts;
use weir_measure::stream_counts::StreamCounts;
use weir_measure::stream_interval::StreamInterval;
use weir_measure::stream_timeline::StreamEnd;
use weir_measure::time_window::TimeWindow;

const EVENTS: u64 = 2_000;
const ROUNDS: usize = 200;

fn main() {
    let chat = |token: u64| {
        format!(
            "data: {{\"id\":\"chatcmpl-9f3c1d\",\"object\":\"chat.completion.chunk\",\"created\":1767225600,\"model\":\"weir-llm\",\
             \"system_fingerprint\":null,\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" word{token}\"}},\"logprobs\":null,\
             \"finish_reason\":null}}]}}\n\n"
        )
    };
    let pieces: Vec<String> = (0..EVENTS).map(chat).collect();
    for (name, api) in [("events of 245 bytes", None), ("with their tokens", Some(LlmApi::Chat))] {
        let objectives = GoodputObjectives::default();
        let options = StreamOptions { format: None, stall_timeout: None, max_events: None, api, objectives };
        let (mut streams, mut llm) = (StreamCounts::default(), LlmCounts::default());
        let (mut interval, mut observer) = (StreamInterval::default(), StreamObserver::new(&options));
        let mut least = f64::INFINITY;
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            let mut sinks = StreamSinks {
                window: TimeWindow::ALL,
                is_counted: true,
                interval: &mut interval,
                streams: &mut streams,
                llm: options.api.map(|_| &mut llm),
                arrived: None,
                reads: None,
            };
            observer.begin(&options, (Nanos(0), Nanos(0), Nanos(1)), Nanos(2), (200, b"text/event-stream"));
            let mut at = 1_000;
            for piece in &pieces {
                at += 10_000 + (at * 7919) % 1_000_000;
                let arrival = PieceArrival { at: Nanos(at), read_delay: None };
                observer.body(&options, piece.as_bytes(), arrival, &mut sinks);
            }
            observer.record(&options, StreamEnd::Complete, Nanos(at), true, &mut sinks);
            least = least.min(begin.elapsed().as_secs_f64() * 1e9 / EVENTS as f64);
        }
        println!("{name:24} {least:7.1} ns per event");
    }
}
