//! Tap: passes a response on to its observer, and to what keeps parts of it.

use weir_base::Nanos;
use weir_net::wire::{HeadNotes, ResponseObserver};

use super::observer::{PieceArrival, StreamObserver, StreamSinks};
use super::options::StreamOptions;
use crate::headers::with_headers;
use weir_scenario::plan::StreamEndRule;

/// Times of a request, and of bytes of its response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamArrival {
    /// Intended start of the request.
    pub(crate) intended: Nanos,
    /// Time from which only weir itself could delay it.
    pub(crate) ready: Nanos,
    /// Time of the send.
    pub(crate) sent: Nanos,
    /// Arrival of the first byte of the response.
    pub(crate) first_byte: Nanos,
    /// Arrival of these bytes.
    pub(crate) piece: PieceArrival,
}

/// Passes a response on to its observer, and to what keeps parts of it.
#[derive(Debug)]
pub(crate) struct StreamTap<'a, K> {
    pub(crate) observer: &'a mut StreamObserver,
    pub(crate) options: &'a StreamOptions,
    pub(crate) arrival: StreamArrival,
    /// `None` for requests of the warm-up.
    pub(crate) sinks: StreamSinks<'a>,
    /// When the response to a step is ended on purpose.
    pub(crate) end_rule: Option<&'a StreamEndRule>,
    /// Keeper of parts of the response.
    pub(crate) kept: Option<&'a mut K>,
}

impl<K: ResponseObserver> ResponseObserver for StreamTap<'_, K> {
    fn head(&mut self, head: &[u8], notes: HeadNotes) {
        let StreamArrival { intended, ready, sent, first_byte, .. } = self.arrival;
        if let Some(status) = status_of(head) {
            with_content_type(head, |content_type| {
                let times = (intended, ready, sent);
                self.observer.begin(self.options, times, first_byte, (status, content_type));
            });
            if let Some(rule) = self.end_rule {
                self.observer.end_by(rule);
            }
        }
        if let Some(kept) = &mut self.kept {
            kept.head(head, notes);
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        let read = self.observer.body(self.options, bytes, self.arrival.piece, &mut self.sinks);
        if let Some(kept) = &mut self.kept {
            // What is behind the last event that was asked for is not kept.
            kept.body(&bytes[..read]);
        }
    }
}

/// Status of a head that begins with `HTTP/1.1 200` or `HTTP/2 200`.
pub(crate) fn status_of(head: &[u8]) -> Option<u16> {
    let at = head.iter().position(|byte| *byte == b' ')? + 1;
    std::str::from_utf8(head.get(at..at + 3)?).ok()?.parse().ok()
}

fn with_content_type(head: &[u8], take: impl FnOnce(&[u8])) {
    with_headers(head, |headers| {
        let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        take(found.map_or(&[], |(_, value)| *value));
    });
}
