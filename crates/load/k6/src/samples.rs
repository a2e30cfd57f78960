//! Values of the metrics of requests.

use weir_base::Nanos;
use weir_base::grpc_status::GRPC_OK;
use weir_load::program::{ConnectionFacts, RequestTimes};
use weir_request::url::HttpUrl;

use crate::host::UserState;
use crate::host::exchange::{ExpectedStatuses, HttpRequest};
use crate::host::response_fields::{protocol, tls_version};
use crate::metrics::registry::BuiltIn;

/// A request that has ended, for the metrics.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HttpSample<'a> {
    pub(crate) request: &'a HttpRequest,
    /// Method and URL that it was sent by, which redirects change.
    pub(crate) method: &'a str,
    pub(crate) url: &'a HttpUrl,
    /// 0 without a response.
    pub(crate) status: u16,
    /// Number of the failure; 0 for a success.
    pub(crate) error_code: u32,
    pub(crate) times: RequestTimes,
    /// Head of the response; empty without one.
    pub(crate) head: &'a [u8],
    /// Connection of the response.
    pub(crate) connection: Option<&'a ConnectionFacts>,
}

impl HttpSample<'_> {
    /// Whether the request is a success.
    pub(crate) fn is_expected(&self) -> bool {
        if self.request.is_call {
            return self.status == GRPC_OK && self.error_code == 0;
        }
        match &self.request.expected {
            ExpectedStatuses::Any => true,
            expected => self.status > 0 && expected.contains(self.status),
        }
    }

    /// Records the values of a user's request.
    pub(crate) fn record(&self, user: &UserState) {
        let ms = |time: Nanos| time.0 as f64 / 1e6;
        let RequestTimes { service, first_byte, connect, transport, handshake, sending } = self.times;
        if self.request.is_call {
            let values = [(BuiltIn::GrpcReqDuration as usize, ms(service))];
            return user.metrics.add_all(&values, &|name: &str, value: &str| self.has_tag(user, name, value));
        }
        let values = [
            (BuiltIn::HttpReqs as usize, 1.0),
            (BuiltIn::HttpReqDuration as usize, ms(service)),
            (BuiltIn::HttpReqWaiting as usize, ms(first_byte - sending)),
            (BuiltIn::HttpReqReceiving as usize, ms(service - first_byte.min(service))),
            (BuiltIn::HttpReqConnecting as usize, ms(transport)),
            (BuiltIn::HttpReqBlocked as usize, ms(connect)),
            (BuiltIn::HttpReqSending as usize, ms(sending)),
            (BuiltIn::HttpReqTlsHandshaking as usize, ms(handshake)),
            (BuiltIn::HttpReqFailed as usize, f64::from(u8::from(!self.is_expected()))),
        ];
        let is_judged = self.request.expected != ExpectedStatuses::Any;
        let count = values.len() - usize::from(!is_judged);
        user.metrics.add_all(&values[..count], &|name: &str, value: &str| self.has_tag(user, name, value));
    }

    fn has_tag(&self, user: &UserState, name: &str, value: &str) -> bool {
        if let Some((_, own)) = self.request.tags.iter().find(|(own, _)| own == name) {
            return own == value;
        }
        match name {
            "status" => self.status.to_string() == value,
            "method" => self.method == value,
            "name" => match &self.request.name {
                Some(own) => own == value,
                None => self.has_url(value),
            },
            "url" => self.has_url(value),
            "expected_response" => self.is_expected().to_string() == value,
            "proto" => protocol(self.head) == value,
            "ip" => self.connection.and_then(|known| known.peer).is_some_and(|peer| peer.ip().to_string() == value),
            "tls_version" => self.connection.is_some_and(|connection| tls_version(connection) == value),
            "error_code" => self.error_code > 0 && self.error_code.to_string() == value,
            _ => user.has_tag(&[], name, value),
        }
    }

    fn has_url(&self, value: &str) -> bool {
        let url = self.url.to_string();
        // `http://host` as it is written has the path `/` when it is sent.
        url == value || url.strip_suffix('/') == Some(value)
    }
}
