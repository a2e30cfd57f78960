//! Cookie jars of a user.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::module::Exports;
use rquickjs::{Array, Ctx, Exception, Function, Result};
use weir_machine::clock::unix_s;
use weir_request::url::HttpUrl;
use weir_scenario::cookie_jar::CookieJar;

use super::user_of;

/// Most jars of a user.
const MAX_JARS: usize = 1000;

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("cookieJar", Function::new(ctx.clone(), cookie_jar)?)?;
    exports.export("cookieSet", Function::new(ctx.clone(), cookie_set)?)?;
    exports.export("cookieGet", Function::new(ctx.clone(), cookie_get)?)?;
    exports.export("cookieClear", Function::new(ctx.clone(), cookie_clear)?)?;
    Ok(())
}

/// Number of a new jar.
pub(super) fn cookie_jar(ctx: Ctx<'_>) -> Result<usize> {
    let user = user_of(&ctx)?;
    let mut jars = user.jars.borrow_mut();
    if jars.len() >= MAX_JARS {
        return Err(Exception::throw_range(&ctx, &format!("more than {MAX_JARS} cookie jars of a user")));
    }
    jars.push(CookieJar::default());
    Ok(jars.len() - 1)
}

/// Stores a cookie as a response from `url` would: `cookieSet(jar, url, field)`; whether it was stored.
pub(super) fn cookie_set(ctx: Ctx<'_>, jar: usize, url: String, field: String) -> Result<bool> {
    let url = url_of(&ctx, &url)?;
    let user = user_of(&ctx)?;
    let mut jars = user.jars.borrow_mut();
    Ok(jars.get_mut(jar).is_some_and(|jar| jar.store(field.as_bytes(), &url, unix_s() as i64).is_ok()))
}

/// Names and values that a request to `url` would have: `[name, value, ...]`.
fn cookie_get<'js>(ctx: Ctx<'js>, jar: usize, url: String) -> Result<Array<'js>> {
    let array = Array::new(ctx.clone())?;
    for (index, (name, value)) in cookie_pairs(&ctx, jar, &url)?.into_iter().enumerate() {
        array.set(2 * index, name)?;
        array.set(2 * index + 1, value)?;
    }
    Ok(array)
}

/// Names and values of the cookies that a request to `url` would have of a jar.
pub(super) fn cookie_pairs(ctx: &Ctx<'_>, jar: usize, url: &str) -> Result<Vec<(String, String)>> {
    let url = url_of(ctx, url)?;
    let user = user_of(ctx)?;
    let mut header = Vec::new();
    if let Some(jar) = user.jars.borrow_mut().get_mut(jar) {
        jar.write_header(&url, unix_s() as i64, &mut header);
    }
    let header = String::from_utf8_lossy(&header);
    let pairs = header.split("; ").filter(|pair| !pair.is_empty());
    let split = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (name.to_owned(), value.to_owned())
    };
    Ok(pairs.map(split).collect())
}

/// Removes all cookies of a jar.
fn cookie_clear(ctx: Ctx<'_>, jar: usize) -> Result<()> {
    let user = user_of(&ctx)?;
    if let Some(jar) = user.jars.borrow_mut().get_mut(jar) {
        jar.clear();
    }
    Ok(())
}

fn url_of(ctx: &Ctx<'_>, url: &str) -> Result<HttpUrl> {
    HttpUrl::parse(url.as_bytes()).map_err(|error| Exception::throw_type(ctx, &format!("'{url}': {error}")))
}
