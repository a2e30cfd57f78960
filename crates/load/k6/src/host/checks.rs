//! Checks and groups.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::convert::Coerced;
use rquickjs::function::Opt;
use rquickjs::{Ctx, Exception, FromJs as _, Object, Result, Value};
use weir_machine::clock;

use super::request_arguments::{pairs, text};
use super::user_of;
use crate::metrics::registry::BuiltIn;

/// Counts the results of functions on a value: `check(value, sets, tags)`; whether all have passed.
pub(super) fn check<'js>(ctx: Ctx<'js>, value: Value<'js>, sets: Value<'js>, tags: Opt<Value<'js>>) -> Result<bool> {
    let sets = sets.as_object().ok_or_else(|| {
        Exception::throw_type(&ctx, "check() takes a value, and an object of functions by the names of checks")
    })?;
    let user = user_of(&ctx)?;
    let tags = match &tags.0 {
        Some(tags) => pairs(&ctx, tags)?,
        None => Vec::new(),
    };
    let count = |name: &str, has_passed: bool| {
        let has_tag = |tag: &str, value: &str| (tag == "check" && value == name) || user.has_tag(&tags, tag, value);
        user.metrics.add_check(&user.group.borrow(), name, has_passed, &has_tag);
    };
    let mut all = true;
    for entry in sets.props::<String, Value<'js>>() {
        let (name, test) = entry?;
        match outcome(&ctx, &name, test, &value) {
            Ok(has_passed) => {
                count(&name, has_passed);
                all &= has_passed;
            }
            Err(error) => {
                count(&name, false);
                return Err(error);
            }
        }
    }
    Ok(all)
}

fn outcome<'js>(ctx: &Ctx<'js>, name: &str, test: Value<'js>, value: &Value<'js>) -> Result<bool> {
    let result = match test.as_function() {
        Some(test) => test.call((value.clone(),))?,
        None => test,
    };
    if let Some(object) = result.as_object() {
        let then: Value<'js> = object.get("then")?;
        if then.is_function() {
            let why = format!("the check '{name}' returns a promise; await the value before check()");
            return Err(Exception::throw_type(ctx, &why));
        }
        return Ok(true);
    }
    Ok(Coerced::<bool>::from_js(ctx, result)?.0)
}

/// Calls a function in a group: `group(name, call)`.
pub(super) fn group<'js>(ctx: Ctx<'js>, name: Value<'js>, call: Opt<Value<'js>>) -> Result<Value<'js>> {
    let thrown = |why: &str| Exception::throw_type(&ctx, why);
    let call = call.0.as_ref().and_then(Value::as_function).ok_or_else(|| thrown("group() needs a function"))?;
    let constructor: Object<'js> = call.get("constructor")?;
    if constructor.get::<_, String>("name")? == "AsyncFunction" {
        return Err(thrown("group() does not take async functions"));
    }
    let name = text(&ctx, name)?;
    if name.contains("::") {
        return Err(thrown(&format!("invalid group name '{name}'; leave out '::'")));
    }
    let user = user_of(&ctx)?;
    let outer = user.group.borrow().clone();
    *user.group.borrow_mut() = format!("{outer}::{name}");
    let begun = clock::monotonic();
    let result = call.call(());
    let took_ms = (clock::monotonic() - begun).0 as f64 / 1e6;
    let has_tag = |name: &str, value: &str| user.has_tag(&[], name, value);
    user.metrics.add_all(&[(BuiltIn::GroupDuration as usize, took_ms)], &has_tag);
    *user.group.borrow_mut() = outer;
    result
}
