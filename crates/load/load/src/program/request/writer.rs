//! Bytes of requests.

use std::io::Write as _;

use super::credential_values::CredentialValues;
use super::session_parts::SessionParts;
use weir_request::basic_auth::basic_authorization;
use weir_request::request_framing::{CallerFraming, CallerHeader};
use weir_request::secret_names::is_secret_name;
use weir_request::url::HttpUrl;
use weir_scenario::cookie_jar::CookieJar;

/// Headers and body of a single request, besides those of its session.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestParts<'a> {
    /// Headers that replace those of the session; without a value they remove it.
    pub headers: &'a [(String, Option<String>)],
    /// Body.
    pub body: Option<&'a [u8]>,
}

/// Method, URL and body of one exchange of a request; each redirect changes them.
#[derive(Clone, Copy, Debug)]
pub struct SentForm<'a> {
    /// Method.
    pub method: &'a str,
    /// URL.
    pub url: &'a HttpUrl,
    /// Whether the body is sent, which a redirect may leave out.
    pub sends_body: bool,
    /// Whether a redirect has left the origin of the request's own URL: headers with a secret name stay there.
    pub has_left_origin: bool,
    /// Header lines of the session that do not belong to the origin of the URL, each with its line break.
    pub withheld: &'a [u8],
}

impl SentForm<'_> {
    /// Whether a header stays at the origin that a redirect has left: by its name, or since it repeats a credential.
    /// Lines about the body do not.
    fn leaves_out(&self, name: &[u8], value: &[u8], credentials: &CredentialValues<'_>) -> bool {
        self.has_left_origin
            && std::str::from_utf8(name).is_ok_and(|name| {
                is_secret_name(name)
                    || (!name.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("content-"))
                        && credentials.are_in(value))
            })
    }

    /// Whether a line of the session does not belong to the origin of the URL.
    fn withholds(&self, line: &[u8]) -> bool {
        !self.withheld.is_empty() && self.withheld.split_inclusive(|byte| *byte == b'\n').any(|held| held == line)
    }
}

/// Header lines with a secret name, each with its line break.
pub fn secret_lines(head: &[u8]) -> Vec<u8> {
    let lines = head.split_inclusive(|byte| *byte == b'\n');
    let name = |line: &[u8]| line.split(|byte| *byte == b':').next().map(<[u8]>::to_vec);
    let is_secret = |line: &&[u8]| {
        name(line).and_then(|name| String::from_utf8(name).ok()).is_some_and(|name| is_secret_name(&name))
    };
    lines.filter(is_secret).collect::<Vec<_>>().concat()
}

/// Absolute URL of a request's text.
///
/// # Errors
/// One line.
pub fn absolute(base: &str, url: &str) -> Result<HttpUrl, String> {
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

/// Checks the header lines of a session: each body has its own framing.
///
/// # Errors
/// One line.
pub fn check_session_head(head: &[u8]) -> Result<(), String> {
    for line in head.split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let kind = CallerFraming::default().take(name, value).map_err(|error| error.to_string())?;
        if kind == CallerHeader::Length {
            return Err("the header 'Content-Length' cannot be one of all requests: each body has its own; leave the \
                        header out"
                .to_owned());
        }
    }
    Ok(())
}

/// Writes a request with what its session adds.
///
/// # Errors
/// One line, if a part would break the request.
pub fn write_request(
    request: RequestParts<'_>,
    session: SessionParts<'_>,
    form: SentForm<'_>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let SessionParts { head, jar, unix_s } = session;
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
    if form.has_left_origin || !replaces(b"host") {
        out.extend_from_slice(b"Host: ");
        form.url.write_host_field(out);
        out.extend_from_slice(b"\r\n");
    }
    let credentials = match form.has_left_origin {
        true => CredentialValues::of(head, request.headers),
        false => CredentialValues::default(),
    };
    let is_plain = request.headers.is_empty() && !form.has_left_origin && form.withheld.is_empty();
    if is_plain {
        out.extend_from_slice(head);
    } else {
        for line in head.split_inclusive(|byte| *byte == b'\n') {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            if !form.leaves_out(name, line, &credentials) && !form.withholds(line) && !replaces(name) {
                out.extend_from_slice(line);
            }
        }
    }
    let framing = write_headers(request, form, &credentials, out)?;
    write_credentials(request, head, form, out);
    write_cookies(request, jar, unix_s, form, out);
    let body = request.body.filter(|_| form.sends_body);
    let length = body.unwrap_or_default().len();
    if framing.has_length(form.method, length as u64).map_err(|error| error.to_string())? {
        // Writing to a vector does not fail.
        let _ = write!(out, "Content-Length: {length}\r\n");
    }
    out.extend_from_slice(b"\r\n");
    out.extend_from_slice(body.unwrap_or_default());
    Ok(())
}

/// Writes the headers of a request but for its length; returns what they say of its framing.
fn write_headers(
    request: RequestParts<'_>,
    form: SentForm<'_>,
    credentials: &CredentialValues<'_>,
    out: &mut Vec<u8>,
) -> Result<CallerFraming, String> {
    let mut framing = CallerFraming::default();
    for (name, value) in request.headers {
        let Some(value) = value else { continue };
        let is_left_out = match name.to_ascii_lowercase().as_str() {
            "content-type" | "content-length" | "transfer-encoding" => !form.sends_body,
            "host" => form.has_left_origin,
            // With those of the jar.
            "cookie" => true,
            _ => form.leaves_out(name.as_bytes(), value.as_bytes(), credentials),
        };
        if is_left_out {
            continue;
        }
        let is_token = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':');
        if !is_token || value.contains(['\r', '\n', '\0']) {
            return Err(format!("invalid header '{}': it has a line break or a colon", name.escape_debug()));
        }
        let kind = framing.take(name.as_bytes(), value.as_bytes()).map_err(|error| error.to_string())?;
        if kind == CallerHeader::Length {
            continue;
        }
        for part in [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            out.extend_from_slice(part);
        }
    }
    Ok(framing)
}

/// Basic authentication of a URL's user and password.
fn write_credentials(request: RequestParts<'_>, head: &[u8], form: SentForm<'_>, out: &mut Vec<u8>) {
    let Some(userinfo) = form.url.userinfo() else { return };
    let is_authorization = |name: &[u8]| name.eq_ignore_ascii_case(b"authorization");
    let of_session = head.split(|byte| *byte == b'\n').any(|line| line.get(..13).is_some_and(is_authorization));
    if !of_session && !request.headers.iter().any(|(name, _)| is_authorization(name.as_bytes())) {
        let _ = write!(out, "Authorization: {}\r\n", basic_authorization(userinfo));
    }
}

fn write_cookies(request: RequestParts<'_>, jar: &mut CookieJar, unix_s: i64, form: SentForm<'_>, out: &mut Vec<u8>) {
    let headers = if form.has_left_origin { &[] } else { request.headers };
    let given = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("cookie"));
    let given = given.and_then(|(_, value)| value.as_deref()).filter(|value| !value.contains(['\r', '\n', '\0']));
    if jar.is_empty() && given.is_none() {
        return;
    }
    let start = out.len();
    out.extend_from_slice(b"Cookie: ");
    let empty = out.len();
    jar.write_header(form.url, unix_s, out);
    if let Some(given) = given {
        if out.len() > empty {
            out.extend_from_slice(b"; ");
        }
        out.extend_from_slice(given.as_bytes());
    }
    if out.len() == empty { out.truncate(start) } else { out.extend_from_slice(b"\r\n") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEAD: &[u8] = b"User-Agent: weir\r\nAuthorization: Bearer of-session\r\n";

    fn headers(pairs: &[(&str, Option<&str>)]) -> Vec<(String, Option<String>)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect()
    }

    fn session<'a>(head: &'a [u8], jar: &'a mut CookieJar) -> SessionParts<'a> {
        SessionParts { head, jar, unix_s: 0 }
    }

    /// Lines of the head, and the body.
    fn written(
        url: &str,
        method: &str,
        given: &[(&str, Option<&str>)],
        body: Option<&str>,
        (sends_body, has_left_origin): (bool, bool),
    ) -> Result<(Vec<String>, String), String> {
        let url = absolute("http://shop.example", url)?;
        let given = headers(given);
        let parts = RequestParts { headers: &given, body: body.map(str::as_bytes) };
        let form = SentForm { method, url: &url, sends_body, has_left_origin, withheld: b"" };
        let mut out = Vec::new();
        write_request(parts, session(HEAD, &mut CookieJar::default()), form, &mut out)?;
        let text = String::from_utf8(out).map_err(|error| error.to_string())?;
        let (head, body) = text.split_once("\r\n\r\n").ok_or("no end of the head")?;
        Ok((head.split("\r\n").map(str::to_owned).collect(), body.to_owned()))
    }

    const FIRST: (bool, bool) = (true, false);

    #[test]
    fn a_request_has_the_lines_of_its_session_and_its_own_replace_them() {
        let (lines, body) = written("/a?b=1", "GET", &[], None, FIRST).expect("valid");
        let session = ["User-Agent: weir", "Authorization: Bearer of-session"];
        assert_eq!(lines, [&["GET /a?b=1 HTTP/1.1", "Host: shop.example"][..], &session].concat());
        assert_eq!(body, "");
        let given = [("user-agent", Some("mine")), ("AUTHORIZATION", None), ("Host", Some("other"))];
        let (lines, _) = written("/", "GET", &given, None, FIRST).expect("valid");
        assert_eq!(lines, ["GET / HTTP/1.1", "user-agent: mine", "Host: other"]);
    }

    #[test]
    fn a_body_has_its_length_and_a_redirect_leaves_out_what_belongs_to_it() {
        let given = [("Content-Type", Some("text/plain")), ("Authorization", Some("Basic own"))];
        let (lines, body) = written("/", "POST", &given, Some("four"), FIRST).expect("valid");
        assert!(lines.contains(&"Content-Length: 4".to_owned()), "{lines:?}");
        assert_eq!(body, "four");
        let (lines, body) =
            written("http://other.example/", "GET", &given, Some("four"), (false, true)).expect("valid");
        assert_eq!(lines, ["GET / HTTP/1.1", "Host: other.example", "User-Agent: weir"], "no credentials, no body");
        assert_eq!(body, "");
        let (lines, _) = written("/", "PUT", &[], None, FIRST).expect("valid");
        assert_eq!(lines.last().map(String::as_str), Some("Content-Length: 0"));
        let (lines, _) = written("/", "POST", &[("content-length", Some("4"))], Some("four"), FIRST).expect("valid");
        assert_eq!(lines.iter().filter(|line| line.to_ascii_lowercase().starts_with("content-length")).count(), 1);
        for wrong in [("content-length", "7"), ("Transfer-Encoding", "chunked"), ("CONTENT-LENGTH", "")] {
            let sent = written("/", "POST", &[(wrong.0, Some(wrong.1))], Some("four"), FIRST);
            assert!(sent.is_err_and(|why| why.contains("leave")), "{wrong:?}");
        }
    }

    #[test]
    fn cookies_of_the_jar_and_of_the_request_are_one_line() {
        let url = absolute("http://shop.example", "/").expect("valid");
        let mut jar = CookieJar::default();
        let _ = jar.store(b"a=1", &url, 0);
        let given = headers(&[("Cookie", Some("b=2"))]);
        let parts = RequestParts { headers: &given, body: None };
        let form = SentForm { method: "GET", url: &url, sends_body: true, has_left_origin: false, withheld: b"" };
        let mut out = Vec::new();
        write_request(parts, session(b"", &mut jar), form, &mut out).expect("valid");
        let text = String::from_utf8_lossy(&out);
        assert!(text.contains("\r\nCookie: a=1; b=2\r\n"), "{text}");
        assert_eq!(text.matches("ookie").count(), 1);
    }

    #[test]
    fn a_user_in_the_url_is_basic_authentication_unless_there_is_another() {
        let url = absolute("", "http://me:pw@shop.example/").expect("valid");
        let form = SentForm { method: "GET", url: &url, sends_body: true, has_left_origin: false, withheld: b"" };
        for (head, expected) in [(&b""[..], 1), (HEAD, 0)] {
            let mut out = Vec::new();
            let parts = RequestParts::default();
            write_request(parts, session(head, &mut CookieJar::default()), form, &mut out).expect("valid");
            let text = String::from_utf8_lossy(&out);
            assert_eq!(text.matches("Authorization: Basic bWU6cHc=\r\n").count(), expected, "{text}");
        }
    }

    #[test]
    fn urls_need_a_base_or_a_host_and_join_with_one_slash() {
        let joined = |base: &str, url: &str| absolute(base, url).map(|url| url.to_string());
        assert_eq!(joined("http://a/b", "c"), Ok("http://a/b/c".to_owned()));
        assert_eq!(joined("http://a", "?q=1"), Ok("http://a/?q=1".to_owned()));
        assert_eq!(joined("http://a", "HTTPS://x/y"), Ok("https://x/y".to_owned()));
        assert!(joined("", "/c").is_err_and(|why| why.contains("no scheme and no host")));
    }

    #[test]
    fn no_header_with_a_secret_name_follows_a_redirect_to_another_origin() {
        let head = b"User-Agent: weir\r\nX-Api-Key: k\r\nCookie: s=1\r\nProxy-Authorization: p\r\n";
        let given = headers(&[("X-Auth-Token", Some("t")), ("Cookie", Some("c=1")), ("X-Other", Some("o"))]);
        let (url, mut jar, mut out) =
            (absolute("", "http://shop.example:81/").expect("valid"), CookieJar::default(), Vec::new());
        let _ = jar.store(b"jar=1", &url, 0);
        let parts = RequestParts { headers: &given, body: None };
        let form = SentForm { method: "GET", url: &url, sends_body: true, has_left_origin: true, withheld: b"" };
        write_request(parts, session(head, &mut jar), form, &mut out).expect("valid");
        let text = String::from_utf8_lossy(&out);
        let lines = "Host: shop.example:81\r\nUser-Agent: weir\r\nX-Other: o\r\nCookie: jar=1\r\n\r\n";
        assert_eq!(text, format!("GET / HTTP/1.1\r\n{lines}"), "cookies of the jar have their own rules");
    }

    #[test]
    fn no_header_that_repeats_a_credential_follows_a_redirect_to_another_origin() {
        let head = b"Authorization: Bearer abcdefgh-1\r\nX-Trace: run-7\r\nX-Copy: t=abcdefgh-1\r\n";
        let given = headers(&[
            ("Cookie", Some("a=1; sid=session-22")),
            ("X-Session", Some("session-22")),
            ("X-Page", Some("1")),
            ("Content-Type", Some("text/abcdefgh-1")),
        ]);
        let (url, mut out) = (absolute("", "http://other.example/").expect("valid"), Vec::new());
        let parts = RequestParts { headers: &given, body: None };
        for (has_left_origin, sent) in [(true, false), (false, true)] {
            let form = SentForm { method: "GET", url: &url, sends_body: true, has_left_origin, withheld: b"" };
            write_request(parts, session(head, &mut CookieJar::default()), form, &mut out).expect("valid");
            let text = String::from_utf8_lossy(&out);
            for name in ["X-Copy", "X-Session"] {
                assert_eq!(text.contains(name), sent, "{text}");
            }
            assert!(text.contains("X-Trace: run-7\r\n") && text.contains("X-Page: 1\r\n"), "{text}");
            assert!(text.contains("Content-Type: text/abcdefgh-1\r\n"), "{text}");
        }
    }

    #[test]
    fn lines_that_belong_to_another_origin_are_withheld() {
        let head = b"User-Agent: weir\r\nX-Api-Key: k\r\nAuthorization: own\r\n";
        let withheld = secret_lines(b"X-Api-Key: k\r\nAuthorization: of-command-line\r\nX-Other: o\r\n");
        assert_eq!(withheld, b"X-Api-Key: k\r\nAuthorization: of-command-line\r\n");
        let (url, mut out) = (absolute("", "http://other.example/").expect("valid"), Vec::new());
        let form = SentForm { method: "GET", url: &url, sends_body: true, has_left_origin: false, withheld: &withheld };
        write_request(RequestParts::default(), session(head, &mut CookieJar::default()), form, &mut out)
            .expect("valid");
        let text = String::from_utf8_lossy(&out);
        assert!(!text.contains("Api-Key") && text.contains("Authorization: own\r\n"), "{text}");
    }

    proptest! {
        #[test]
        fn no_header_method_or_cookie_adds_a_line(
            name in "[ -~\r\n]{0,12}", value in "[ -~\r\n\0]{0,20}", method in "[ -~\r\n]{0,8}"
        ) {
            let given = [(name.as_str(), Some(value.as_str()))];
            if let Ok((lines, body)) = written("/", &method, &given, None, FIRST) {
                let own = if name.eq_ignore_ascii_case("authorization") || name.eq_ignore_ascii_case("user-agent")
                    || name.eq_ignore_ascii_case("host") { 0 } else { 1 };
                let length = usize::from(matches!(method.as_str(), "POST" | "PUT" | "PATCH"));
                prop_assert!(lines.len() <= 4 + own + length, "{lines:?}");
                prop_assert_eq!(body, "");
                prop_assert!(lines.iter().all(|line| !line.contains(['\r', '\n', '\0'])), "{lines:?}");
            }
        }
    }
}
