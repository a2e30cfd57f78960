//! Reader of events from the pieces of a body.

use super::chunk_reader::ChunkReader;
use super::document_reader::DocumentReader;
use super::grpc_reader::GrpcReader;
use super::json_line_reader::JsonLineReader;
use super::sse_reader::SseReader;
use super::stream_event::StreamEvent;
use super::stream_format::StreamFormat;

/// Reader of the events of one body after another.
///
/// Its memory is bounded: data of an event is cut at a maximum, and the events behind it are read all the same. It
/// never fails, and the same bytes give the same events however they are cut into pieces; but for
/// [`StreamFormat::Chunks`], whose events are the pieces.
#[derive(Clone, Debug)]
pub struct EventReader {
    kind: Kind,
    max_data_bytes: usize,
}

#[derive(Clone, Debug)]
enum Kind {
    Sse(SseReader),
    JsonLines(JsonLineReader),
    Chunks(ChunkReader),
    Json(DocumentReader),
    Grpc(GrpcReader),
}

impl EventReader {
    /// Default maximum of an event's data, in bytes: 1 MiB.
    pub const DEFAULT_MAX_DATA_BYTES: usize = 1 << 20;

    /// Reader with the default maximum of data.
    pub fn new(format: StreamFormat) -> Self {
        Self::with_max_data(format, Self::DEFAULT_MAX_DATA_BYTES)
    }

    /// Reader that cuts data after `max_data_bytes`.
    pub fn with_max_data(format: StreamFormat, max_data_bytes: usize) -> Self {
        let kind = match format {
            StreamFormat::Sse => Kind::Sse(SseReader::new(max_data_bytes)),
            StreamFormat::JsonLines => Kind::JsonLines(JsonLineReader::new(max_data_bytes)),
            StreamFormat::Chunks => Kind::Chunks(ChunkReader::default()),
            StreamFormat::Json => Kind::Json(DocumentReader::new(max_data_bytes)),
            StreamFormat::Grpc => Kind::Grpc(GrpcReader::new(max_data_bytes)),
        };
        Self { kind, max_data_bytes }
    }

    /// Format of the events.
    pub fn format(&self) -> StreamFormat {
        match self.kind {
            Kind::Sse(_) => StreamFormat::Sse,
            Kind::JsonLines(_) => StreamFormat::JsonLines,
            Kind::Chunks(_) => StreamFormat::Chunks,
            Kind::Json(_) => StreamFormat::Json,
            Kind::Grpc(_) => StreamFormat::Grpc,
        }
    }

    /// Prepares for the next body. With the same format buffers stay allocated.
    pub fn restart(&mut self, format: StreamFormat) {
        if format != self.format() {
            *self = Self::with_max_data(format, self.max_data_bytes);
            return;
        }
        match &mut self.kind {
            Kind::Sse(reader) => reader.restart(),
            Kind::JsonLines(reader) => reader.restart(),
            Kind::Chunks(reader) => *reader = ChunkReader::default(),
            Kind::Json(reader) => reader.restart(),
            Kind::Grpc(reader) => reader.restart(),
        }
    }

    /// Next event that the rest of a piece completes; the rest becomes what is behind it. None if the piece is used up,
    /// and then the reader has copied what it needs.
    #[inline]
    pub fn next_event<'a, 'p: 'a>(&'a mut self, rest: &mut &'p [u8]) -> Option<StreamEvent<'a>> {
        match &mut self.kind {
            Kind::Sse(reader) => reader.next_event(rest),
            Kind::JsonLines(reader) => reader.next_event(rest),
            Kind::Chunks(reader) => reader.next_event(rest),
            Kind::Grpc(reader) => reader.next_event(rest),
            Kind::Json(reader) => {
                reader.keep(std::mem::take(rest));
                None
            }
        }
    }

    /// Event that the end of a whole body completes: a last line of JSON without its line end, or a text of
    /// JSON. An unfinished server-sent event is discarded, as its standard demands, and so is an unfinished message of gRPC.
    pub fn end(&mut self) -> Option<StreamEvent<'_>> {
        match &mut self.kind {
            Kind::Sse(_) | Kind::Chunks(_) | Kind::Grpc(_) => None,
            Kind::JsonLines(reader) => reader.end(),
            Kind::Json(reader) => reader.end(),
        }
    }

    /// Whether the bytes so far end within an event.
    pub fn is_within_event(&self) -> bool {
        match &self.kind {
            Kind::Sse(reader) => reader.is_within_event(),
            Kind::JsonLines(reader) => reader.is_within_event(),
            Kind::Chunks(_) => false,
            Kind::Json(reader) => reader.is_within_event(),
            Kind::Grpc(reader) => reader.is_within_event(),
        }
    }
}
