//! Digests, keyed digests, AES and random bytes.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::function::Opt;
use rquickjs::module::Exports;
use rquickjs::{ArrayBuffer, Ctx, Exception, Function, Object, Result, Value};

use super::http::body_bytes;
use crate::ciphers::{AesMode, decrypt, encrypt};
use crate::digests::HashKind;

/// Most random bytes of a call.
const MAX_RANDOM_BYTES: usize = 64 * 1024 * 1024;

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("aes", Function::new(ctx.clone(), aes)?)?;
    exports.export("digest", Function::new(ctx.clone(), digest)?)?;
    exports.export("randomBytes", Function::new(ctx.clone(), random_bytes)?)?;
    Ok(())
}

fn bytes_of(ctx: &Ctx<'_>, value: &Value<'_>) -> Result<Vec<u8>> {
    body_bytes(value).ok_or_else(|| Exception::throw_type(ctx, "neither a text nor bytes"))
}

/// Digest of a text or bytes: `digest(algorithm, input, key)`; that of HMAC with a key.
fn digest<'js>(ctx: Ctx<'js>, algorithm: String, input: Value<'js>, key: Opt<Value<'js>>) -> Result<ArrayBuffer<'js>> {
    let kind = HashKind::named(&algorithm).map_err(|why| Exception::throw_type(&ctx, &why))?;
    let input = bytes_of(&ctx, &input)?;
    let made = match key.0.filter(|key| !key.is_undefined()) {
        None => kind.digest(&[&input]),
        Some(key) => kind.keyed(&bytes_of(&ctx, &key)?, &input),
    };
    ArrayBuffer::new(ctx.clone(), made)
}

/// AES: `aes(decrypts, mode, key, iv, input, { extra, counterBits })`; modes: CBC, CTR, GCM.
fn aes<'js>(
    ctx: Ctx<'js>,
    decrypts: bool,
    mode: String,
    key: Value<'js>,
    iv: Value<'js>,
    input: Value<'js>,
    settings: Object<'js>,
) -> Result<ArrayBuffer<'js>> {
    let mode = match mode.as_str() {
        "CBC" => AesMode::Cbc,
        "CTR" => AesMode::Ctr(settings.get::<_, Option<u32>>("counterBits")?.unwrap_or(64)),
        _ => {
            let extra: Value<'_> = settings.get("extra")?;
            AesMode::Gcm(if extra.is_undefined() { Vec::new() } else { bytes_of(&ctx, &extra)? })
        }
    };
    let (key, iv, input) = (bytes_of(&ctx, &key)?, bytes_of(&ctx, &iv)?, bytes_of(&ctx, &input)?);
    let made = if decrypts { decrypt(&mode, &key, &iv, input) } else { encrypt(&mode, &key, &iv, input) };
    ArrayBuffer::new(ctx.clone(), made.map_err(|why| Exception::throw_type(&ctx, &why))?)
}

/// Random bytes of the system: `randomBytes(number)`.
fn random_bytes(ctx: Ctx<'_>, count: usize) -> Result<ArrayBuffer<'_>> {
    if count > MAX_RANDOM_BYTES {
        return Err(Exception::throw_range(&ctx, &format!("more than {MAX_RANDOM_BYTES} random bytes")));
    }
    let mut bytes = vec![0; count];
    let filled = ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes);
    filled.map_err(|_| Exception::throw_internal(&ctx, "no random bytes from the system"))?;
    ArrayBuffer::new(ctx.clone(), bytes)
}
