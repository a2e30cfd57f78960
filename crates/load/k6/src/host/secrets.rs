//! Secrets of a script.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::function::Opt;
use rquickjs::module::Exports;
use rquickjs::{Ctx, Exception, Function, Result};

use super::user_of;

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("secret", Function::new(ctx.clone(), secret)?)?;
    exports.export("secretSource", Function::new(ctx.clone(), secret_source)?)?;
    Ok(())
}

/// A secret of a source, or of the default one: `secret(key, source)`.
fn secret(ctx: Ctx<'_>, key: String, source: Opt<Option<String>>) -> Result<String> {
    let user = user_of(&ctx)?;
    let found = user.script.file.secrets.get(source.0.flatten().as_deref(), &key);
    found.map(str::to_owned).map_err(|why| Exception::throw_message(&ctx, &why))
}

/// Checks that there is a source of this name: `secretSource(name)`.
fn secret_source(ctx: Ctx<'_>, name: String) -> Result<()> {
    if user_of(&ctx)?.script.file.secrets.has(&name) {
        return Ok(());
    }
    Err(Exception::throw_message(&ctx, &format!("no secret source '{name}'; write e.g. file=FILE,name={name}")))
}
