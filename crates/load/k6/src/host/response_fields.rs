//! Fields of responses, as scripts read them.

use std::net::SocketAddr;

use rquickjs::{Array, ArrayBuffer, Ctx, Function, IntoJs as _, Object, Result, Value, qjs};
use weir_base::Nanos;
use weir_load::program::ConnectionFacts;

use super::exchange::{HttpEnd, HttpResult};

/// A field of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseField {
    RemoteIp,
    RemotePort,
    Url,
    Status,
    StatusText,
    Proto,
    Headers,
    Cookies,
    Body,
    Timings,
    TlsVersion,
    TlsCipherSuite,
    Ocsp,
    Error,
    ErrorCode,
    Request,
    /// The body as JSON; no name of a script.
    Json,
}

/// Names of the fields, in the order of k6.
pub(super) const FIELDS: [(&str, ResponseField); 16] = [
    ("remote_ip", ResponseField::RemoteIp),
    ("remote_port", ResponseField::RemotePort),
    ("url", ResponseField::Url),
    ("status", ResponseField::Status),
    ("status_text", ResponseField::StatusText),
    ("proto", ResponseField::Proto),
    ("headers", ResponseField::Headers),
    ("cookies", ResponseField::Cookies),
    ("body", ResponseField::Body),
    ("timings", ResponseField::Timings),
    ("tls_version", ResponseField::TlsVersion),
    ("tls_cipher_suite", ResponseField::TlsCipherSuite),
    ("ocsp", ResponseField::Ocsp),
    ("error", ResponseField::Error),
    ("error_code", ResponseField::ErrorCode),
    ("request", ResponseField::Request),
];

/// Class of responses in the interpreter of a user.
#[derive(Debug)]
pub(crate) struct ResponseObjects {
    pub(super) id: qjs::JSClassID,
    /// Names of the fields, as the interpreter has them.
    pub(super) names: [qjs::JSAtom; FIELDS.len()],
}

/// Value of a field.
///
/// # Errors
/// If there is no memory.
pub(super) fn value_of<'js>(ctx: &Ctx<'js>, result: &HttpResult, field: ResponseField) -> Result<Value<'js>> {
    match field {
        ResponseField::RemoteIp => peer(result).map(|peer| peer.ip().to_string()).unwrap_or_default().into_js(ctx),
        ResponseField::RemotePort => peer(result).map_or(0, |peer| peer.port()).into_js(ctx),
        ResponseField::TlsVersion => result.connection.as_deref().map_or("", tls_version).into_js(ctx),
        ResponseField::TlsCipherSuite => {
            result.connection.as_deref().map(cipher_suite).unwrap_or_default().into_js(ctx)
        }
        ResponseField::Url => result.url.to_string().into_js(ctx),
        ResponseField::Status => result.status().into_js(ctx),
        ResponseField::StatusText => status_text(result.head()).into_js(ctx),
        ResponseField::Proto => protocol(result.head()).into_js(ctx),
        ResponseField::Headers => headers(ctx, result.head()).map(Object::into_value),
        ResponseField::Cookies => cookies(ctx, result.head()).map(Object::into_value),
        ResponseField::Body => body(ctx, result),
        ResponseField::Timings => timings(ctx, result).map(Object::into_value),
        ResponseField::Ocsp => ocsp(ctx).map(Object::into_value),
        ResponseField::Error => match &result.end {
            HttpEnd::Response(..) => "".into_js(ctx),
            HttpEnd::Failed(_, why) => why.into_js(ctx),
        },
        ResponseField::ErrorCode => result.error_code().into_js(ctx),
        ResponseField::Request => request(ctx, result).map(Object::into_value),
        ResponseField::Json => Ok(Value::new_undefined(ctx.clone())),
    }
}

fn first_line(head: &[u8]) -> String {
    let end = head.windows(2).position(|pair| pair == b"\r\n").unwrap_or(head.len());
    String::from_utf8_lossy(&head[..end]).into_owned()
}

fn status_text(head: &[u8]) -> String {
    first_line(head).split_once(' ').map(|(_, text)| text.to_owned()).unwrap_or_default()
}

fn peer(result: &HttpResult) -> Option<SocketAddr> {
    result.connection.as_ref()?.peer
}

/// Version of TLS of a connection, as the constants of `k6/http` have it; empty without TLS.
pub(crate) fn tls_version(connection: &ConnectionFacts) -> &'static str {
    match connection.tls.as_ref().map(|(version, _)| version.as_str()) {
        Some("TLSv1.2") => "tls1.2",
        Some("TLSv1.3") => "tls1.3",
        _ => "",
    }
}

/// Cipher suite of a connection by its registered name; empty without TLS.
fn cipher_suite(connection: &ConnectionFacts) -> String {
    match &connection.tls {
        Some((_, suite)) if suite.starts_with("TLS_") => suite.clone(),
        Some((_, suite)) => format!("TLS_{suite}"),
        None => String::new(),
    }
}

/// Version of HTTP of a head, as k6 shows it.
pub(crate) fn protocol(head: &[u8]) -> String {
    match first_line(head).split(' ').next().unwrap_or_default() {
        "HTTP/2" => "HTTP/2.0".to_owned(),
        other => other.to_owned(),
    }
}

/// Header lines: names as written in headers, and values.
fn fields(head: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(head);
    let lines = text.split("\r\n").skip(1);
    let split = lines.filter_map(|line| line.split_once(':').filter(|(name, _)| !name.is_empty()));
    split.map(|(name, value)| (canonical(name), value.trim().to_owned())).collect()
}

/// Name with a capital letter at the beginning of each word.
fn canonical(name: &str) -> String {
    let mut is_first = true;
    let letter = |c: char| {
        let c = if is_first { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
        is_first = c == '-';
        c
    };
    name.chars().map(letter).collect()
}

fn headers<'js>(ctx: &Ctx<'js>, head: &[u8]) -> Result<Object<'js>> {
    let mut joined: Vec<(String, String)> = Vec::new();
    for (name, value) in fields(head) {
        match joined.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => {
                values.push_str(", ");
                values.push_str(&value);
            }
            None => joined.push((name, value)),
        }
    }
    let object = Object::new(ctx.clone())?;
    joined.into_iter().try_for_each(|(name, value)| object.set(name, value))?;
    Ok(object)
}

/// Cookies of the fields Set-Cookie, by their names.
fn cookies<'js>(ctx: &Ctx<'js>, head: &[u8]) -> Result<Object<'js>> {
    let all = Object::new(ctx.clone())?;
    for (_, field) in fields(head).into_iter().filter(|(name, _)| name == "Set-Cookie") {
        let mut parts = field.split(';');
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { continue };
        let cookie = Object::new(ctx.clone())?;
        cookie.set("name", name.trim())?;
        cookie.set("value", value.trim())?;
        let (mut domain, mut path, mut expires, mut max_age, mut secure, mut http_only) =
            ("", "", "", 0.0, false, false);
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match name.trim().to_ascii_lowercase().as_str() {
                "domain" => domain = value,
                "path" => path = value,
                "expires" => expires = value,
                "max-age" => max_age = value.parse::<f64>().unwrap_or(0.0),
                "secure" => secure = true,
                "httponly" => http_only = true,
                _ => {}
            }
        }
        cookie.set("domain", domain)?;
        cookie.set("path", path)?;
        cookie.set("expires", milliseconds_of(ctx, expires)?)?;
        cookie.set("max_age", max_age)?;
        cookie.set("secure", secure)?;
        cookie.set("http_only", http_only)?;
        let list = match all.get::<_, Option<Array<'js>>>(name.trim()) {
            Ok(Some(list)) => list,
            _ => {
                let list = Array::new(ctx.clone())?;
                all.set(name.trim(), list.clone())?;
                list
            }
        };
        list.set(list.len(), cookie)?;
    }
    Ok(all)
}

/// Time of a date of HTTP in milliseconds; 0 for what is none.
fn milliseconds_of(ctx: &Ctx<'_>, date: &str) -> Result<f64> {
    if date.is_empty() {
        return Ok(0.0);
    }
    let dates: Object<'_> = ctx.globals().get("Date")?;
    let parse: Function<'_> = dates.get("parse")?;
    let time: f64 = parse.call((date,))?;
    Ok(if time.is_finite() { time } else { 0.0 })
}

fn body<'js>(ctx: &Ctx<'js>, result: &HttpResult) -> Result<Value<'js>> {
    match &result.end {
        HttpEnd::Response(_, _, Some(body)) if result.request.is_binary => {
            ArrayBuffer::new_copy(ctx.clone(), body).map(ArrayBuffer::into_value)
        }
        // Invalid UTF-8 is shown as such, and not lost without a sign.
        HttpEnd::Response(_, _, Some(body)) => (*String::from_utf8_lossy(body)).into_js(ctx),
        HttpEnd::Response(_, _, None) | HttpEnd::Failed(..) => Ok(Value::new_null(ctx.clone())),
    }
}

fn timings<'js>(ctx: &Ctx<'js>, result: &HttpResult) -> Result<Object<'js>> {
    let ms = |time: Nanos| time.0 as f64 / 1e6;
    let times = result.times;
    let object = Object::new(ctx.clone())?;
    object.set("blocked", ms(times.connect))?;
    object.set("looking_up", 0)?;
    object.set("connecting", ms(times.transport))?;
    object.set("tls_handshaking", ms(times.handshake))?;
    object.set("sending", ms(times.sending))?;
    object.set("waiting", ms(times.first_byte - times.sending))?;
    object.set("receiving", ms(times.service - times.first_byte.min(times.service)))?;
    object.set("duration", ms(times.service))?;
    Ok(object)
}

fn ocsp<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    for name in ["produced_at", "this_update", "next_update", "revoked_at"] {
        object.set(name, 0)?;
    }
    object.set("revocation_reason", "")?;
    object.set("status", "unknown")?;
    Ok(object)
}

/// The request as it was sent last.
fn request<'js>(ctx: &Ctx<'js>, result: &HttpResult) -> Result<Object<'js>> {
    let sent = &result.request;
    let object = Object::new(ctx.clone())?;
    object.set("method", &*result.method)?;
    object.set("url", result.url.to_string())?;
    let headers = Object::new(ctx.clone())?;
    for (name, value) in &sent.headers {
        headers.set(canonical(name), vec![value.clone().unwrap_or_default()])?;
    }
    object.set("headers", headers)?;
    object.set("body", &*String::from_utf8_lossy(sent.body.as_deref().unwrap_or_default()))?;
    let cookies = Object::new(ctx.clone())?;
    for cookie in &sent.cookies {
        let entry = Object::new(ctx.clone())?;
        entry.set("name", cookie.name.as_str())?;
        entry.set("value", cookie.value.as_str())?;
        entry.set("replace", cookie.replaces)?;
        cookies.set(cookie.name.as_str(), vec![entry])?;
    }
    object.set("cookies", cookies)?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_head_are_as_k6_shows_them() {
        let head = b"HTTP/2 200 \r\nset-cookie: a=1\r\nX-a-B:c: d \r\n: x\r\n\r\n";
        assert_eq!((protocol(head), status_text(head)), ("HTTP/2.0".to_owned(), "200 ".to_owned()));
        assert_eq!(status_text(b"HTTP/1.1 404 Not Found\r\n\r\n"), "404 Not Found");
        let named = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(fields(head), [named("Set-Cookie", "a=1"), named("X-A-B", "c: d")]);
        assert_eq!((protocol(b""), status_text(b"")), (String::new(), String::new()));
    }
}
