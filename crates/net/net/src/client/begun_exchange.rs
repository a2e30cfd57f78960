//! Exchanges that are polled as values, as long as nothing unusual comes.

use std::fmt;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Response;

use super::body::IncomingBody;
use super::error::SendError;
use super::http1::{Exchange, ExchangeError};
use super::response::ResponseHead;
use weir_base::Nanos;

/// An exchange over HTTP/1.1 whose response is expected in one piece. Any other goes on as a future
/// ([`Client::complete`](super::Client::complete)), from where this has come to.
pub struct BegunExchange {
    exchange: Exchange<'static>,
    pub(super) connect_timeout: Nanos,
    /// What has come, if it is not a whole response.
    partial: Option<Partial>,
}

/// A response that has come whole.
#[derive(Debug)]
pub struct CompleteResponse {
    /// Its head; the decoder of the body has ended.
    pub head: ResponseHead,
    /// Its body.
    pub body: Bytes,
}

enum Partial {
    /// A head that is left to others, the bytes behind it, and whether the read may have left some.
    Head(Box<(ResponseHead, Vec<u8>, bool)>),
    Failed(SendError),
}

impl BegunExchange {
    pub(super) fn new(exchange: Exchange<'static>, connect_timeout: Nanos) -> Self {
        Self { exchange, connect_timeout, partial: None }
    }

    /// The response, if it comes whole, without trailers, and its head is accepted. After None the exchange is to go on
    /// as a future.
    pub fn poll_whole(
        &mut self,
        cx: &mut Context<'_>,
        accepts: impl FnOnce(&ResponseHead) -> bool,
    ) -> Poll<Option<CompleteResponse>> {
        if self.partial.is_some() {
            return Poll::Ready(None);
        }
        let polled = self.exchange.poll_head(cx, |exchange, mut head, rest, filled| {
            if !exchange.is_whole(&head, rest) || !accepts(&head) {
                return Ok(Err(Box::new((head, rest.to_vec(), filled))));
            }
            let body = exchange.end(&mut head, rest, filled)?;
            Ok(Ok(CompleteResponse { head, body }))
        });
        let partial = match ready!(polled) {
            Ok(Ok(response)) => return Poll::Ready(Some(response)),
            Ok(Err(head)) => Partial::Head(head),
            Err(error) => Partial::Failed(error),
        };
        self.partial = Some(partial);
        Poll::Ready(None)
    }

    /// Awaits the response as any exchange does.
    pub(super) async fn response(self) -> Result<Response<IncomingBody>, ExchangeError> {
        let Self { mut exchange, partial, .. } = self;
        let ended = match partial {
            None => return exchange.await,
            Some(Partial::Head(partial)) => {
                let (head, rest, filled) = *partial;
                exchange.response(head, &rest, filled)
            }
            Some(Partial::Failed(error)) => Err(error),
        };
        ended.map_err(|error| exchange.take_error(error))
    }
}

impl fmt::Debug for BegunExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BegunExchange").field("is_partial", &self.partial.is_some()).finish_non_exhaustive()
    }
}
