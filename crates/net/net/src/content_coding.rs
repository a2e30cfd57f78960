//! Decompression of bodies by their Content-Encoding. PURE.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;

/// Size of the buffer of the brotli decoder, in bytes.
const BROTLI_BUFFER_BYTES: usize = 4096;

/// Error of a body that cannot be decompressed.
#[derive(Debug)]
pub enum ContentCodingError {
    /// A coding that is not known.
    Unknown(String),
    /// The body is damaged, or its content exceeds the bounds.
    Content(io::Error),
}

impl std::error::Error for ContentCodingError {}

impl fmt::Display for ContentCodingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "unknown content encoding '{name}'"),
            Self::Content(error) => write!(f, "the body does not decompress: {error}"),
        }
    }
}

/// Body without the codings of Content-Encoding, such as `gzip, br`. `read_all` reads the content that a coding has, and
/// fails where that exceeds its bounds: a small body may have any content.
///
/// # Errors
/// See [`ContentCodingError`].
pub fn decoded<'b>(
    body: &'b [u8],
    encoding: &[u8],
    mut read_all: impl FnMut(&mut dyn Read) -> io::Result<Vec<u8>>,
) -> Result<Cow<'b, [u8]>, ContentCodingError> {
    let mut body = Cow::Borrowed(body);
    if body.is_empty() {
        return Ok(body);
    }
    // The last coding was applied last.
    for name in encoding.split(|byte| *byte == b',').rev() {
        let content = match name.trim_ascii().to_ascii_lowercase().as_slice() {
            b"identity" | b"" => continue,
            b"gzip" | b"x-gzip" => read_all(&mut MultiGzDecoder::new(&body[..])),
            // Some services leave out the frame of zlib.
            b"deflate" => read_all(&mut ZlibDecoder::new(&body[..]))
                .or_else(|error| read_all(&mut DeflateDecoder::new(&body[..])).map_err(|_| error)),
            b"br" => read_all(&mut Decompressor::new(&body[..], BROTLI_BUFFER_BYTES)),
            b"zstd" => read_all(&mut ZstdFrames { rest: &body, frame: None }),
            other => return Err(ContentCodingError::Unknown(other.escape_ascii().to_string())),
        };
        body = Cow::Owned(content.map_err(ContentCodingError::Content)?);
    }
    Ok(body)
}

/// All that a reader has, up to `max_bytes`.
///
/// # Errors
/// It has more, or is damaged.
pub fn read_up_to(max_bytes: usize) -> impl FnMut(&mut dyn Read) -> io::Result<Vec<u8>> {
    move |from| {
        let mut body = Vec::new();
        from.take(max_bytes as u64 + 1).read_to_end(&mut body)?;
        if body.len() > max_bytes { Err(io::ErrorKind::FileTooLarge.into()) } else { Ok(body) }
    }
}

/// Content of the frames of zstd, one after the other.
struct ZstdFrames<'b> {
    rest: &'b [u8],
    frame: Option<ZstdFrame<'b>>,
}

type ZstdFrame<'b> = StreamingDecoder<&'b [u8], ruzstd::decoding::FrameDecoder>;

impl Read for ZstdFrames<'_> {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        loop {
            let frame = match &mut self.frame {
                Some(frame) => frame,
                None if self.rest.is_empty() => return Ok(0),
                None => self.frame.insert(StreamingDecoder::new(self.rest).map_err(io::Error::other)?),
            };
            let length = frame.read(part)?;
            if length > 0 || part.is_empty() {
                return Ok(length);
            }
            self.rest = self.frame.take().map_or(&[], StreamingDecoder::into_inner);
        }
    }
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

    fn within<'b>(body: &'b [u8], encoding: &str, max_bytes: usize) -> Option<Cow<'b, [u8]>> {
        decoded(body, encoding.as_bytes(), read_up_to(max_bytes)).ok()
    }

    /// A file of several members is one body (RFC 1952, 2.2).
    #[test]
    fn all_members_of_gzip_count() {
        let two = [gzip(b"to"), gzip(b"ken")].concat();
        assert_eq!(within(&two, "gzip", 100).as_deref(), Some(&b"token"[..]));
        assert_eq!(within(&two, "gzip", 4), None);
    }

    #[test]
    fn errors_have_the_coding_or_the_cause() {
        let error =
            |body: &[u8], encoding: &str| decoded(body, encoding.as_bytes(), read_up_to(9)).unwrap_err().to_string();
        assert_eq!(error(b"x", "compr\u{1b}ss"), "unknown content encoding 'compr\\x1bss'");
        assert!(error(b"x", "gzip").starts_with("the body does not decompress: "));
    }

    #[test]
    fn a_body_that_grows_beyond_the_bound_is_not_decoded() {
        let bomb = gzip(&vec![0; 1 << 20]);
        assert!(bomb.len() < 4096);
        assert_eq!(within(&bomb, "gzip", 1 << 10), None);
        assert_eq!(within(&bomb, "gzip", 1 << 20).unwrap().len(), 1 << 20);
        assert_eq!(within(&gzip(&gzip(b"token")), "gzip, x-gzip", 100).as_deref(), Some(&b"token"[..]));
        assert_eq!(within(b"x", "compress", 100), None);
        assert_eq!(within(b"x", "identity", 100).as_deref(), Some(&b"x"[..]));
    }

    /// `token` in zstd and brotli, made by the reference tools.
    #[test]
    fn zstd_and_brotli_are_decoded() {
        let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58, 0x29, 0x00, 0x00, b't', b'o', b'k', b'e', b'n'];
        assert_eq!(within(&zstd, "zstd", 100).as_deref(), Some(&b"token"[..]));
        assert_eq!(within(&[zstd, zstd].concat(), "zstd", 100).as_deref(), Some(&b"tokentoken"[..]));
        let brotli = [0x0b, 0x02, 0x80, b't', b'o', b'k', b'e', b'n', 0x03];
        assert_eq!(within(&brotli, "br", 100).as_deref(), Some(&b"token"[..]));
    }

    proptest! {
        #[test]
        fn any_bytes_decode_within_the_bound_or_not_at_all(
            body in proptest::collection::vec(any::<u8>(), 0..300), coding in "gzip|deflate|br|zstd|gzip, br|\\PC{0,5}",
            damage in 0..300_usize,
        ) {
            let made = within(&body, &coding, 1000);
            prop_assert!(made.is_none_or(|made| made.len() <= 1000));
            let mut whole = gzip(&body);
            prop_assert_eq!(within(&whole, "gzip", 1000).unwrap().into_owned(), body);
            let at = damage % whole.len();
            whole[at] ^= 0x10;
            prop_assert!(within(&whole, "gzip", 1000).is_none_or(|made| made.len() <= 1000));
        }
    }
}
