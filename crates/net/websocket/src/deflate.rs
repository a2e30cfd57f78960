//! Compression of messages (RFC 7692): negotiation, compressor and decompressor.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use crate::violation::Violation;

/// Name of the extension.
pub const DEFLATE_EXTENSION: &str = "permessage-deflate";

/// Bytes that the end of a compressed message lacks.
const TAIL_BYTES: [u8; 4] = [0, 0, 0xFF, 0xFF];

/// Compression that both sides have agreed on. Windows are 32 KiB: this side neither offers nor accepts smaller ones of
/// its own, since its compressor has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeflateAgreement {
    /// Whether each message of the server is compressed by itself.
    pub server_no_context: bool,
    /// Whether each message of the client is compressed by itself.
    pub client_no_context: bool,
}

/// An extension that was not offered, or parameters that do not answer to the offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnofferedExtension;

/// One extension of a list: its name, and its parameters with their values.
type ListedExtension<'t> = (&'t str, Vec<(&'t str, Option<&'t str>)>);

/// Extensions of a header's value.
fn extensions(text: &str) -> impl Iterator<Item = ListedExtension<'_>> {
    // No parameter of a registered extension has a comma or a semicolon within quotes.
    text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(|one| {
        let mut parts = one.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let parameters = parts.map(|part| match part.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim().trim_matches('"'))),
            None => (part, None),
        });
        (name, parameters.collect())
    })
}

fn is_window_bits(value: &str) -> bool {
    matches!(value, "8" | "9" | "10" | "11" | "12" | "13" | "14" | "15")
}

impl DeflateAgreement {
    /// Value of a client's `Sec-WebSocket-Extensions` that offers it.
    pub fn offer(self) -> String {
        self.text()
    }

    fn text(self) -> String {
        let mut text = DEFLATE_EXTENSION.to_owned();
        if self.server_no_context {
            text.push_str("; server_no_context_takeover");
        }
        if self.client_no_context {
            text.push_str("; client_no_context_takeover");
        }
        text
    }

    /// Agreement of a server's response to an offer; `None` if it has declined. `offered` is what was asked for, or
    /// `None` without an offer.
    ///
    /// # Errors
    /// See [`UnofferedExtension`].
    pub fn of_response(text: &str, offered: Option<Self>) -> Result<Option<Self>, UnofferedExtension> {
        let mut agreed = None;
        for (name, parameters) in extensions(text) {
            let Some(offered) = offered.filter(|_| name == DEFLATE_EXTENSION && agreed.is_none()) else {
                return Err(UnofferedExtension);
            };
            // The client may compress each message by itself without being asked to.
            let mut found = Self { server_no_context: false, client_no_context: offered.client_no_context };
            for (index, (parameter, value)) in parameters.iter().enumerate() {
                let is_twice = parameters[..index].iter().any(|(earlier, _)| earlier == parameter);
                match (*parameter, *value) {
                    _ if is_twice => return Err(UnofferedExtension),
                    ("server_no_context_takeover", None) => found.server_no_context = true,
                    ("client_no_context_takeover", None) => found.client_no_context = true,
                    ("server_max_window_bits", Some(bits)) if is_window_bits(bits) => {}
                    // A smaller window of the client was not offered.
                    _ => return Err(UnofferedExtension),
                }
            }
            if offered.server_no_context && !found.server_no_context {
                return Err(UnofferedExtension);
            }
            agreed = Some(found);
        }
        Ok(agreed)
    }

    /// Agreement of a server with the first acceptable one of a client's offers, and the value of its response.
    /// `own` is what the server asks for in addition.
    pub fn of_offers(text: &str, own: Self) -> Option<(Self, String)> {
        extensions(text).find_map(|(name, parameters)| {
            if name != DEFLATE_EXTENSION {
                return None;
            }
            let mut found = own;
            for (index, (parameter, value)) in parameters.iter().enumerate() {
                if parameters[..index].iter().any(|(earlier, _)| earlier == parameter) {
                    return None;
                }
                match (*parameter, *value) {
                    ("server_no_context_takeover", None) => found.server_no_context = true,
                    ("client_no_context_takeover", None) => found.client_no_context = true,
                    ("client_max_window_bits", None) => {}
                    ("client_max_window_bits", Some(bits)) if is_window_bits(bits) => {}
                    ("server_max_window_bits", Some("15")) => {}
                    _ => return None,
                }
            }
            Some((found, found.text()))
        })
    }
}

/// Decompressor of one direction of a connection.
#[derive(Debug)]
pub struct Inflater {
    inner: Decompress,
    keeps_context: bool,
    /// Content of the last message.
    content: Vec<u8>,
}

/// Capacity of a buffer that is kept for the next message, in bytes.
const MAX_KEPT_CONTENT_BYTES: usize = 64 * 1024;

impl Inflater {
    /// Decompressor; whether messages refer to those before them.
    pub fn new(keeps_context: bool) -> Self {
        Self { inner: Decompress::new(false), keeps_context, content: Vec::new() }
    }

    /// Content of a compressed message, of at most `max_bytes`.
    ///
    /// # Errors
    /// Data that is not compressed, or more of it.
    pub fn inflate(&mut self, compressed: &[u8], max_bytes: u64) -> Result<&[u8], Violation> {
        self.content.clear();
        self.content.shrink_to(MAX_KEPT_CONTENT_BYTES);
        let max = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        for part in [compressed, &TAIL_BYTES[..]] {
            self.push(part, max)?;
        }
        if !self.keeps_context {
            self.inner.reset(false);
        }
        Ok(&self.content)
    }

    fn push(&mut self, mut input: &[u8], max: usize) -> Result<(), Violation> {
        loop {
            // One byte more than allowed shows that there is more.
            let room = (max - self.content.len()).saturating_add(1);
            self.content.reserve(input.len().saturating_mul(2).clamp(256, MAX_KEPT_CONTENT_BYTES).min(room));
            let (read, written) = (self.inner.total_in(), self.content.len());
            let status = self
                .inner
                .decompress_vec(input, &mut self.content, FlushDecompress::Sync)
                .map_err(|_| Violation::Deflate)?;
            input = &input[usize::try_from(self.inner.total_in() - read).unwrap_or(input.len()).min(input.len())..];
            if self.content.len() > max {
                return Err(Violation::TooBig(max as u64));
            }
            let has_room = self.content.len() < self.content.capacity();
            match status {
                // The last block of a stream; another one begins.
                Status::StreamEnd => {
                    self.inner.reset(false);
                    if input.is_empty() {
                        return Ok(());
                    }
                }
                Status::Ok | Status::BufError if input.is_empty() && has_room => return Ok(()),
                Status::Ok | Status::BufError if written == self.content.len() && has_room => {
                    return Err(Violation::Deflate);
                }
                Status::Ok | Status::BufError => {}
            }
        }
    }
}

/// Compressor of one direction of a connection, or of several whose messages are compressed by themselves.
#[derive(Debug)]
pub struct Deflater {
    inner: Compress,
    keeps_context: bool,
}

impl Deflater {
    /// Compressor; whether messages may refer to those before them.
    pub fn new(keeps_context: bool) -> Self {
        Self { inner: Compress::new(Compression::fast(), false), keeps_context }
    }

    /// Appends the compressed form of a message.
    pub fn deflate(&mut self, mut data: &[u8], out: &mut Vec<u8>) {
        if data.is_empty() {
            // RFC 7692, 7.2.3.6.
            out.push(0);
            return;
        }
        loop {
            out.reserve(data.len() / 2 + 64);
            let read = self.inner.total_in();
            // Fails only for a wrong use of its interface, and then the message is cut.
            let Ok(_) = self.inner.compress_vec(data, out, FlushCompress::Sync) else { break };
            data = &data[usize::try_from(self.inner.total_in() - read).unwrap_or(data.len()).min(data.len())..];
            if data.is_empty() && out.len() < out.capacity() {
                break;
            }
        }
        if out.ends_with(&TAIL_BYTES) {
            out.truncate(out.len() - TAIL_BYTES.len());
        }
        if !self.keeps_context {
            self.inner.reset();
        }
    }
}

#[cfg(test)]
mod tests;
