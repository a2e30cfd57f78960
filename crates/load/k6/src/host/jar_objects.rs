//! Class `CookieJar` of `k6/http`.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::convert::Coerced;
use rquickjs::function::{Constructor, FuncArg, Opt, This};
use rquickjs::object::Property;
use rquickjs::{Array, Ctx, Exception, Function, Object, Result, Value};

use super::cookies::{cookie_jar, cookie_pairs, cookie_set};
use super::globals::call_exported;
use super::request_arguments::text;

/// Name of the number of a jar, which requests read as well.
const NUMBER: &str = "number";

/// The class, and the prototype of its objects.
pub(super) fn jar_class<'js>(ctx: &Ctx<'js>) -> Result<(Constructor<'js>, Object<'js>)> {
    let prototype = Object::new(ctx.clone())?;
    let method =
        |name: &str, function: Function<'js>| prototype.prop(name, Property::from(function).writable().configurable());
    method("set", Function::new(ctx.clone(), set)?)?;
    method("cookiesForURL", Function::new(ctx.clone(), cookies)?)?;
    method("delete", Function::new(ctx.clone(), delete)?)?;
    method("clear", Function::new(ctx.clone(), clear)?)?;
    let new = |ctx: Ctx<'js>| jar_object(&ctx, cookie_jar(ctx.clone())?);
    Ok((Constructor::new_prototype(ctx, prototype.clone(), new)?, prototype))
}

/// Function that returns the jar of the user.
pub(super) fn jar_of_user<'js>(ctx: &Ctx<'js>, prototype: Object<'js>) -> Result<Function<'js>> {
    let jar = |ctx: Ctx<'js>, function: FuncArg<Function<'js>>| {
        let jar = jar_object(&ctx, 0)?;
        jar.set_prototype(Some(&function.0.get::<_, Object<'js>>("prototype")?))?;
        Ok::<_, rquickjs::Error>(jar)
    };
    let function = Function::new(ctx.clone(), jar)?;
    function.prop("prototype", Property::from(prototype))?;
    Ok(function)
}

fn jar_object<'js>(ctx: &Ctx<'js>, number: usize) -> Result<Object<'js>> {
    let jar = Object::new(ctx.clone())?;
    jar.prop(NUMBER, Property::from(number))?;
    Ok(jar)
}

/// Sets a cookie as a response from `url` would: `jar.set(url, name, value, options)`.
fn set<'js>(
    ctx: Ctx<'js>,
    jar: This<Object<'js>>,
    url: Coerced<String>,
    name: Coerced<String>,
    value: Coerced<String>,
    options: Opt<Option<Object<'js>>>,
) -> Result<bool> {
    let mut field = format!("{}={}", name.0, value.0);
    let mut path = "/".to_owned();
    if let Some(options) = options.0.flatten() {
        for entry in options.props::<String, Value<'js>>() {
            let (name, value) = entry?;
            let is_set = value.is_object() || value.as_bool().unwrap_or(!value.is_undefined() && !value.is_null());
            let value = match name.as_str() {
                "expires" if is_set => call_exported(&ctx, ("weir:requests", "dateText"), vec![value])?,
                _ => value,
            };
            let given = text(&ctx, value)?;
            match name.as_str() {
                _ if !is_set || given.is_empty() => {}
                "domain" => field.push_str(&format!("; Domain={given}")),
                "path" => path = given,
                "expires" => field.push_str(&format!("; Expires={given}")),
                "max_age" if given != "0" => field.push_str(&format!("; Max-Age={given}")),
                "secure" => field.push_str("; Secure"),
                "http_only" => field.push_str("; HttpOnly"),
                _ => {}
            }
        }
    }
    field.push_str(&format!("; Path={path}"));
    cookie_set(ctx, jar.0.get(NUMBER)?, url.0, field)
}

/// Values that a request to a URL would have, by the names of cookies: `jar.cookiesForURL(url)`.
fn cookies<'js>(ctx: Ctx<'js>, jar: This<Object<'js>>, url: Coerced<String>) -> Result<Object<'js>> {
    let found = Object::new(ctx.clone())?;
    for (name, value) in cookie_pairs(&ctx, jar.0.get(NUMBER)?, &url.0)? {
        match found.get::<_, Option<Array<'js>>>(name.as_str())? {
            Some(values) => values.set(values.len(), value)?,
            None => found.set(name, vec![value])?,
        }
    }
    Ok(found)
}

/// Removes a cookie: `jar.delete(url, name)`.
fn delete<'js>(ctx: Ctx<'js>, jar: This<Object<'js>>, url: Coerced<String>, name: Coerced<String>) -> Result<()> {
    if name.0.is_empty() {
        return Err(Exception::throw_type(&ctx, "jar.delete() takes a URL and the name of a cookie"));
    }
    cookie_set(ctx, jar.0.get(NUMBER)?, url.0, format!("{}=; Path=/; Max-Age=0", name.0)).map(drop)
}

/// Removes the cookies of a URL: `jar.clear(url)`.
fn clear<'js>(ctx: Ctx<'js>, jar: This<Object<'js>>, url: Coerced<String>) -> Result<()> {
    let number = jar.0.get(NUMBER)?;
    for (name, _) in cookie_pairs(&ctx, number, &url.0)? {
        cookie_set(ctx.clone(), number, url.0.clone(), format!("{name}=; Path=/; Max-Age=0"))?;
    }
    Ok(())
}
