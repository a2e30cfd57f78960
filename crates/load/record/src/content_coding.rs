//! Decompression of recorded bodies, so that values in them are found. PURE.

use std::borrow::Cow;
use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;

/// Size of the buffer of the brotli decoder, in bytes.
const BROTLI_BUFFER_BYTES: usize = 4096;

/// Body without the codings of Content-Encoding; `None` if one is not known, the body is damaged, or longer than
/// `max_bytes` without them.
pub(crate) fn decoded<'b>(body: &'b [u8], encoding: &str, max_bytes: usize) -> Option<Cow<'b, [u8]>> {
    let mut body = Cow::Borrowed(body);
    if body.is_empty() {
        return Some(body);
    }
    // The last coding was applied last.
    for coding in encoding.rsplit(',') {
        let read = |from: &mut dyn Read| bounded(from, max_bytes);
        let made = match coding.trim().to_ascii_lowercase().as_str() {
            "identity" | "" => continue,
            "gzip" | "x-gzip" => read(&mut MultiGzDecoder::new(&body[..])),
            // Some services leave out the frame of zlib.
            "deflate" => read(&mut ZlibDecoder::new(&body[..])).or_else(|_| read(&mut DeflateDecoder::new(&body[..]))),
            "br" => read(&mut Decompressor::new(&body[..], BROTLI_BUFFER_BYTES)),
            "zstd" => zstd(&body, max_bytes),
            _ => return None,
        };
        body = Cow::Owned(made.ok()?);
    }
    Some(body)
}

/// All that a reader has.
fn bounded(from: &mut dyn Read, max_bytes: usize) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    from.take(max_bytes as u64 + 1).read_to_end(&mut body)?;
    if body.len() > max_bytes { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(body) }
}

/// Content of the frames of a body.
fn zstd(mut compressed: &[u8], max_bytes: usize) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    while !compressed.is_empty() {
        let mut frame = StreamingDecoder::new(&mut compressed).map_err(io::Error::other)?;
        body.extend(bounded(&mut frame, max_bytes - body.len())?);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn gzip(body: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_body_that_grows_beyond_the_bound_is_not_decoded() {
        let bomb = gzip(&vec![0; 1 << 20]);
        assert!(bomb.len() < 4096);
        assert_eq!(decoded(&bomb, "gzip", 1 << 10), None);
        assert_eq!(decoded(&bomb, "gzip", 1 << 20).unwrap().len(), 1 << 20);
        assert_eq!(decoded(&gzip(&gzip(b"token")), "gzip, x-gzip", 100).as_deref(), Some(&b"token"[..]));
        assert_eq!(decoded(b"x", "compress", 100), None);
        assert_eq!(decoded(b"x", "identity", 100).as_deref(), Some(&b"x"[..]));
    }

    /// `token` in zstd and brotli, made by the reference tools.
    #[test]
    fn zstd_and_brotli_are_decoded() {
        let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x29, 0x00, 0x00, b't', b'o', b'k', b'e', b'n'];
        assert_eq!(decoded(&zstd, "zstd", 100).as_deref(), Some(&b"token"[..]));
        assert_eq!(decoded(&[zstd, zstd].concat(), "zstd", 100).as_deref(), Some(&b"tokentoken"[..]));
        let brotli = [0x0b, 0x02, 0x80, b't', b'o', b'k', b'e', b'n', 0x03];
        assert_eq!(decoded(&brotli, "br", 100).as_deref(), Some(&b"token"[..]));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_within_the_bound_or_not_at_all(
            body in proptest::collection::vec(any::<u8>(), 0..300), coding in "gzip|deflate|br|zstd|gzip, br|\\PC{0,5}",
            damage in 0..300_usize,
        ) {
            let made = decoded(&body, &coding, 1000);
            prop_assert!(made.is_none_or(|made| made.len() <= 1000));
            let mut whole = gzip(&body);
            prop_assert_eq!(decoded(&whole, "gzip", 1000).unwrap().into_owned(), body);
            let at = damage % whole.len();
            whole[at] ^= 0x10;
            prop_assert!(decoded(&whole, "gzip", 1000).is_none_or(|made| made.len() <= 1000));
        }
    }
}
