//! Headers that name the place of a service, where the recorder stands for it (`--upstream`): a browser sees the
//! recorder's address, the service its own. PURE.

use http::{HeaderMap, HeaderValue, header};

/// Addresses of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReverseAddresses {
    /// Scheme and authority of the service: `https://shop.example`.
    pub(crate) upstream: String,
    /// Scheme and authority by which the client reaches the recorder: `http://localhost:8888`.
    pub(crate) client: String,
}

impl ReverseAddresses {
    /// Gives a request the service's own address.
    pub(crate) fn rewrite_request(&self, headers: &mut HeaderMap) {
        if let Some((_, host)) = self.upstream.split_once("://")
            && let Ok(host) = HeaderValue::from_str(host)
        {
            headers.insert(header::HOST, host);
        }
        for name in [header::ORIGIN, header::REFERER] {
            replace_origin(headers, &name, &self.client, &self.upstream);
        }
    }

    /// Gives a response the address that the client knows. Cookies lose their domain, which is not the recorder's, and
    /// the mark `Secure`, since the recorder has no TLS.
    pub(crate) fn rewrite_response(&self, headers: &mut HeaderMap) {
        for name in [header::LOCATION, header::CONTENT_LOCATION, header::ACCESS_CONTROL_ALLOW_ORIGIN] {
            replace_origin(headers, &name, &self.upstream, &self.client);
        }
        let cookies: Vec<HeaderValue> = headers.get_all(header::SET_COOKIE).iter().map(local_cookie).collect();
        headers.remove(header::SET_COOKIE);
        for cookie in cookies {
            headers.append(header::SET_COOKIE, cookie);
        }
        // It would have the browser come back with TLS.
        headers.remove(header::STRICT_TRANSPORT_SECURITY);
    }
}

fn replace_origin(headers: &mut HeaderMap, name: &header::HeaderName, from: &str, to: &str) {
    let made = headers.get(name).and_then(|value| {
        let rest = strip_origin(value.to_str().ok()?, from)?;
        HeaderValue::from_str(&format!("{to}{rest}")).ok()
    });
    if let Some(made) = made {
        headers.insert(name, made);
    }
}

/// Rest of a URL after an origin; `None` if the URL has another origin.
fn strip_origin<'a>(url: &'a str, origin: &str) -> Option<&'a str> {
    let start = url.get(..origin.len()).filter(|start| start.eq_ignore_ascii_case(origin))?;
    let rest = &url[start.len()..];
    (rest.is_empty() || rest.starts_with(['/', '?', '#'])).then_some(rest)
}

/// Cookie without its domain and without `Secure`. `SameSite=None` needs `Secure`, so it goes with it.
fn local_cookie(cookie: &HeaderValue) -> HeaderValue {
    let Ok(text) = cookie.to_str() else { return cookie.clone() };
    let mut parts = text.split(';');
    let first = parts.next().unwrap_or_default();
    let is_kept = |part: &&str| {
        let part = part.trim().to_ascii_lowercase();
        let (name, value) = part.split_once('=').unwrap_or((&part, ""));
        !matches!((name.trim(), value.trim()), ("domain", _) | ("secure", _) | ("samesite", "none"))
    };
    let kept: Vec<&str> = std::iter::once(first).chain(parts.filter(is_kept)).collect();
    HeaderValue::from_str(&kept.join(";")).unwrap_or_else(|_| cookie.clone())
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn addresses() -> ReverseAddresses {
        ReverseAddresses { upstream: "https://shop.example".into(), client: "http://localhost:8888".into() }
    }

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn the_service_sees_its_own_address() {
        let mut all = headers(&[
            ("host", "localhost:8888"),
            ("origin", "http://localhost:8888"),
            ("referer", "http://localhost:8888/a?b"),
        ]);
        addresses().rewrite_request(&mut all);
        let own =
            [("host", "shop.example"), ("origin", "https://shop.example"), ("referer", "https://shop.example/a?b")];
        assert_eq!(all, headers(&own));
        let mut others =
            headers(&[("host", "shop.example"), ("origin", "http://localhost:88881"), ("referer", "null")]);
        let before = others.clone();
        addresses().rewrite_request(&mut others);
        assert_eq!(others, before);
    }

    #[test]
    fn the_client_sees_the_address_of_the_recorder() {
        let mut all = headers(&[
            ("location", "https://shop.example/items?x=1"),
            ("set-cookie", "sid=1; Path=/; Domain=.shop.example; Secure; HttpOnly; SameSite=None"),
            ("set-cookie", "a=\"x\"; SameSite=Lax"),
            ("strict-transport-security", "max-age=1"),
        ]);
        addresses().rewrite_response(&mut all);
        let own = [
            ("location", "http://localhost:8888/items?x=1"),
            ("set-cookie", "sid=1; Path=/; HttpOnly"),
            ("set-cookie", "a=\"x\"; SameSite=Lax"),
        ];
        assert_eq!(all, headers(&own));
        let mut others = headers(&[("location", "https://shop.example.evil/"), ("location", "/relative")]);
        let before = others.clone();
        addresses().rewrite_response(&mut others);
        assert_eq!(others, before);
    }
}
