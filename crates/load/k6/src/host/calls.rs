//! Calls of gRPC: messages from JSON and back, and the certificates of clients.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use std::path::Path;

use rquickjs::function::Opt;
use rquickjs::module::Exports;
use rquickjs::{ArrayBuffer, Ctx, Exception, Function, Object, Result, Value};
use weir_net::tls::PemTexts;

use super::http::body_bytes;
use super::user_of;
use crate::shared_schemas::SchemaSource;

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("grpcChannel", Function::new(ctx.clone(), channel)?)?;
    exports.export("grpcDecode", Function::new(ctx.clone(), decode)?)?;
    exports.export("grpcEncode", Function::new(ctx.clone(), encode)?)?;
    exports.export("grpcSchemas", Function::new(ctx.clone(), schemas)?)?;
    Ok(())
}

/// Number of the certificates of a client: `grpcChannel(cacerts, cert, key)`, PEM texts.
fn channel(ctx: Ctx<'_>, cacerts: Vec<String>, cert: String, key: String) -> Result<u32> {
    let added = user_of(&ctx)?.script.file.channels.add(PemTexts { cacerts, cert, key });
    added.map_err(|why| Exception::throw_type(&ctx, &format!("client.connect(): tls: {why}")))
}

/// Number of descriptions of services: `grpcSchemas(url, files, folders, options)`; without files those of a server.
/// Options: `set`, the name of a descriptor set; `channel` and `headers` of the questions to the server.
fn schemas<'js>(
    ctx: Ctx<'js>,
    url: String,
    files: Vec<String>,
    folders: Vec<String>,
    options: Opt<Object<'js>>,
) -> Result<usize> {
    let user = user_of(&ctx)?;
    let base = Path::new(&user.script.file.main).parent().unwrap_or(Path::new(""));
    let own = |path: &String| base.join(path.strip_prefix("file://").unwrap_or(path));
    let mut folders: Vec<_> = folders.iter().map(own).collect();
    if folders.is_empty() && !files.is_empty() {
        folders.push(base.to_owned());
    }
    let mut source = SchemaSource { url, files, folders, ..SchemaSource::default() };
    if let Some(options) = options.0 {
        source.set = options.get::<_, Option<String>>("set")?.as_ref().map(own);
        source.headers = options.get::<_, Option<Vec<String>>>("headers")?.unwrap_or_default();
        let channel = options.get::<_, Option<u32>>("channel")?.unwrap_or(0);
        source.tls = user.script.file.channels.get(channel);
    }
    source.is_insecure = user.script.options.skips_tls_verification;
    let added = user.script.file.schemas.add(source, &user.script.load);
    added.map_err(|why| Exception::throw_type(&ctx, &why))
}

/// Body of a call: `grpcEncode(schemas, method, json)`.
fn encode<'js>(ctx: Ctx<'js>, schemas: usize, method: String, json: String) -> Result<ArrayBuffer<'js>> {
    let user = user_of(&ctx)?;
    let encoded = user.script.file.schemas.get(schemas).and_then(|schemas| schemas.encode(&method, &json, &[]));
    let body = encoded.map_err(|why| Exception::throw_type(&ctx, &format!("{method}: {why}")))?;
    ArrayBuffer::new_copy(ctx.clone(), body)
}

/// Messages of a response as JSON, one line each: `grpcDecode(schemas, method, body, encoding)`.
fn decode<'js>(ctx: Ctx<'js>, schemas: usize, method: String, body: Value<'js>, encoding: String) -> Result<String> {
    let user = user_of(&ctx)?;
    let body = body_bytes(&body).unwrap_or_default();
    let schemas = user.script.file.schemas.get(schemas);
    let decoded = schemas.and_then(|schemas| schemas.decode_whole(&method, &body, encoding.as_bytes()));
    decoded.map_err(|why| Exception::throw_type(&ctx, &format!("{method}: {why}")))
}
