//! Arguments of a request as scripts write them: URL, body and parameters.

use std::borrow::Cow;
use std::io::{self, Write as _};

use brotli::CompressorWriter;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use rquickjs::convert::Coerced;
use rquickjs::{Array, Ctx, Exception, FromJs as _, Function, Object, Result, Value};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use weir_base::Nanos;

use super::UserState;
use super::exchange::{AUTHORIZATION, ExpectedStatuses, HttpRequest, SentCookie};
use super::http::{body_bytes, new_request};
use super::own_modules::call_exported;
use crate::options::duration;

/// Arguments of a request.
pub(super) struct RequestArguments<'js> {
    pub(super) method: Cow<'static, str>,
    /// A text, or what has a `url` as that of `http.url`.
    pub(super) target: Value<'js>,
    pub(super) body: Option<Value<'js>>,
    pub(super) params: Option<Value<'js>>,
}

impl<'js> RequestArguments<'js> {
    /// The request that they describe.
    ///
    /// # Errors
    /// An exception that names what is invalid.
    pub(super) fn read(self, ctx: &Ctx<'js>, user: &UserState) -> Result<HttpRequest> {
        let (address, name) = address(ctx, self.target)?;
        let mut request = new_request(ctx, user, self.method, &address)?;
        request.name = name;
        request.throws = user.script.options.throws;
        request.expected = user.default_expected.borrow().clone();
        let content_type = match self.body {
            Some(body) => read_body(ctx, &mut request, body)?,
            None => None,
        };
        let params = self.params.filter(|params| !params.is_undefined() && !params.is_null());
        if let Some(params) = params {
            let params = params.as_object().ok_or_else(|| Exception::throw_type(ctx, "params is not an object"))?;
            for entry in params.props::<String, Value<'js>>() {
                let (name, value) = entry?;
                read_param(ctx, &mut request, &name, value)?;
            }
        }
        if let Some(content_type) = content_type
            && !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        {
            request.headers.push(("Content-Type".to_owned(), Some(content_type)));
        }
        if !request.cookies.is_empty() {
            add_cookies(user, &mut request);
        }
        Ok(request)
    }
}

/// Whether a value is `undefined` or `null`.
fn is_absent(value: &Value<'_>) -> bool {
    value.is_undefined() || value.is_null()
}

/// Text of a value, as `String(value)`.
pub(super) fn text<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<String> {
    match value.as_string() {
        // What is no Unicode becomes U+FFFD.
        Some(text) => text.to_string().or_else(|_| well_formed(ctx, &value)),
        None => Coerced::<String>::from_js(ctx, value).map(|text| text.0),
    }
}

fn well_formed<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<String> {
    let global: Object<'js> = ctx.globals().get("String")?;
    let prototype: Object<'js> = global.get("prototype")?;
    let convert: Function<'js> = prototype.get("toWellFormed")?;
    convert.call((rquickjs::function::This(value.clone()),))
}

/// Names and values of an object as texts, but for those that are absent.
pub(super) fn pairs<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Vec<(String, String)>> {
    let Some(object) = value.as_object() else { return Ok(Vec::new()) };
    let mut pairs = Vec::new();
    for entry in object.props::<String, Value<'js>>() {
        let (name, value) = entry?;
        if !is_absent(&value) {
            pairs.push((name, text(ctx, value)?));
        }
    }
    Ok(pairs)
}

/// Text of a URL, and its name if it has one.
fn address<'js>(ctx: &Ctx<'js>, target: Value<'js>) -> Result<(String, Option<String>)> {
    let Some(object) = target.as_object() else { return Ok((text(ctx, target)?, None)) };
    let url: Value<'js> = object.get("url")?;
    if is_absent(&url) {
        return Ok((text(ctx, target)?, None));
    }
    let name: Value<'js> = object.get("name")?;
    let name = name.as_string().map(rquickjs::String::to_string).transpose()?;
    Ok((text(ctx, url)?, name))
}

/// Takes a body; its Content-Type, if it has one by itself.
fn read_body<'js>(ctx: &Ctx<'js>, request: &mut HttpRequest, body: Value<'js>) -> Result<Option<String>> {
    if is_absent(&body) {
        return Ok(None);
    }
    if body.is_string() {
        request.body = Some(text(ctx, body)?.into_bytes());
        return Ok(None);
    }
    let Some(object) = body.as_object() else {
        request.body = Some(text(ctx, body)?.into_bytes());
        return Ok(None);
    };
    // A buffer, or a view of one.
    if object.get::<_, Value<'js>>("byteLength")?.is_number()
        && let Some(bytes) = body_bytes(&body)
    {
        request.body = Some(bytes);
        return Ok(None);
    }
    if let Some(form) = plain_form(ctx, object)? {
        request.body = Some(form.into_bytes());
        return Ok(Some("application/x-www-form-urlencoded".to_owned()));
    }
    let encoded = Array::from_js(ctx, call_exported(ctx, ("weir:forms", "encoded"), vec![body])?)?;
    let (content, kind): (Value<'js>, Option<String>) = (encoded.get(0)?, encoded.get(1)?);
    request.body = if content.is_string() { Some(text(ctx, content)?.into_bytes()) } else { body_bytes(&content) };
    Ok(kind)
}

/// Form of an object whose values are texts, numbers and flags; `None` for others.
fn plain_form<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Result<Option<String>> {
    let mut form = String::new();
    for entry in object.props::<String, Value<'js>>() {
        let (name, value) = entry?;
        if value.is_object() || value.is_undefined() || value.is_symbol() {
            return Ok(None);
        }
        if !form.is_empty() {
            form.push('&');
        }
        escape_query(&name, &mut form);
        form.push('=');
        escape_query(&text(ctx, value)?, &mut form);
    }
    // An empty one may be anything: bytes have no names.
    Ok(Some(form).filter(|form| !form.is_empty()))
}

/// As Go's `url.QueryEscape`.
fn escape_query(text: &str, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => {
                out.push('%');
                out.push(char::from(DIGITS[usize::from(byte >> 4)]));
                out.push(char::from(DIGITS[usize::from(byte & 15)]));
            }
        }
    }
}

fn read_param<'js>(ctx: &Ctx<'js>, request: &mut HttpRequest, name: &str, value: Value<'js>) -> Result<()> {
    let invalid = |why: String| Err(Exception::throw_type(ctx, &why));
    if is_absent(&value) {
        // What is null judges nothing; other parameters are as if they were not there.
        if name == "responseCallback" && value.is_null() {
            request.expected = ExpectedStatuses::Any;
        }
        return Ok(());
    }
    match name {
        "headers" => {
            let headers = pairs(ctx, &value)?;
            request.headers.extend(headers.into_iter().map(|(name, value)| (name, Some(value))));
        }
        "tags" => {
            request.tags = pairs(ctx, &value)?;
            if let Some((_, name)) = request.tags.iter().find(|(name, _)| name == "name") {
                request.name = Some(name.clone());
            }
        }
        "timeout" => request.timeout = timeout(ctx, value)?,
        "redirects" => {
            let redirects = Coerced::<f64>::from_js(ctx, value)?.0;
            if redirects.is_nan() || redirects < 0.0 {
                return invalid(format!("redirects: {redirects} is not a number of redirects; write 0 for none"));
            }
            request.max_redirects = redirects.min(1000.0) as u32;
        }
        "jar" => {
            let number = value.as_object().and_then(|jar| jar.get::<_, Option<usize>>("number").ok().flatten());
            match number {
                Some(number) => request.jar = number,
                None => return invalid("jar: not a cookie jar; write new http.CookieJar()".to_owned()),
            }
        }
        "cookies" => request.cookies = cookies(ctx, &value)?,
        "responseType" => {
            let kind = text(ctx, value)?;
            request.discards_body = kind == "none";
            request.is_binary = kind == "binary";
        }
        "responseCallback" => request.expected = expected(ctx, &value)?,
        "throw" => request.throws = Coerced::<bool>::from_js(ctx, value)?.0,
        "auth" => match text(ctx, value)?.as_str() {
            "basic" => {}
            "digest" => {
                request.has_digest = true;
                // Not the one of the URL at once: it follows a challenge.
                request.headers.push((AUTHORIZATION.to_owned(), None));
            }
            other => {
                return invalid(format!(
                    "auth: '{other}' is not supported; write 'basic' or 'digest', or the header yourself"
                ));
            }
        },
        "compression" => compress(request, &text(ctx, value)?).or_else(invalid)?,
        _ => {}
    }
    Ok(())
}

/// Encodings that a body may be sent in.
const ENCODINGS: [&str; 4] = ["gzip", "deflate", "br", "zstd"];

/// Effort and window of brotli: the defaults of k6.
const BROTLI_QUALITY: u32 = 6;
const BROTLI_WINDOW_BITS: u32 = 22;
/// Size of the buffer of the brotli encoder.
const BROTLI_BUFFER_BYTES: usize = 4096;

/// Compresses a body by encodings, in their order.
fn compress(request: &mut HttpRequest, encodings: &str) -> std::result::Result<(), String> {
    let names: Vec<&str> = encodings.split(',').map(str::trim).collect();
    if let Some(other) = names.iter().find(|name| !ENCODINGS.contains(name)) {
        return Err(format!("compression: '{other}' is not supported; write 'gzip', 'deflate', 'br' or 'zstd'"));
    }
    let Some(mut body) = request.body.take() else { return Ok(()) };
    for name in &names {
        body = encoded(&body, name).map_err(|error| error.to_string())?;
    }
    request.body = Some(body);
    request.headers.push(("Content-Encoding".to_owned(), Some(names.join(", "))));
    Ok(())
}

/// A body in one of the [`ENCODINGS`].
fn encoded(body: &[u8], encoding: &str) -> io::Result<Vec<u8>> {
    match encoding {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(body)?;
            encoder.finish()
        }
        "br" => {
            let mut encoder =
                CompressorWriter::new(Vec::new(), BROTLI_BUFFER_BYTES, BROTLI_QUALITY, BROTLI_WINDOW_BITS);
            encoder.write_all(body)?;
            Ok(encoder.into_inner())
        }
        "zstd" => Ok(compress_to_vec(body, CompressionLevel::Fastest)),
        _ => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(body)?;
            encoder.finish()
        }
    }
}

fn timeout<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Nanos> {
    let given = text(ctx, value)?;
    let invalid =
        || Exception::throw_type(ctx, &format!("invalid timeout '{given}'; write milliseconds, or e.g. '10s'"));
    duration::parse(&given).map(|timeout| timeout.max(Nanos(1000))).ok_or_else(invalid)
}

fn cookies<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Vec<SentCookie>> {
    let Some(object) = value.as_object() else { return Ok(Vec::new()) };
    let mut cookies = Vec::new();
    for entry in object.props::<String, Value<'js>>() {
        let (name, value) = entry?;
        let (value, replaces) = match value.as_object() {
            Some(cookie) => {
                let replace: Value<'js> = cookie.get("replace")?;
                (cookie.get("value")?, replace.as_bool() != Some(false))
            }
            None => (value, true),
        };
        cookies.push(SentCookie { name, value: text(ctx, value)?, replaces });
    }
    Ok(cookies)
}

/// Adds the header of the cookies of a request. Those of the jar are sent beside them.
fn add_cookies(user: &UserState, request: &mut HttpRequest) {
    let mut header = Vec::new();
    if let Some(jar) = user.jars.borrow_mut().get_mut(request.jar) {
        jar.write_header(&request.url, weir_machine::clock::unix_s() as i64, &mut header);
    }
    let of_jar = String::from_utf8_lossy(&header).into_owned();
    let in_jar =
        |name: &str| of_jar.split("; ").any(|pair| pair.split_once('=').is_some_and(|(known, _)| known == name));
    let sent = request.cookies.iter().filter(|cookie| cookie.replaces || !in_jar(&cookie.name));
    let sent: Vec<String> = sent.map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
    if !sent.is_empty() {
        request.headers.push(("Cookie".to_owned(), Some(sent.join("; "))));
    }
}

/// Statuses of a response callback.
pub(super) fn expected<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<ExpectedStatuses> {
    if value.is_null() {
        return Ok(ExpectedStatuses::Any);
    }
    let ranges = value.as_object().and_then(|callback| callback.get::<_, Option<Vec<u16>>>("ranges").ok().flatten());
    let Some(ranges) = ranges else {
        return Err(Exception::throw_type(ctx, "a response callback is made by http.expectedStatuses(), or null"));
    };
    Ok(ExpectedStatuses::Ranges(ranges.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Body that Node decodes, as hexadecimal digits; `None` without Node.
    fn of_node(encoded: &[u8], call: &str) -> Option<String> {
        let program =
            format!("process.stdout.write(require('zlib').{call}(require('fs').readFileSync(0)).toString('hex'))");
        let command = Command::new("node").args(["-e", &program]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut node = command.ok()?;
        node.stdin.take().expect("piped").write_all(encoded).expect("written");
        let output = node.wait_with_output().expect("an end");
        assert!(output.status.success(), "{call}");
        Some(String::from_utf8(output.stdout).expect("hexadecimal"))
    }

    #[test]
    fn bodies_are_decoded_by_others() {
        let body: Vec<u8> = (0..100_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
        let hex: String = body.iter().map(|byte| format!("{byte:02x}")).collect();
        for (encoding, call) in [("gzip", "gunzipSync"), ("deflate", "inflateSync"), ("br", "brotliDecompressSync")] {
            let encoded = encoded(&body, encoding).expect("memory");
            assert!(encoded.len() < body.len() / 2, "{encoding}: {}", encoded.len());
            match of_node(&encoded, call) {
                Some(decoded) => assert!(decoded == hex, "{encoding}"),
                None => println!("skipped: no node"),
            }
        }
    }

    #[test]
    fn texts_of_forms_are_escaped_as_in_go() {
        let mut out = String::new();
        escape_query("a b&=/ü~-_.*", &mut out);
        assert_eq!(out, "a+b%26%3D%2F%C3%BC~-_.%2A");
    }
}
