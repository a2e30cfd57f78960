//! Bodies of streams: the same events however they are cut, none behind the piece that completes it, memory within its
//! bounds, and what language models' events hold is read without a panic.
//!
//! Input: a byte of options, a byte of the maximum of data, then the body. Options: bits 0 and 1: format; bits 2 to 7:
//! size of pieces less one.

use weir_events::llm::LlmApi;
use weir_events::{EventReader, StreamEvent, StreamFormat};

/// Event as an owned value.
type Owned = (Vec<u8>, Vec<u8>, Vec<u8>, Option<u64>, u64, u64, bool);

fn owned(event: StreamEvent<'_>) -> Owned {
    assert!(event.start < event.end, "{event:?}");
    let (name, data, id) = (event.name.to_vec(), event.data.to_vec(), event.id.to_vec());
    (name, data, id, event.retry_ms, event.start, event.end, event.is_truncated)
}

fn read(reader: &mut EventReader, body: &[u8], size: usize) -> (Vec<Owned>, bool) {
    let mut events = Vec::new();
    let mut received = 0;
    for piece in body.chunks(size.max(1)) {
        received += piece.len() as u64;
        let mut rest = piece;
        while let Some(event) = reader.next_event(&mut rest) {
            assert!(event.end <= received && event.end > received - piece.len() as u64, "{event:?}");
            events.push(owned(event));
        }
        assert!(rest.is_empty());
    }
    let is_within_event = reader.is_within_event();
    events.extend(reader.end().map(owned));
    assert!(reader.end().is_none(), "an end twice");
    (events, is_within_event)
}

crate::target!(|input: &[u8]| {
    let Some(([options, max_data], body)) = input.split_first_chunk::<2>() else { return };
    let format = StreamFormat::ALL[usize::from(options & 3)];
    let max_data = if *max_data == 0 { EventReader::DEFAULT_MAX_DATA_BYTES } else { usize::from(*max_data) };
    let mut reader = EventReader::with_max_data(format, max_data);
    let whole = read(&mut reader, body, body.len());
    for event in &whole.0 {
        assert!(format == StreamFormat::Chunks || event.1.len() <= max_data);
        for api in LlmApi::ALL {
            let _ = api.read(&event.1);
        }
    }
    if format != StreamFormat::Chunks {
        reader.restart(format);
        assert_eq!(read(&mut reader, body, usize::from(options >> 2) + 1), whole);
    }
});
