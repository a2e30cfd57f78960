//! Requests of a step: what is fixed, and what is rendered for each user.

use std::sync::Arc;

use weir_base::rng::SeededRng;
use weir_hurl::TextPosition;
use weir_request::request_framing::CallerFraming;

use super::body_codec::BodyCodec;
use super::credential_home::{CredentialHome, RenderedTarget};
use super::credential_lines::CredentialLines;
use super::encoding::PieceEncoding;
use super::given_length::{GivenLength, write_length};
use super::origin::{OriginId, OriginTable, RequestOrigin};
use super::piece::PieceList;
use super::render_error::RenderError;
use super::request_bytes::RequestBytes;
use super::sent_url::SentUrl;
use super::url_template::UrlTemplate;
use crate::cookie_jar::CookieJar;
use crate::evaluate::{CompiledTemplate, RenderContext, VariableSlot, VariableTable};
use crate::value::Value;
use weir_request::url::{DotSegments, HttpUrl};

/// Beginning of a line with credentials.
pub(super) const BASIC: &[u8] = b"Authorization: Basic ";

/// Request of a step. Its bytes are those of HTTP/1.1; what never changes is rendered once.
#[derive(Clone, Debug)]
pub(super) struct RequestTemplate {
    pub(super) method: String,
    /// URL for results: as it is written, with the values of variables that nothing changes.
    pub(super) url_text: String,
    pub(super) target: RequestTarget,
    /// Origin of the URL, if nothing changes it; paths may change.
    pub(super) origin: Option<RequestOrigin>,
    /// Host, if the file gives it: the whole line.
    pub(super) host: PieceList,
    /// Lines of headers that every request of the step has.
    pub(super) headers: PieceList,
    /// Whether credentials in a URL are sent, since there are no others.
    pub(super) uses_userinfo: bool,
    pub(super) dot_segments: DotSegments,
    /// Credentials that belong to the origin of the step's own URL.
    pub(super) own: CredentialLines,
    /// Credentials of the settings, where the origin of the URL is known only when it is rendered: they belong to that
    /// of the settings. Elsewhere they are among the step's own, or are left out.
    pub(super) of_settings: CredentialLines,
    /// Lines about the body.
    pub(super) content_headers: PieceList,
    pub(super) body: PieceList,
    /// Coding of the body.
    pub(super) codec: Option<Arc<dyn BodyCodec>>,
    /// Large body that never changes, in place of `body`.
    pub(super) shared_body: Option<Arc<[u8]>>,
    /// Length that the file gives.
    pub(super) given_length: Option<GivenLength>,
    /// All bytes of a request for users without cookies, if they never change.
    pub(super) fixed: Option<RequestBytes>,
}

/// Destination of a step's requests.
#[derive(Clone, Debug)]
pub(super) enum RequestTarget {
    /// URL that never changes.
    Fixed { url: Box<HttpUrl>, origin: OriginId },
    /// URL, and parameters that are added to its query string.
    Dynamic { url: UrlTemplate, query: PieceList, position: TextPosition },
}

/// Variables and other sources of the values in a request.
#[derive(Debug)]
pub(super) struct RenderSource<'a, 'c> {
    pub(super) variables: &'a mut VariableTable,
    pub(super) context: &'a mut RenderContext<'c>,
}

/// Buffers that requests are rendered in, one of each per thread.
#[derive(Clone, Debug, Default)]
pub struct RenderScratch {
    pub(super) url: Vec<u8>,
    pub(super) body: Vec<u8>,
}

/// Request as it is sent now: that of the file, or one after a redirect.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestShape<'a> {
    pub(super) method: &'a str,
    pub(super) url: &'a HttpUrl,
    pub(super) has_body: bool,
    /// Whether the URL is of the origin that the step's own URL has, so that the file's Host is meant for it.
    pub(super) is_own_origin: bool,
    /// Whether the step's own credentials may go there.
    pub(super) is_trusted: bool,
    /// Whether those of the settings may.
    pub(super) is_home: bool,
    /// Value of `Authorization` that answers a challenge.
    pub(super) answer: Option<&'a str>,
}

impl<'a> RequestShape<'a> {
    /// First request of a step. A request that will be challenged has no body yet, as in curl.
    fn first(template: &'a RequestTemplate, url: &'a HttpUrl, is_home: bool) -> Self {
        let has_body = template.digest(is_home).is_none();
        Self { method: &template.method, url, has_body, is_own_origin: true, is_trusted: true, is_home, answer: None }
    }
}

impl RenderSource<'_, '_> {
    #[inline]
    pub(super) fn render(
        &mut self,
        template: &CompiledTemplate,
        position: TextPosition,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        template.render(self.variables, self.context, out).map_err(|error| RenderError::Template { error, position })
    }

    pub(super) fn set(&mut self, slot: VariableSlot, value: Value) {
        self.variables.set(slot, value);
    }
}

impl RequestTemplate {
    /// Appends a request to `out`; `url` becomes the URL, unless it never changes. Credentials of the settings belong
    /// to `home`; without one to the origin of this request.
    pub(super) fn render(
        &self,
        source: &mut RenderSource<'_, '_>,
        (jar, url): (&mut CookieJar, &mut SentUrl),
        (origins, home): (&mut OriginTable, CredentialHome<'_>),
        scratch: &mut RenderScratch,
        out: &mut RequestBytes,
    ) -> Result<RenderedTarget, RenderError> {
        let (origin, is_home, place) = match &self.target {
            RequestTarget::Fixed { url: fixed_url, origin } => {
                url.set_fixed();
                if let Some(fixed) = &self.fixed
                    && jar.is_empty()
                {
                    out.written.extend_from_slice(&fixed.written);
                    out.shared_body.clone_from(&fixed.shared_body);
                    return Ok(RenderedTarget { origin: *origin, is_home: false });
                }
                (*origin, false, &**fixed_url)
            }
            RequestTarget::Dynamic { url: pieces, query, position } => {
                render_url(pieces, query, source, &mut scratch.url)?;
                let invalid = |error| RenderError::Url { error, position: *position };
                let place = url.assign(&scratch.url, self.dot_segments).map_err(invalid)?;
                let origin = intern(place, origins).ok_or(RenderError::Origins)?;
                (origin, self.of_settings.is_used() && home.includes(place, origins), place)
            }
        };
        let shape = RequestShape::first(self, place, is_home);
        self.write(shape, source, jar, &mut scratch.body, out)?;
        Ok(RenderedTarget { origin, is_home })
    }

    /// Appends a request of a shape to `out`.
    pub(super) fn write(
        &self,
        shape: RequestShape<'_>,
        source: &mut RenderSource<'_, '_>,
        jar: &mut CookieJar,
        body: &mut Vec<u8>,
        request: &mut RequestBytes,
    ) -> Result<(), RenderError> {
        let out = &mut request.written;
        out.extend_from_slice(shape.method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(shape.url.target());
        out.extend_from_slice(b" HTTP/1.1\r\n");
        let has_own_host = shape.is_own_origin && !self.host.is_empty();
        render_if(has_own_host, &self.host, source, out)?;
        if !has_own_host {
            out.extend_from_slice(b"Host: ");
            shape.url.write_host_field(out);
            out.extend_from_slice(b"\r\n");
        }
        self.headers.render(source, out)?;
        render_if(shape.is_trusted, &self.own.headers, source, out)?;
        render_if(shape.is_home, &self.of_settings.headers, source, out)?;
        if let Some(answer) = shape.answer {
            out.extend_from_slice(b"Authorization: ");
            out.extend_from_slice(answer.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        let has_authorization = shape.is_home && self.of_settings.has_authorization;
        if self.uses_userinfo
            && !has_authorization
            && let Some(userinfo) = shape.url.userinfo()
        {
            let start = out.len() + BASIC.len();
            out.extend_from_slice(BASIC);
            out.extend_from_slice(userinfo);
            let encoded = PieceEncoding::Base64.encode_tail(out, start);
            encoded.map_err(|error| RenderError::Encoding { error, position: TextPosition::default() })?;
            out.extend_from_slice(b"\r\n");
        }
        self.write_cookies(shape, source, jar, out)?;
        if !shape.has_body {
            write_length((CallerFraming::default(), shape.method), 0, out);
            return Ok(());
        }
        self.content_headers.render(source, out)?;
        body.clear();
        request.shared_body.clone_from(&self.shared_body);
        let body = match (&self.shared_body, self.body.as_fixed()) {
            (Some(shared), _) => shared,
            (None, Some(fixed)) => fixed,
            (None, None) => {
                self.body.render(source, body)?;
                body.as_slice()
            }
        };
        let encoded = self.codec.as_ref().map(|codec| codec.encode(body).map_err(RenderError::Body)).transpose()?;
        let body = encoded.as_deref().unwrap_or(body);
        let framing = match &self.given_length {
            Some(length) => length.framing(source, out, (shape.method, body.len()))?,
            None => CallerFraming::default(),
        };
        write_length((framing, shape.method), body.len(), out);
        if self.shared_body.is_none() {
            out.extend_from_slice(body);
        }
        Ok(())
    }

    /// Credentials for digest authentication; those of the settings only where these may go.
    pub(super) fn digest(&self, is_home: bool) -> Option<&PieceList> {
        self.own.digest.as_ref().or_else(|| self.of_settings.digest.as_ref().filter(|_| is_home))
    }

    /// Renders the URL again and drops it, so that random values after it are those of the first request.
    pub(super) fn skip_target(
        &self,
        source: &mut RenderSource<'_, '_>,
        scratch: &mut RenderScratch,
    ) -> Result<(), RenderError> {
        match &self.target {
            RequestTarget::Fixed { .. } => Ok(()),
            RequestTarget::Dynamic { url, query, .. } => render_url(url, query, source, &mut scratch.url),
        }
    }

    fn write_cookies(
        &self,
        shape: RequestShape<'_>,
        source: &mut RenderSource<'_, '_>,
        jar: &mut CookieJar,
        out: &mut Vec<u8>,
    ) -> Result<(), RenderError> {
        const NAME: &[u8] = b"Cookie: ";
        let start = out.len();
        out.extend_from_slice(NAME);
        if !jar.is_empty() {
            jar.write_header(shape.url, source.context.unix_s, out);
        }
        for (is_part, lines) in [(shape.is_trusted, &self.own), (shape.is_home, &self.of_settings)] {
            if is_part && !lines.cookies.is_empty() && out.len() > start + NAME.len() {
                out.extend_from_slice(b"; ");
            }
            render_if(is_part, &lines.cookies, source, out)?;
        }
        if out.len() > start + NAME.len() {
            out.extend_from_slice(b"\r\n");
        } else {
            out.truncate(start);
        }
        Ok(())
    }

    /// Renders all bytes of a request that never changes.
    pub(super) fn prerendered(&self) -> Option<RequestBytes> {
        let RequestTarget::Fixed { url, .. } = &self.target else { return None };
        let own = &self.own;
        let lists = [&self.host, &self.headers, &own.headers, &own.cookies, &self.content_headers, &self.body];
        let length = self.given_length.as_ref().map(|length| &length.value);
        if lists.into_iter().chain(length).any(|list| list.as_fixed().is_none()) {
            return None;
        }
        let shape = RequestShape::first(self, url, false);
        let mut rng = SeededRng::new(0, 0);
        let mut context = RenderContext { rng: &mut rng, unix_s: 0, sequence: 0 };
        let mut source = RenderSource { variables: &mut VariableTable::default(), context: &mut context };
        let mut out = RequestBytes::default();
        self.write(shape, &mut source, &mut CookieJar::default(), &mut Vec::new(), &mut out).ok()?;
        Some(out)
    }
}

/// Index of a URL's origin.
pub(super) fn intern(url: &HttpUrl, origins: &mut OriginTable) -> Option<OriginId> {
    origins.intern(url.is_tls(), url.host(), url.port())
}

/// Renders pieces, and drops them unless they are part of the request: random values after them are the same.
fn render_if(
    is_part: bool,
    list: &PieceList,
    source: &mut RenderSource<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), RenderError> {
    let start = out.len();
    list.render(source, out)?;
    if !is_part {
        out.truncate(start);
    }
    Ok(())
}

/// Renders a URL with the parameters of its query string.
fn render_url(
    url: &UrlTemplate,
    query: &PieceList,
    source: &mut RenderSource<'_, '_>,
    out: &mut Vec<u8>,
) -> Result<(), RenderError> {
    out.clear();
    url.render(source, out)?;
    if query.is_empty() {
        return Ok(());
    }
    // A fragment is not sent; parameters after it would be lost.
    if let Some(fragment) = out.iter().position(|byte| *byte == b'#') {
        out.truncate(fragment);
    }
    match out.last() {
        Some(b'?') => {}
        _ if out.contains(&b'?') => out.push(b'&'),
        _ => out.push(b'?'),
    }
    query.render(source, out)
}
