//! Framing and compression of messages.

use std::borrow::Cow;
use std::io::Read;

use flate2::Compression;
use flate2::bufread::{GzDecoder, GzEncoder};
use weir_events::{EventReader, StreamEvent, StreamFormat};

/// Maximum size of a message that is decoded, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// Appends a message with its flag and length; `compresses`: by gzip.
///
/// # Errors
/// It is longer than a length can name.
pub fn push_message(message: &[u8], compresses: bool, out: &mut Vec<u8>) -> Result<(), String> {
    let message = if compresses { Cow::Owned(gzip(message)?) } else { Cow::Borrowed(message) };
    let length = u32::try_from(message.len()).map_err(|_| "a message is longer than 4 GiB".to_owned())?;
    out.push(u8::from(compresses));
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&message);
    Ok(())
}

/// Whole messages of a body, decompressed, and whether something is wrong behind them. `encoding` is the value of
/// `grpc-encoding`; empty without one.
pub fn read_messages(
    body: &[u8],
    encoding: &[u8],
    mut take: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    let mut reader = EventReader::with_max_data(StreamFormat::Grpc, MAX_MESSAGE_BYTES);
    let mut rest = body;
    while let Some(event) = reader.next_event(&mut rest) {
        take(&message_of(&event, encoding)?)?;
    }
    if reader.is_within_event() {
        return Err("the response ends within a message".to_owned());
    }
    Ok(())
}

/// Message of an event, decompressed.
///
/// # Errors
/// Its flag, its compression or its length.
pub fn message_of<'a>(event: &StreamEvent<'a>, encoding: &[u8]) -> Result<Cow<'a, [u8]>, String> {
    if let Some(fault) = flag_fault(event.name, encoding) {
        return Err(fault);
    }
    if event.is_truncated {
        return Err(format!("a message is longer than {} MiB", MAX_MESSAGE_BYTES >> 20));
    }
    match event.name {
        StreamFormat::PLAIN_MESSAGE => Ok(Cow::Borrowed(event.data)),
        _ => gunzip(event.data).map(Cow::Owned),
    }
}

/// What is wrong with the flag of a message, given as the name of its event.
pub fn flag_fault(name: &[u8], encoding: &[u8]) -> Option<String> {
    match name {
        StreamFormat::PLAIN_MESSAGE => None,
        StreamFormat::COMPRESSED_MESSAGE if encoding == b"gzip" => None,
        StreamFormat::COMPRESSED_MESSAGE if matches!(encoding, b"" | b"identity") => {
            Some("a message is compressed, and the response has no grpc-encoding".to_owned())
        }
        StreamFormat::COMPRESSED_MESSAGE => {
            let encoding = String::from_utf8_lossy(encoding).escape_debug().to_string();
            Some(format!("the response has the grpc-encoding '{encoding}'; gzip was accepted"))
        }
        _ => Some("a message begins with a byte other than 0 and 1".to_owned()),
    }
}

fn gzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    GzEncoder::new(bytes, Compression::default()).read_to_end(&mut out).map_err(|error| error.to_string())?;
    Ok(out)
}

fn gunzip(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let limited = GzDecoder::new(bytes).take(MAX_MESSAGE_BYTES as u64 + 1).read_to_end(&mut out);
    limited.map_err(|error| format!("a compressed message is not gzip: {error}"))?;
    if out.len() > MAX_MESSAGE_BYTES {
        return Err(format!("a message is longer than {} MiB", MAX_MESSAGE_BYTES >> 20));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(body: &[u8], encoding: &[u8]) -> Result<Vec<Vec<u8>>, String> {
        let mut found = Vec::new();
        read_messages(body, encoding, |message| {
            found.push(message.to_vec());
            Ok(())
        })
        .map(|()| found)
    }

    proptest! {
        #[test]
        fn messages_come_back_as_they_were_pushed(
            messages in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..60), any::<bool>()), 0..6),
        ) {
            let mut body = Vec::new();
            for (message, compresses) in &messages {
                push_message(message, *compresses, &mut body).map_err(TestCaseError::fail)?;
            }
            let given: Vec<Vec<u8>> = messages.into_iter().map(|(message, _)| message).collect();
            prop_assert_eq!(all(&body, b"gzip"), Ok(given));
        }

        #[test]
        fn any_bytes_are_messages_or_an_error(body in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = all(&body, b"gzip");
        }
    }

    #[test]
    fn what_is_wrong_with_a_body_is_named() {
        for (body, encoding, why) in [
            (&[0, 0, 0, 0, 2, 1][..], &b""[..], "ends within"),
            (&[0, 0, 0], b"", "ends within"),
            (&[1, 0, 0, 0, 0], b"", "has no grpc-encoding"),
            (&[1, 0, 0, 0, 0], b"snappy", "'snappy'"),
            (&[1, 0, 0, 0, 1, 7], b"gzip", "not gzip"),
            (&[2, 0, 0, 0, 0], b"", "other than 0 and 1"),
        ] {
            let found = all(body, encoding).expect_err(why);
            assert!(found.contains(why), "{found}");
        }
    }

    #[test]
    fn a_bomb_is_not_unpacked() {
        let mut body = Vec::new();
        push_message(&vec![0; MAX_MESSAGE_BYTES + 1], true, &mut body).expect("small once compressed");
        assert!(all(&body, b"gzip").expect_err("too long").contains("longer than 64 MiB"));
    }
}
