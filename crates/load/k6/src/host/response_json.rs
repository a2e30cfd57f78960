//! `response.json()`: the body as JSON, or a part of it.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::function::{Opt, This};
use rquickjs::{Ctx, Exception, Function, IntoJs as _, Object, Result, Value};

use super::exchange::{HttpEnd, HttpResult};
use super::json_part::json_part;
use super::own_modules::call_exported;
use super::request_arguments::text;
use super::response_class::{field, keep, kept, with_result};
use super::response_fields::ResponseField;

/// The body as JSON, or the value at a path as gjson has it: `response.json(path)`.
pub(super) fn json<'js>(ctx: Ctx<'js>, This(response): This<Value<'js>>, path: Opt<Value<'js>>) -> Result<Value<'js>> {
    let path = match path.0.filter(|path| !path.is_undefined()) {
        Some(path) => Some(text(&ctx, path)?),
        None => None,
    };
    let whole = match kept(&ctx, &response, ResponseField::Json) {
        Some(whole) => whole,
        None => {
            if let Some(part) = path.as_deref().and_then(|path| unparsed_part(&ctx, &response, path)) {
                return part;
            }
            let whole = parsed(&ctx, &response)?;
            keep(&ctx, &response, ResponseField::Json, &whole);
            whole
        }
    };
    let Some(path) = path else { return Ok(whole) };
    if is_simple(&path) {
        return path.split('.').try_fold(whole, |value, name| part(&ctx, value, name));
    }
    call_exported(&ctx, ("weir:paths", "picked"), vec![whole, path.into_js(&ctx)?])
}

/// The value at a path of a body that the script has not changed, without objects for the rest of it; None if it takes all
/// of the body to say what it is, or to say what is wrong with it.
fn unparsed_part<'js>(ctx: &Ctx<'js>, response: &Value<'js>, path: &str) -> Option<Result<Value<'js>>> {
    if !is_simple(path) || path.split('.').any(|name| name == "length") {
        return None;
    }
    if kept(ctx, response, ResponseField::Body).is_some() {
        return None;
    }
    let names: Vec<&str> = path.split('.').collect();
    let part = with_result(ctx, response, |result| {
        let part = json_part(text_of(result)?, &names).ok()?;
        Some(part.map(|part| part.as_bytes().to_vec()))
    });
    Some(match part.flatten()? {
        Some(part) => ctx.json_parse(part),
        None => Ok(Value::new_undefined(ctx.clone())),
    })
}

/// Body of a response, if it is text without the zeros that end one for the interpreter.
fn text_of(result: &HttpResult) -> Option<&str> {
    match &result.end {
        HttpEnd::Response(_, _, Some(body)) if !result.request.is_binary && !body.contains(&0) => {
            std::str::from_utf8(body).ok()
        }
        _ => None,
    }
}

/// Whether a path has names and numbers alone.
fn is_simple(path: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | '/' | ':' | '$');
    path.split('.').all(|name| !name.is_empty() && name != "__proto__" && name.chars().all(is_plain))
}

fn part<'js>(ctx: &Ctx<'js>, value: Value<'js>, name: &str) -> Result<Value<'js>> {
    let nothing = || Ok(Value::new_undefined(ctx.clone()));
    let Some(object) = value.as_object() else { return nothing() };
    let found: Value<'js> = match value.as_array().filter(|_| name != "length") {
        Some(array) => match name.parse::<usize>() {
            Ok(index) if index < array.len() => array.get(index)?,
            _ => return nothing(),
        },
        None => object.get(name)?,
    };
    // JSON has no functions: it is one of the prototype.
    if found.is_function() { nothing() } else { Ok(found) }
}

fn parsed<'js>(ctx: &Ctx<'js>, response: &Value<'js>) -> Result<Value<'js>> {
    let no_text = || Exception::throw_type(ctx, "json() needs a body that is text; leave out responseType");
    // What the script has set counts, too.
    let body = match kept(ctx, response, ResponseField::Body) {
        Some(body) => body,
        None => {
            let bytes = with_result(ctx, response, |result| text_of(result).map(|text| text.as_bytes().to_vec()));
            if let Some(bytes) = bytes.flatten() {
                return ctx.json_parse(bytes);
            }
            let body = field(ctx, response, ResponseField::Body)?;
            body.ok_or_else(|| Exception::throw_type(ctx, "json() is a method of responses"))?
        }
    };
    if body.is_null() || body.is_undefined() {
        return Err(Exception::throw_type(ctx, "the body is null so we can't transform it to JSON"));
    }
    let body = body.as_string().ok_or_else(no_text)?;
    let globals: Object<'js> = ctx.globals().get("JSON")?;
    let parse: Function<'js> = globals.get("parse")?;
    parse.call((body.clone(),))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_names_are_simple() {
        for path in ["a", "a.b.0", "a-b_c"] {
            assert!(is_simple(path), "{path}");
        }
        for path in ["", "a..b", "a.#", "a\\.b", "__proto__", "a.#(x==1).b", "a|b", "@this"] {
            assert!(!is_simple(path), "{path}");
        }
    }
}
