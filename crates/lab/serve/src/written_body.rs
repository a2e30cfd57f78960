//! Body of a response that a future writes piece by piece.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

use weir_server::{BodyError, ResponseBody};

/// Handle by which a future writes pieces of a body. Pieces that are written without a wait between them may go out in
/// one packet; pieces around a wait do not, but for a client that reads too slowly. A future awaits [`Self::taken`]
/// behind each piece, so that such a client delays it, in place of filling the memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct BodyWriter {
    pieces: Rc<RefCell<VecDeque<Bytes>>>,
}

type WriteFuture = Pin<Box<dyn Future<Output = Result<Option<HeaderMap>, BodyError>>>>;

/// Body that polls a future for its pieces.
struct WrittenBody {
    writer: BodyWriter,
    future: Option<WriteFuture>,
}

impl fmt::Debug for WrittenBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WrittenBody").finish_non_exhaustive()
    }
}

impl BodyWriter {
    /// Writes a piece.
    pub(crate) fn write(&self, piece: impl Into<Bytes>) {
        let piece = piece.into();
        if !piece.is_empty() {
            self.pieces.borrow_mut().push_back(piece);
        }
    }

    /// Ends when all pieces are taken. The body polls its future again only then, so that no waker is needed.
    pub(crate) async fn taken(&self) {
        poll_fn(|_| if self.pieces.borrow().is_empty() { Poll::Ready(()) } else { Poll::Pending }).await;
    }
}

/// Body that `write` writes; an error breaks it off, behind the pieces before.
pub(crate) fn written<F>(write: impl FnOnce(BodyWriter) -> F) -> ResponseBody
where
    F: Future<Output = Result<(), BodyError>> + 'static,
{
    written_to_end(|writer| {
        let future = write(writer);
        async move { future.await.map(|()| None) }
    })
}

/// The same with trailers behind the last piece, if `write` returns some.
pub(crate) fn written_to_end<F>(write: impl FnOnce(BodyWriter) -> F) -> ResponseBody
where
    F: Future<Output = Result<Option<HeaderMap>, BodyError>> + 'static,
{
    let writer = BodyWriter::default();
    let future = write(writer.clone());
    ResponseBody::from_stream(WrittenBody { writer, future: Some(Box::pin(future)) })
}

impl http_body::Body for WrittenBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        if let Some(piece) = this.writer.pieces.borrow_mut().pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        let Some(future) = &mut this.future else { return Poll::Ready(None) };
        let polled = future.as_mut().poll(cx);
        let piece = this.writer.pieces.borrow_mut().pop_front();
        let piece = piece.map(|piece| Ok(Frame::data(piece)));
        match polled {
            Poll::Pending => piece.map_or(Poll::Pending, |piece| Poll::Ready(Some(piece))),
            Poll::Ready(end @ (Err(_) | Ok(Some(_)))) => match piece {
                // An error and trailers come behind all pieces.
                Some(piece) => {
                    this.future = Some(Box::pin(std::future::ready(end)));
                    Poll::Ready(Some(piece))
                }
                None => {
                    this.future = None;
                    Poll::Ready(end.map(|trailers| trailers.map(Frame::trailers)).transpose())
                }
            },
            Poll::Ready(Ok(None)) => {
                this.future = None;
                Poll::Ready(piece)
            }
        }
    }
}
