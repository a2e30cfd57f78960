//! Exports of weir's own modules, for functions in Rust.

use rquickjs::function::Args;
use rquickjs::{Ctx, FromJs as _, Function, Module, Object, Result, Value};

use crate::modules::OWN_IMPORT;

/// Export of a module of weir, which is run if it has not.
pub(super) fn exported<'js>(ctx: &Ctx<'js>, module: &str, name: &str) -> Result<Value<'js>> {
    let exports: Object<'js> = Module::import(ctx, format!("{OWN_IMPORT}{module}"))?.finish()?;
    exports.get(name)
}

/// Calls an export of a module of weir.
///
/// # Errors
/// Its exception.
pub(super) fn call_exported<'js>(
    ctx: &Ctx<'js>,
    (module, name): (&str, &str),
    values: Vec<Value<'js>>,
) -> Result<Value<'js>> {
    let function = Function::from_js(ctx, exported(ctx, module, name)?)?;
    let mut args = Args::new(ctx.clone(), values.len());
    args.push_args(values)?;
    function.call_arg(args)
}
