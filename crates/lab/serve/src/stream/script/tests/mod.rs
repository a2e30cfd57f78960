//! Scripts read by the reader of events.

use proptest::prelude::*;

use super::*;
use crate::stream::options::{LineEnd, SseOptions, StreamFaults};
use weir_base::Nanos;
use weir_events::EventReader;
use weir_workload::delay::Delay;

fn options() -> impl Strategy<Value = Options> {
    let line_end = prop::sample::select(vec![LineEnd::Lf, LineEnd::Crlf, LineEnd::Cr, LineEnd::Mixed]);
    let sse = (line_end, any::<bool>(), 0.0..1.0_f64, any::<bool>(), any::<bool>(), 1..4_u64).prop_map(
        |(line_end, has_bom, comments, has_name, has_ids, data_lines)| SseOptions {
            line_end,
            has_bom,
            comments,
            event_name: has_name.then(|| "tick".to_owned()),
            has_ids,
            retry: has_ids.then_some(Nanos::from_millis(1500)),
            data_lines,
        },
    );
    (sse, any::<u64>(), 0..12_u64, 1..4_u64, 1..5_u64, 0..80_usize, 0..30_u64).prop_map(
        |(sse, seed, events, pack, split, event_bytes, gap)| Options {
            seed,
            events,
            pack,
            split,
            event_bytes,
            gap: Delay::Constant(Nanos::from_millis(gap)),
            sse,
            ..Options::default()
        },
    )
}

/// Events that a reader finds in the writes, each with the number of the write that completed it.
fn read(format: StreamFormat, writes: &[StreamWrite]) -> Vec<(usize, String, String, String)> {
    let mut reader = EventReader::new(format);
    let mut events = Vec::new();
    for (index, write) in writes.iter().enumerate() {
        let mut rest = write.bytes.as_slice();
        while let Some(event) = reader.next_event(&mut rest) {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            events.push((index, text(event.name), text(event.data), text(event.id)));
        }
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_reader_finds_the_events_in_the_writes_that_complete_them(options in options(), k in 0..1000_u64) {
        for format in [StreamFormat::Sse, StreamFormat::JsonLines] {
            let writes: Vec<StreamWrite> = StreamScript::new(&options, format, options.events, k).collect();
            let again: Vec<StreamWrite> = StreamScript::new(&options, format, options.events, k).collect();
            prop_assert_eq!(&writes, &again);
            prop_assert!(writes.windows(2).all(|pair| pair[0].due <= pair[1].due));
            prop_assert!(writes.iter().all(|write| !write.bytes.is_empty()));
            let events = read(format, &writes);
            let completing: Vec<usize> =
                (0..).zip(&writes).flat_map(|(index, write)| (0..write.completes).map(move |_| index)).collect();
            // A CR completes an event before the LF of the same line end, which may be in the next write.
            let ends_early = format == StreamFormat::Sse && options.split > 1
                && matches!(options.sse.line_end, LineEnd::Crlf | LineEnd::Mixed);
            prop_assert_eq!(events.len() as u64, options.events);
            for ((found, name, data, id), (expected, n)) in events.iter().zip(completing.iter().zip(1_u64..)) {
                prop_assert!(found == expected || ends_early && found + 1 == *expected, "{} {}", found, expected);
                let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
                prop_assert_eq!(data["n"].as_u64(), Some(n));
                let text = data["text"].as_str().expect("a text");
                prop_assert!(text.len() >= options.event_bytes && text.len() <= options.event_bytes + 12);
                if format == StreamFormat::Sse {
                    prop_assert_eq!(name.as_str(), options.sse.event_name.as_deref().unwrap_or_default());
                    prop_assert_eq!(id.clone(), if options.sse.has_ids { n.to_string() } else { String::new() });
                }
            }
        }
    }

    #[test]
    fn a_broken_response_lacks_its_event_and_all_behind(options in options(), k in 0..1000_u64, is_cut: bool) {
        let faults = if is_cut {
            StreamFaults { cut: 1.0, ..StreamFaults::default() }
        } else {
            StreamFaults { half: 1.0, ..StreamFaults::default() }
        };
        let options = Options { faults, events: options.events + 1, ..options };
        let script = StreamScript::new(&options, StreamFormat::Sse, options.events, k);
        let (fault, at) = script.fault().expect("a fault");
        prop_assert_eq!(fault, if is_cut { StreamFault::Cut } else { StreamFault::Half });
        let writes: Vec<StreamWrite> = script.collect();
        prop_assert_eq!(read(StreamFormat::Sse, &writes).len() as u64, at - 1);
        prop_assert_eq!(writes.iter().map(|write| write.completes).sum::<u64>(), at - 1);
    }
}

#[test]
fn gaps_and_a_stall_add_up() {
    let options = Options {
        events: 5,
        first_delay: Delay::Constant(Nanos::from_millis(100)),
        gap: Delay::Constant(Nanos::from_millis(10)),
        ..Options::default()
    };
    let due = |options: &Options| -> Vec<u64> {
        let script = StreamScript::new(options, StreamFormat::Chunks, options.events, 3);
        script.map(|write| write.due.as_millis()).collect()
    };
    assert_eq!(due(&options), [100, 110, 120, 130, 140]);
    assert_eq!(due(&Options { pack: 2, ..options.clone() }), [100, 110, 120]);
    assert_eq!(due(&Options { split: 2, events: 2, ..options.clone() }), [100, 101, 111, 112]);
    let faults = StreamFaults { stall: 1.0, stall_time: Delay::Constant(Nanos::SECOND), ..StreamFaults::default() };
    let stalled = Options { faults, ..options };
    let at = StreamScript::new(&stalled, StreamFormat::Chunks, 5, 3).fault().expect("a stall").1 as usize;
    let expected: Vec<u64> = (1..=5).map(|n| 90 + 10 * n + if n >= at as u64 { 1000 } else { 0 }).collect();
    assert_eq!(due(&stalled), expected);
}
