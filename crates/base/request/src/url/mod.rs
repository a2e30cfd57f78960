//! Addresses of requests: `http` and `https` URLs, and references of redirects, which are relative to one. The one
//! grammar of all URLs that requests go to, wherever they are named.
//!
//! A URL is kept as it goes over the wire: the host in lower case and ASCII, path and query with everything
//! percent-encoded that browsers encode (WHATWG URL). Fragments are not kept, since they are never sent.
//!
//! Where a browser would guess, a URL is an error instead: a backslash or control characters around the host, an escape
//! in the host. Escapes of dot segments and backslashes in paths are sent as they are, and so are control characters
//! of path and query, percent-encoded.

mod authority;
mod error;
mod path;
mod reference;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io::Write as _;

use crate::origin::CredentialOrigin;
use crate::url_text::UrlText;
use authority::UrlAuthority;
pub use error::{UrlError, UrlProblem};
pub use path::{DotSegments, EncodedPart};
use reference::UrlReference;

/// Scheme of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UrlScheme {
    /// Plain text.
    Http,
    /// TLS.
    Https,
}

impl UrlScheme {
    /// Name in lower case, as URLs begin.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// Port of URLs that name none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    fn named(name: &[u8]) -> Option<Self> {
        [Self::Http, Self::Https].into_iter().find(|scheme| name.eq_ignore_ascii_case(scheme.as_str().as_bytes()))
    }
}

/// Absolute URL of a request, all of it ASCII.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpUrl {
    /// Host, then path and query, in one allocation.
    text: String,
    host_len: usize,
    /// End of the path in `text`.
    path_end: usize,
    port: u16,
    scheme: UrlScheme,
    userinfo: Option<Box<[u8]>>,
}

impl HttpUrl {
    /// Parses an absolute URL, and removes the segments `.` and `..` from its path.
    ///
    /// # Errors
    /// If the text is not a URL of http or https.
    pub fn parse(text: &[u8]) -> Result<Self, UrlError> {
        Self::parse_with(text, DotSegments::Remove)
    }

    /// Parses a URL as people type it: without a scheme it is one of http, and spaces around it do not count.
    ///
    /// # Errors
    /// As for [`HttpUrl::parse`].
    pub fn parse_typed(text: &str) -> Result<Self, UrlError> {
        let text = text.trim_matches(' ');
        let parts = UrlText::of(text);
        // `http:host` and `mailto:` are not hosts of that name with a port.
        let is_scheme = |end: &str| UrlScheme::named(end.as_bytes()).is_some();
        let has_scheme_alone = parts.authority.split_once(':').is_some_and(|(name, port)| {
            is_scheme(name) || (port.is_empty() && !name.is_empty() && parts.after_authority.starts_with('/'))
        });
        if parts.scheme.is_some() || has_scheme_alone {
            return Self::parse(text.as_bytes());
        }
        Self::parse([b"http://", text.as_bytes()].concat().as_slice())
            .map_err(|error| UrlError::new(text.as_bytes(), error.problem))
    }

    /// Path and query as a request line has them, of what follows the authority in a URL.
    pub fn target_of(after_authority: &str) -> String {
        let mut target = String::with_capacity(after_authority.len() + 1);
        let text = after_authority.split('#').next().unwrap_or_default();
        let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
        path::push_path(path.as_bytes(), DotSegments::Remove, &mut target);
        if let Some(query) = query {
            path::push_query(query.as_bytes(), &mut target);
        }
        target
    }

    /// Parses an absolute URL.
    ///
    /// # Errors
    /// As for [`HttpUrl::parse`].
    pub fn parse_with(text: &[u8], dot_segments: DotSegments) -> Result<Self, UrlError> {
        let mut url =
            Self { text: String::new(), host_len: 0, path_end: 0, port: 0, scheme: UrlScheme::Http, userinfo: None };
        url.assign(text, dot_segments)?;
        Ok(url)
    }

    /// Replaces the URL by the parsed text, in the same memory; an error leaves the URL as it was.
    ///
    /// # Errors
    /// As for [`HttpUrl::parse`].
    pub fn assign(&mut self, text: &[u8], dot_segments: DotSegments) -> Result<(), UrlError> {
        let reference = UrlReference::split(text).map_err(|problem| UrlError::new(text, problem))?;
        let scheme = reference.scheme().map_err(|problem| UrlError::new(text, problem))?;
        let scheme = scheme.ok_or_else(|| UrlError::new(text, UrlProblem::NoScheme))?;
        let authority = reference.authority.ok_or_else(|| UrlError::new(text, UrlProblem::NoHost))?;
        let authority = UrlAuthority::parse(authority).map_err(|problem| UrlError::new(text, problem))?;
        self.set_authority(scheme, &authority);
        self.push_path(reference.path, reference.query, dot_segments);
        Ok(())
    }

    /// URL that a reference names in a response from this URL, as in `Location` (RFC 3986, section 5.2). User and
    /// password stay at their origin, unless the reference has others.
    ///
    /// # Errors
    /// If the reference has another scheme than http and https, or an invalid host.
    pub fn resolve(&self, reference: &[u8]) -> Result<Self, UrlError> {
        let wrong = |problem| UrlError::new(reference, problem);
        let parts = UrlReference::split(reference).map_err(wrong)?;
        let scheme = parts.scheme().map_err(wrong)?;
        let mut url = self.clone();
        match (scheme, parts.authority) {
            (Some(_), None) => return Err(wrong(UrlProblem::NoHost)),
            (scheme, Some(authority)) => {
                url.set_authority(scheme.unwrap_or(self.scheme), &UrlAuthority::parse(authority).map_err(wrong)?);
                if url.userinfo.is_none() && self.credential_origin().shares_credentials_with(&url.credential_origin())
                {
                    url.userinfo.clone_from(&self.userinfo);
                }
                url.push_path(parts.path, parts.query, DotSegments::Remove);
            }
            (None, None) if parts.path.is_empty() => {
                if let Some(query) = parts.query {
                    url.text.truncate(url.path_end);
                    path::push_query(query, &mut url.text);
                }
            }
            (None, None) => {
                url.text.truncate(url.host_len);
                if parts.path.starts_with(b"/") {
                    url.push_path(parts.path, parts.query, DotSegments::Remove);
                } else {
                    let folder = self.path().rfind('/').map_or("/", |slash| &self.path()[..=slash]);
                    let path = [folder.as_bytes(), parts.path].concat();
                    url.push_path(&path, parts.query, DotSegments::Remove);
                }
            }
        }
        Ok(url)
    }

    fn set_authority(&mut self, scheme: UrlScheme, authority: &UrlAuthority<'_>) {
        self.scheme = scheme;
        self.port = authority.port.unwrap_or_else(|| scheme.default_port());
        self.userinfo = authority.userinfo();
        self.text.clear();
        authority.push_host(&mut self.text);
        self.host_len = self.text.len();
    }

    fn push_path(&mut self, path: &[u8], query: Option<&[u8]>, dot_segments: DotSegments) {
        path::push_path(path, dot_segments, &mut self.text);
        self.path_end = self.text.len();
        if let Some(query) = query {
            path::push_query(query, &mut self.text);
        }
    }

    /// Scheme.
    pub fn scheme(&self) -> UrlScheme {
        self.scheme
    }

    /// Whether requests go over TLS.
    pub fn is_tls(&self) -> bool {
        self.scheme == UrlScheme::Https
    }

    /// Host in lower case; an IPv6 address in brackets, in its canonical form.
    pub fn host(&self) -> &str {
        &self.text[..self.host_len]
    }

    /// Host without the brackets of an IPv6 address, as certificates and resolvers name it.
    pub fn host_without_brackets(&self) -> &str {
        self.host().trim_start_matches('[').trim_end_matches(']')
    }

    /// Whether the host is an IP address instead of a name.
    pub fn is_host_ip(&self) -> bool {
        authority::is_ip(self.host())
    }

    /// Port in [1, 65535]; the scheme's where the URL names none.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Path and query as they stand on the request line, beginning with `/`.
    pub fn target(&self) -> &[u8] {
        &self.text.as_bytes()[self.host_len..]
    }

    /// Path without the query, beginning with `/`.
    pub fn path(&self) -> &str {
        &self.text[self.host_len..self.path_end]
    }

    /// Query without `?`; none if the URL has no `?`.
    pub fn query(&self) -> Option<&str> {
        self.text[self.path_end..].strip_prefix('?')
    }

    /// `user:password`, percent-decoded, as Basic authentication encodes them. The colon is always there.
    pub fn userinfo(&self) -> Option<&[u8]> {
        self.userinfo.as_deref()
    }

    /// Appends the value of a Host field: the host, and a port that is not the scheme's default.
    pub fn write_host_field(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.host().as_bytes());
        if self.port != self.scheme.default_port() {
            // Writing to a vector does not fail.
            _ = write!(out, ":{}", self.port);
        }
    }

    /// Origin to which credentials for this URL belong.
    pub fn credential_origin(&self) -> CredentialOrigin<'_> {
        CredentialOrigin { is_tls: self.is_tls(), host: self.host(), port: self.port }
    }
}

/// The URL without user and password, which must not get into reports.
impl fmt::Display for HttpUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.host())?;
        if self.port != self.scheme.default_port() {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.text[self.host_len..])
    }
}
