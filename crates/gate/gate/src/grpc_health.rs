//! Messages of `grpc.health.v1.Health/Check`: one field each, so no protobuf library.

/// Maximum size of a response.
pub(super) const MAX_RESPONSE_BYTES: usize = 4096;

/// Value of `HealthCheckResponse.status` of a service that serves.
const SERVING: u64 = 1;

/// A `HealthCheckRequest` with its gRPC prefix.
pub(super) fn request(service: &str) -> Vec<u8> {
    let mut message = Vec::new();
    if !service.is_empty() {
        // Field 1, length-delimited.
        message.push(0x0a);
        push_varint(&mut message, service.len() as u64);
        message.extend_from_slice(service.as_bytes());
    }
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    // Not compressed.
    [&[0][..], &length.to_be_bytes(), &message].concat()
}

/// Whether a response with its gRPC prefix says that the service serves; None if it is invalid. Unknown fields are
/// skipped.
pub(super) fn is_serving(bytes: &[u8]) -> Option<bool> {
    let (prefix, message) = bytes.split_first_chunk::<5>()?;
    let [compressed, length @ ..] = *prefix;
    let mut message = message.get(..u32::from_be_bytes(length) as usize).filter(|_| compressed == 0)?;
    let mut status = 0;
    while !message.is_empty() {
        let (tag, rest) = varint(message)?;
        message = match tag & 7 {
            0 => {
                let (value, rest) = varint(rest)?;
                if tag >> 3 == 1 {
                    status = value;
                }
                rest
            }
            1 => rest.get(8..)?,
            2 => {
                let (length, rest) = varint(rest)?;
                rest.get(usize::try_from(length).ok()?..)?
            }
            5 => rest.get(4..)?,
            _ => return None,
        };
    }
    Some(status == SERVING)
}

fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The varint at the beginning, and what is behind it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_names_its_service() {
        assert_eq!(request(""), [0, 0, 0, 0, 0]);
        assert_eq!(request("a.B"), [0, 0, 0, 0, 5, 0x0a, 3, b'a', b'.', b'B']);
    }

    #[test]
    fn one_is_serving_and_anything_else_is_not() {
        for (message, expected) in [
            (&[0x08, 1][..], Some(true)),
            (&[0x08, 2], Some(false)),
            (&[], Some(false)),
            // A field 2 with text before it, a fixed number behind it.
            (&[0x12, 2, 8, 2, 0x08, 1, 0x1d, 0, 0, 0, 0], Some(true)),
            (&[0x08], None),
            (&[0x0b], None),
            (&[0x12, 0xff, 1], None),
        ] {
            let length = (message.len() as u32).to_be_bytes();
            assert_eq!(is_serving(&[&[0][..], &length, message].concat()), expected, "{message:?}");
        }
        assert_eq!(is_serving(&[1, 0, 0, 0, 2, 8, 1]), None, "compressed");
        assert_eq!(is_serving(&[0, 0, 0, 0, 3, 8, 1]), None, "cut off");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_response_or_none(bytes: Vec<u8>) {
            is_serving(&bytes);
            is_serving(&[&[0, 0, 0, 0, bytes.len() as u8][..], &bytes].concat());
        }
    }
}
