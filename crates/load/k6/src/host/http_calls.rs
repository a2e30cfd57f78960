//! Requests of `k6/http`, from their arguments to the objects of their responses.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use std::borrow::Cow;

use rquickjs::function::Opt;
use rquickjs::{Ctx, Exception, Function, Result, Value};
use weir_base::Nanos;

use super::exchange::{HttpEnd, HttpResult};
use super::request_arguments::{RequestArguments, expected, text};
use super::response_class::new_response;
use super::state::Pause;
use super::{UserState, user_of};

/// `get(url, params)`.
pub(super) fn without_body<'js>(ctx: &Ctx<'js>, method: &'static str) -> Result<Function<'js>> {
    let call = move |ctx: Ctx<'js>, target: Opt<Value<'js>>, params: Opt<Value<'js>>| {
        sent(
            &ctx,
            RequestArguments { method: method.into(), target: given(&ctx, target), body: None, params: params.0 },
        )
    };
    Function::new(ctx.clone(), call)
}

/// `post(url, body, params)`.
pub(super) fn with_body<'js>(ctx: &Ctx<'js>, method: &'static str) -> Result<Function<'js>> {
    let call = move |ctx: Ctx<'js>, target: Opt<Value<'js>>, body: Opt<Value<'js>>, params: Opt<Value<'js>>| {
        let target = given(&ctx, target);
        sent(&ctx, RequestArguments { method: method.into(), target, body: body.0, params: params.0 })
    };
    Function::new(ctx.clone(), call)
}

/// `request(method, url, body, params)`.
pub(super) fn request<'js>(
    ctx: Ctx<'js>,
    method: Value<'js>,
    target: Opt<Value<'js>>,
    body: Opt<Value<'js>>,
    params: Opt<Value<'js>>,
) -> Result<Value<'js>> {
    let (method, target) = (method_of(&ctx, method)?, given(&ctx, target));
    sent(&ctx, RequestArguments { method, target, body: body.0, params: params.0 })
}

/// Adds a request that is sent as soon as the script waits: `later(method, url, body, params)`; its key.
pub(super) fn later<'js>(
    ctx: Ctx<'js>,
    method: Value<'js>,
    target: Opt<Value<'js>>,
    body: Opt<Value<'js>>,
    params: Opt<Value<'js>>,
) -> Result<u32> {
    let (method, target) = (method_of(&ctx, method)?, given(&ctx, target));
    let arguments = RequestArguments { method, target, body: body.0, params: params.0 };
    let user = user_of(&ctx)?;
    let request = arguments.read(&ctx, &user)?;
    Ok(user.exchanges.borrow_mut().add(request))
}

/// Response to a request that has ended: `taken(key)`.
pub(super) fn taken<'js>(ctx: Ctx<'js>, key: u32) -> Result<Value<'js>> {
    let user = user_of(&ctx)?;
    let result = user.exchanges.borrow_mut().take(key);
    let result = result.ok_or_else(|| Exception::throw_internal(&ctx, "the request has not ended"))?;
    response(&ctx, &user, *result)
}

/// Replaces the statuses that make responses successes: `setResponseCallback(callback)`.
pub(super) fn set_expected<'js>(ctx: Ctx<'js>, callback: Value<'js>) -> Result<()> {
    let expected = expected(&ctx, &callback)?;
    *user_of(&ctx)?.default_expected.borrow_mut() = expected;
    Ok(())
}

fn given<'js>(ctx: &Ctx<'js>, value: Opt<Value<'js>>) -> Value<'js> {
    value.0.unwrap_or_else(|| Value::new_undefined(ctx.clone()))
}

fn method_of<'js>(ctx: &Ctx<'js>, method: Value<'js>) -> Result<Cow<'static, str>> {
    Ok(Cow::Owned(text(ctx, method)?.to_uppercase()))
}

/// Sends a request and waits for its end.
fn sent<'js>(ctx: &Ctx<'js>, arguments: RequestArguments<'js>) -> Result<Value<'js>> {
    let user = user_of(ctx)?;
    let request = arguments.read(ctx, &user)?;
    let key = user.exchanges.borrow_mut().add(request);
    loop {
        let result = user.exchanges.borrow_mut().take(key);
        if let Some(result) = result {
            return response(ctx, &user, *result);
        }
        user.pause(ctx, Pause::Await(Nanos::NEVER), "a request")?;
    }
}

fn response<'js>(ctx: &Ctx<'js>, user: &UserState, result: HttpResult) -> Result<Value<'js>> {
    if let HttpEnd::Failed(_, why) = &result.end
        && result.request.throws
    {
        return Err(Exception::throw_message(ctx, &format!("{} {}: {why}", result.method, result.url)));
    }
    new_response(ctx, user, result)
}
