//! Trailers of a request on its way to an upstream.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderName;
use http_body::{Body, Frame, SizeHint};

use super::config::{ClientCertificateHeaders, ForwardingHeaders};
use super::gate_route::has_own_spelling;
use weir_server::{BodyError, RequestBodyStream};

/// A request's body without trailers that the gateway would remove or replace as headers: a service that treats both
/// alike would otherwise believe its caller (RFC 9110, 6.5.1).
#[derive(Debug)]
pub(super) struct TrailerFilter {
    body: RequestBodyStream,
    client_certificate_headers: Arc<ClientCertificateHeaders>,
    forwarding_headers: Arc<ForwardingHeaders>,
    /// Headers that the route sets or removes.
    own_headers: Arc<[HeaderName]>,
}

impl TrailerFilter {
    pub(super) fn new(
        body: RequestBodyStream,
        client_certificate_headers: Arc<ClientCertificateHeaders>,
        forwarding_headers: Arc<ForwardingHeaders>,
        own_headers: Arc<[HeaderName]>,
    ) -> Self {
        Self { body, client_certificate_headers, forwarding_headers, own_headers }
    }
}

impl Body for TrailerFilter {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &mut polled
            && let Some(trailers) = frame.trailers_mut()
        {
            let is_removed = |name: &HeaderName| {
                self.forwarding_headers.is_forbidden_trailer(name)
                    || self.client_certificate_headers.has_name(name)
                    || has_own_spelling(&self.own_headers, name)
            };
            let names: Vec<HeaderName> = trailers.keys().filter(|name| is_removed(name)).cloned().collect();
            for name in names {
                trailers.remove(name);
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
