//! What the player of collections of Postman needs beside the modules of k6: checks and groups of asynchronous functions.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::module::Exports;
use rquickjs::{Ctx, Function, Result};

use super::user_of;
use crate::metrics::registry::BuiltIn;

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("countCheck", Function::new(ctx.clone(), count_check)?)?;
    exports.export("groupEnter", Function::new(ctx.clone(), group_enter)?)?;
    exports.export("groupLeave", Function::new(ctx.clone(), group_leave)?)?;
    Ok(())
}

/// Counts a check: `countCheck(name, passed)`.
fn count_check(ctx: Ctx<'_>, name: String, has_passed: bool) -> Result<()> {
    let user = user_of(&ctx)?;
    let has_tag = |tag: &str, value: &str| (tag == "check" && value == name) || user.has_tag(&[], tag, value);
    user.metrics.add_check(&user.group.borrow(), &name, has_passed, &has_tag);
    Ok(())
}

/// Enters a group, whose name has no two colons; returns that which the script was in.
fn group_enter(ctx: Ctx<'_>, name: String) -> Result<String> {
    let user = user_of(&ctx)?;
    let outer = user.group.borrow().clone();
    *user.group.borrow_mut() = format!("{outer}::{name}");
    Ok(outer)
}

/// Leaves a group after a time: `groupLeave(outer, milliseconds)`.
fn group_leave(ctx: Ctx<'_>, outer: String, took_ms: f64) -> Result<()> {
    let user = user_of(&ctx)?;
    let has_tag = |name: &str, value: &str| user.has_tag(&[], name, value);
    user.metrics.add_all(&[(BuiltIn::GroupDuration as usize, took_ms)], &has_tag);
    *user.group.borrow_mut() = outer;
    Ok(())
}
