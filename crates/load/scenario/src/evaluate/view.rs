//! Response as captures and checks see it.

use std::borrow::Cow;

use weir_base::Nanos;
use weir_base::grpc_status::GRPC_STATUS_NAMES;

use super::charset;

/// Response as captures and checks see it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResponseView<'a> {
    /// Version of HTTP, as `1.1`.
    pub version: &'a str,
    /// Status.
    pub status: u16,
    /// Name of the status of a call of gRPC; none of another response.
    pub call_status: Option<&'a str>,
    /// Headers in order: names and values. May be empty where no capture or check needs them.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// Body after content decoding.
    pub body: &'a [u8],
    /// Body as it came, without framing.
    pub raw_body: &'a [u8],
    /// Reason why the body cannot be looked into.
    pub body_error: Option<&'a str>,
    /// Time from the send to the end of the response.
    pub duration: Nanos,
    /// URL of the request. A flow sets it where a step needs it.
    pub url: &'a str,
    /// URLs that the responses before this one redirected to.
    pub redirects: &'a [String],
    /// IP address of the service; empty if it is not known.
    pub ip: &'a str,
}

impl<'a> ResponseView<'a> {
    /// Whether it is the response to a call of gRPC that has another status than OK.
    pub fn is_failed_call(&self) -> bool {
        self.call_status.is_some_and(|name| name != GRPC_STATUS_NAMES[0])
    }

    /// First value of a header.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.values(name).next()
    }

    /// Body as text, in the encoding that its type names.
    ///
    /// # Errors
    /// Reason why the body is not text.
    pub fn text(&self) -> Result<Cow<'a, str>, String> {
        charset::body_text(self.body, self.header("content-type"))
    }

    /// All values of a header.
    pub fn values<'n>(&self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let of_name = self.headers.iter().filter(move |(given, _)| given.eq_ignore_ascii_case(name));
        of_name.map(|(_, value)| *value)
    }
}
