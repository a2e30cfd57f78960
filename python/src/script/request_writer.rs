//! Bytes of requests.

use std::io::Write as _;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use weir::scenario::cookie_jar::CookieJar;
use weir::scenario::url::HttpUrl;

use super::request::ScriptRequest;
use super::session::{SessionState, unix_s};

/// What one exchange of a request sends; a redirect changes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentForm<'a> {
    pub(super) method: &'a str,
    pub(super) url: &'a HttpUrl,
    pub(super) sends_body: bool,
    /// Whether credentials of the request go to another host than the one that it named.
    pub(super) is_other_host: bool,
}

/// Absolute URL of a request's text.
///
/// # Errors
/// One line.
pub(super) fn absolute(base: &str, url: &str) -> Result<HttpUrl, String> {
    let is_absolute = ["http://", "https://"]
        .iter()
        .any(|scheme| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let parsed = if is_absolute {
        HttpUrl::parse(url.as_bytes())
    } else if base.is_empty() {
        return Err(format!("invalid URL '{url}': no scheme and no host; write the URL of the service, or host"));
    } else {
        let slash = if url.starts_with(['/', '?']) || url.is_empty() { "" } else { "/" };
        HttpUrl::parse([base, slash, url].concat().as_bytes())
    };
    parsed.map_err(|error| error.to_string())
}

/// Writes a request.
///
/// # Errors
/// One line, if a part would break the request.
pub(super) fn write_request(
    request: &ScriptRequest,
    session: &mut SessionState,
    form: SentForm<'_>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    out.clear();
    if form.method.is_empty()
        || !form.method.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_!#$%&'*+.^`|~".contains(&byte))
    {
        return Err(format!("invalid method '{}'; write e.g. GET", form.method.escape_debug()));
    }
    out.extend_from_slice(form.method.as_bytes());
    out.push(b' ');
    out.extend_from_slice(form.url.target());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    let replaces = |name: &[u8]| request.headers.iter().any(|(given, _)| name.eq_ignore_ascii_case(given.as_bytes()));
    if form.is_other_host || !replaces(b"host") {
        out.extend_from_slice(b"Host: ");
        form.url.write_host_field(out);
        out.extend_from_slice(b"\r\n");
    }
    let is_plain = request.headers.is_empty() && !form.is_other_host;
    if is_plain {
        out.extend_from_slice(&session.head);
    } else {
        for line in session.head.split_inclusive(|byte| *byte == b'\n') {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            let is_secret = form.is_other_host && name.eq_ignore_ascii_case(b"authorization");
            if !is_secret && !replaces(name) {
                out.extend_from_slice(line);
            }
        }
    }
    write_headers(request, form, out)?;
    write_credentials(request, &session.head, form, out);
    write_cookies(request, &mut session.jar, form.url, out);
    let body = request.body.as_deref().filter(|_| form.sends_body);
    let needs_length = body.is_some() || matches!(form.method, "POST" | "PUT" | "PATCH");
    if needs_length && !(form.sends_body && (replaces(b"content-length") || replaces(b"transfer-encoding"))) {
        // Writing to a vector does not fail.
        let _ = write!(out, "Content-Length: {}\r\n", body.unwrap_or_default().len());
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body.unwrap_or_default());
    Ok(())
}

fn write_headers(request: &ScriptRequest, form: SentForm<'_>, out: &mut Vec<u8>) -> Result<(), String> {
    for (name, value) in &request.headers {
        let Some(value) = value else { continue };
        let is_left_out = match name.to_ascii_lowercase().as_str() {
            "content-type" | "content-length" | "transfer-encoding" => !form.sends_body,
            "authorization" | "host" => form.is_other_host,
            // With those of the jar.
            "cookie" => true,
            _ => false,
        };
        if is_left_out {
            continue;
        }
        let is_token = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
        if !is_token || value.contains(['\r', '\n', '\0']) {
            return Err(format!("invalid header '{}': it has a line break or a colon", name.escape_debug()));
        }
        for part in [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    Ok(())
}

/// Basic authentication of a URL's user and password.
fn write_credentials(request: &ScriptRequest, head: &[u8], form: SentForm<'_>, out: &mut Vec<u8>) {
    let Some(userinfo) = form.url.userinfo() else { return };
    let is_authorization = |name: &[u8]| name.eq_ignore_ascii_case(b"authorization");
    let of_session = head.split(|byte| *byte == b'\n').any(|line| line.get(..13).is_some_and(is_authorization));
    if !of_session && !request.headers.iter().any(|(name, _)| is_authorization(name.as_bytes())) {
        let text = BASE64_STANDARD.encode(userinfo);
        let _ = write!(out, "Authorization: Basic {text}\r\n");
    }
}

fn write_cookies(request: &ScriptRequest, jar: &mut CookieJar, url: &HttpUrl, out: &mut Vec<u8>) {
    let given = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    let given = given.and_then(|(_, value)| value.as_deref()).filter(|value| !value.contains(['\r', '\n', '\0']));
    if jar.is_empty() && given.is_none() {
        return;
    }
    let start = out.len();
    out.extend_from_slice(b"Cookie: ");
    let empty = out.len();
    jar.write_header(url, unix_s(), out);
    if let Some(given) = given {
        if out.len() > empty {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(given.as_bytes());
    }
    if out.len() == empty { out.truncate(start) } else { out.extend_from_slice(b"\r\n") }
}
