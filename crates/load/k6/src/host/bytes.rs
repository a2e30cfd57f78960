//! Texts and bytes.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use rquickjs::module::Exports;
use rquickjs::{ArrayBuffer, Ctx, Exception, Function, Result, Value};

use super::http::body_bytes;

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("base64Decode", Function::new(ctx.clone(), base64_decode)?)?;
    exports.export("base64Encode", Function::new(ctx.clone(), base64_encode)?)?;
    exports.export("hex", Function::new(ctx.clone(), hex)?)?;
    exports.export("utf8Decode", Function::new(ctx.clone(), utf8_decode)?)?;
    exports.export("utf8Encode", Function::new(ctx.clone(), utf8_encode)?)?;
    Ok(())
}

fn bytes_of(ctx: &Ctx<'_>, value: &Value<'_>) -> Result<Vec<u8>> {
    body_bytes(value).ok_or_else(|| Exception::throw_type(ctx, "neither a text nor bytes"))
}

/// `base64Encode(text or bytes, kind)`; kinds: std, rawstd, url, rawurl.
fn base64_encode<'js>(ctx: Ctx<'js>, value: Value<'js>, kind: String) -> Result<String> {
    let bytes = bytes_of(&ctx, &value)?;
    Ok(match kind.as_str() {
        "rawstd" => STANDARD_NO_PAD.encode(bytes),
        "url" => URL_SAFE.encode(bytes),
        "rawurl" => URL_SAFE_NO_PAD.encode(bytes),
        _ => STANDARD.encode(bytes),
    })
}

/// `base64Decode(text, kind)`.
fn base64_decode<'js>(ctx: Ctx<'js>, text: String, kind: String) -> Result<ArrayBuffer<'js>> {
    let decoded = match kind.as_str() {
        "rawstd" => STANDARD_NO_PAD.decode(text),
        "url" => URL_SAFE.decode(text),
        "rawurl" => URL_SAFE_NO_PAD.decode(text),
        _ => STANDARD.decode(text),
    };
    let bytes = decoded.map_err(|error| Exception::throw_type(&ctx, &format!("no base64: {error}")))?;
    ArrayBuffer::new(ctx.clone(), bytes)
}

/// Bytes in hexadecimal digits.
fn hex<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<String> {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let bytes = bytes_of(&ctx, &value)?;
    Ok(bytes.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]).collect())
}

/// Text of bytes; what is no UTF-8 becomes U+FFFD.
fn utf8_decode<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<String> {
    Ok(String::from_utf8_lossy(&bytes_of(&ctx, &value)?).into_owned())
}

/// Bytes of a text.
fn utf8_encode<'js>(ctx: Ctx<'js>, text: String) -> Result<ArrayBuffer<'js>> {
    ArrayBuffer::new(ctx, text.into_bytes())
}
