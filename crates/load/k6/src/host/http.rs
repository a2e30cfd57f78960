//! Arguments of requests, and their results as a script's modules take them.
#![allow(unsafe_code, reason = "bytes of buffers are copied while no script runs")]
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use std::borrow::Cow;

use rquickjs::convert::Coerced;
use rquickjs::function::{FromParam, FromParams as _, Opt, ParamRequirement, ParamsAccessor};
use rquickjs::module::Exports;
use rquickjs::{Array, ArrayBuffer, Ctx, Exception, FromJs as _, Function, Object, Result, TypedArray, Value};
use weir_base::Nanos;
use weir_request::url::HttpUrl;

use super::exchange::{ExpectedStatuses, HttpEnd, HttpRequest, HttpResult};
use super::state::{Pause, Phase};
use super::{UserState, user_of};

/// Default timeout of a request, as k6 has it.
const DEFAULT_TIMEOUT: Nanos = Nanos(60_000_000_000);

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("send", Function::new(ctx.clone(), send)?)?;
    exports.export("sendLater", Function::new(ctx.clone(), send_later)?)?;
    exports.export("result", Function::new(ctx.clone(), result)?)?;
    exports.export("finished", Function::new(ctx.clone(), finished)?)?;
    exports.export("awaitRequest", Function::new(ctx.clone(), await_request)?)?;
    exports.export("sleep", Function::new(ctx.clone(), sleep)?)?;
    exports.export("parseUrl", Function::new(ctx.clone(), parse_url)?)?;
    Ok(())
}

/// Arguments of a request: `(method, url, body, headers, options)`, of which the last two may be left out.
struct SendArguments<'js> {
    method: String,
    url: String,
    body: Value<'js>,
    headers: Option<Array<'js>>,
    options: Option<Object<'js>>,
}

type RequestParams<'js> = (String, String, Value<'js>, Opt<Option<Array<'js>>>, Opt<Option<Object<'js>>>);

impl<'js> FromParam<'js> for SendArguments<'js> {
    fn param_requirement() -> ParamRequirement {
        RequestParams::param_requirements()
    }

    fn from_param<'a>(params: &mut ParamsAccessor<'a, 'js>) -> Result<Self> {
        let (method, url, body, headers, options) = RequestParams::from_params(params)?;
        Ok(Self { method, url, body, headers: headers.0.flatten(), options: options.0.flatten() })
    }
}

/// Sends a request and waits for its end.
fn send<'js>(ctx: Ctx<'js>, arguments: SendArguments<'js>) -> Result<Array<'js>> {
    let key = send_later(ctx.clone(), arguments)?;
    let user = user_of(&ctx)?;
    loop {
        let result = user.exchanges.borrow_mut().take(key);
        if let Some(result) = result {
            return result_array(&ctx, *result);
        }
        user.pause(&ctx, Pause::Await(Nanos::NEVER), "a request")?;
    }
}

/// Adds a request that is sent as soon as the script waits; returns its key.
fn send_later<'js>(ctx: Ctx<'js>, arguments: SendArguments<'js>) -> Result<u32> {
    let user = user_of(&ctx)?;
    let SendArguments { method, url, body, headers, options } = arguments;
    let request = request_of(&ctx, &user, (method.into(), &url), body_bytes(&body), headers, options)?;
    Ok(user.exchanges.borrow_mut().add(request))
}

/// Request of a user, by its arguments.
pub(super) fn request_of<'js>(
    ctx: &Ctx<'js>,
    user: &UserState,
    (method, url): (Cow<'static, str>, &str),
    body: Option<Vec<u8>>,
    headers: Option<Array<'js>>,
    options: Option<Object<'js>>,
) -> Result<HttpRequest> {
    let mut request = new_request(ctx, user, method, url)?;
    (request.headers, request.body) = (header_fields(headers)?, body);
    if let Some(options) = options {
        apply(&mut request, &options)?;
    }
    Ok(request)
}

/// Request of a user as it is by default.
pub(super) fn new_request(
    ctx: &Ctx<'_>,
    user: &UserState,
    method: Cow<'static, str>,
    url: &str,
) -> Result<HttpRequest> {
    if user.phase.get() == Phase::Init {
        return Err(Exception::throw_type(ctx, "a request is not available in the init context"));
    }
    let url = user.script.absolute(url).map_err(|why| Exception::throw_type(ctx, &format!("'{url}': {why}")))?;
    Ok(HttpRequest {
        method,
        url,
        name: None,
        headers: Vec::new(),
        body: None,
        timeout: DEFAULT_TIMEOUT,
        max_redirects: user.script.options.max_redirects,
        jar: 0,
        expected: ExpectedStatuses::Usual,
        discards_body: user.script.options.discards_bodies,
        is_binary: false,
        is_call: false,
        is_stream: false,
        channel: 0,
        has_digest: false,
        throws: false,
        cookies: Vec::new(),
        tags: Vec::new(),
    })
}

/// Result of a request, if it has ended: `result(key)`.
fn result<'js>(ctx: Ctx<'js>, key: u32) -> Result<Option<Array<'js>>> {
    let result = user_of(&ctx)?.exchanges.borrow_mut().take(key);
    result.map(|result| result_array(&ctx, *result)).transpose()
}

/// Keys of requests that have ended, and whose results were not taken.
pub(super) fn finished(ctx: Ctx<'_>) -> Result<Vec<u32>> {
    Ok(user_of(&ctx)?.exchanges.borrow().finished())
}

/// Waits until a request has ended.
pub(super) fn await_request(ctx: Ctx<'_>) -> Result<()> {
    let user = user_of(&ctx)?;
    user.pause(&ctx, Pause::Await(Nanos::NEVER), "a request").map(drop)
}

/// Takes the options of a request.
fn apply(request: &mut HttpRequest, options: &Object<'_>) -> Result<()> {
    request.name = options.get("name")?;
    if let Some(timeout_ms) = options.get::<_, Option<f64>>("timeout")? {
        request.timeout = Nanos((timeout_ms.clamp(0.001, 1e12) * 1e6) as u64);
    }
    if let Some(redirects) = options.get::<_, Option<u32>>("redirects")? {
        request.max_redirects = redirects;
    }
    if let Some(jar) = options.get::<_, Option<usize>>("jar")? {
        request.jar = jar;
    }
    if let Some(ranges) = options.get::<_, Option<Vec<u16>>>("expected")? {
        request.expected = match ranges.is_empty() {
            true => ExpectedStatuses::Any,
            false => ExpectedStatuses::Ranges(ranges.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()),
        };
    }
    if let Some(tags) = options.get::<_, Option<Vec<String>>>("tags")? {
        request.tags = tags.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    }
    if let Some(channel) = options.get::<_, Option<u32>>("channel")? {
        request.channel = channel;
        request.is_call = true;
        request.is_stream = options.get::<_, Option<bool>>("isStream")?.unwrap_or(false);
        if request.is_stream && options.get::<_, Option<f64>>("timeout")?.is_none() {
            request.timeout = Nanos::NEVER;
        }
    }
    let kind: Option<String> = options.get("responseType")?;
    match kind.as_deref() {
        Some("none") => request.discards_body = true,
        Some(_) => request.discards_body = false,
        None => {}
    }
    request.is_binary = kind.as_deref() == Some("binary");
    Ok(())
}

fn header_fields(headers: Option<Array<'_>>) -> Result<Vec<(String, Option<String>)>> {
    let Some(headers) = headers else { return Ok(Vec::new()) };
    let mut texts = headers.iter::<String>();
    let mut fields = Vec::with_capacity(headers.len() / 2);
    while let (Some(name), Some(value)) = (texts.next(), texts.next()) {
        fields.push((name?, Some(value?)));
    }
    Ok(fields)
}

/// Bytes of a body: a text, a buffer or a view of one.
pub(super) fn body_bytes(body: &Value<'_>) -> Option<Vec<u8>> {
    if let Some(text) = body.as_string() {
        return text.to_string().ok().map(String::into_bytes);
    }
    let object = body.as_object()?;
    if let Some(buffer) = ArrayBuffer::from_object(object.clone()) {
        // SAFETY: no script runs while they are copied.
        return unsafe { buffer.as_bytes() }.map(<[u8]>::to_vec);
    }
    if let Ok(view) = TypedArray::<u8>::from_object(object.clone()) {
        // SAFETY: as above.
        return unsafe { view.as_bytes() }.map(<[u8]>::to_vec);
    }
    // Numbers of other sizes, and DataView.
    let buffer = ArrayBuffer::from_object(object.get("buffer").ok()?)?;
    let (start, length): (usize, usize) = (object.get("byteOffset").ok()?, object.get("byteLength").ok()?);
    // SAFETY: as above.
    let bytes = unsafe { buffer.as_bytes() }?;
    bytes.get(start..start.checked_add(length)?).map(<[u8]>::to_vec)
}

/// A result as an array: status, URL, head, body, error, its code, method, times in milliseconds (whole, first byte,
/// connection), protocol.
fn result_array<'js>(ctx: &Ctx<'js>, result: HttpResult) -> Result<Array<'js>> {
    let array = Array::new(ctx.clone())?;
    let times = result.times;
    let ms = |time: Nanos| time.0 as f64 / 1e6;
    let error_code = result.error_code();
    array.set(1, result.url.to_string())?;
    match result.end {
        HttpEnd::Response(status, head, body) => {
            array.set(0, status)?;
            array.set(2, String::from_utf8_lossy(&head).into_owned())?;
            match body {
                None => array.set(3, Value::new_null(ctx.clone()))?,
                Some(body) if result.request.is_binary => array.set(3, ArrayBuffer::new(ctx.clone(), body)?)?,
                // Invalid UTF-8 is shown as such, and not lost without a sign.
                Some(body) => match String::from_utf8(body) {
                    Ok(text) => array.set(3, text)?,
                    Err(error) => array.set(3, String::from_utf8_lossy(error.as_bytes()).into_owned())?,
                },
            }
            array.set(4, "")?;
            array.set(5, error_code)?;
        }
        HttpEnd::Failed(_, why) => {
            array.set(0, 0)?;
            array.set(2, "")?;
            array.set(3, Value::new_null(ctx.clone()))?;
            array.set(4, why)?;
            array.set(5, error_code)?;
        }
    }
    array.set(6, &*result.method)?;
    array.set(7, ms(times.service))?;
    array.set(8, ms(times.first_byte))?;
    array.set(9, ms(times.connect))?;
    Ok(array)
}

/// Waits: `sleep(seconds)`.
pub(super) fn sleep<'js>(ctx: Ctx<'js>, seconds: Opt<Value<'js>>) -> Result<()> {
    let user = user_of(&ctx)?;
    let seconds = match seconds.0 {
        Some(seconds) => Coerced::<f64>::from_js(&ctx, seconds)?.0,
        None => 0.0,
    };
    // NaN becomes 0.
    let wait = Nanos((seconds.clamp(0.0, 3e9) * 1e9) as u64);
    user.pause(&ctx, Pause::WaitUntil(user.now.get() + wait), "sleep()").map(drop)
}

/// Parts of a URL, or `undefined`: `[scheme, host, port, path and query]`.
fn parse_url<'js>(ctx: Ctx<'js>, text: String) -> Result<Value<'js>> {
    let Ok(url) = HttpUrl::parse(text.as_bytes()) else { return Ok(Value::new_undefined(ctx)) };
    let parts = Array::new(ctx.clone())?;
    parts.set(0, if url.is_tls() { "https" } else { "http" })?;
    parts.set(1, url.host())?;
    parts.set(2, url.port())?;
    parts.set(3, String::from_utf8_lossy(url.target()).into_owned())?;
    Ok(parts.into_value())
}
