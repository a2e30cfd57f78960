//! Metrics, checks, groups and tags.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::function::Opt;
use rquickjs::module::Exports;
use rquickjs::{Ctx, Exception, Function, Result};
use weir_load::program::SocketId;

use super::state::Phase;
use super::{UserState, user_of};
use crate::metrics::registry::{BuiltIn, MetricUnit, ScriptMetricKind};

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("metric", Function::new(ctx.clone(), metric)?)?;
    exports.export("sample", Function::new(ctx.clone(), sample)?)?;
    exports.export("check", Function::new(ctx.clone(), check)?)?;
    exports.export("groupEnter", Function::new(ctx.clone(), group_enter)?)?;
    exports.export("groupLeave", Function::new(ctx.clone(), group_leave)?)?;
    exports.export("setTags", Function::new(ctx.clone(), set_tags)?)?;
    Ok(())
}

/// Number of a metric of the script: `metric(name, kind, unit)`.
fn metric(ctx: Ctx<'_>, name: String, kind: String, is_time: bool) -> Result<usize> {
    let user = user_of(&ctx)?;
    if user.phase.get() != Phase::Init {
        return Err(Exception::throw_type(&ctx, "metrics are made in the init context: outside of functions"));
    }
    let kind = match kind.as_str() {
        "counter" => ScriptMetricKind::Counter,
        "gauge" => ScriptMetricKind::Gauge,
        "rate" => ScriptMetricKind::Rate,
        _ => ScriptMetricKind::Trend,
    };
    let unit = if is_time { MetricUnit::Time } else { MetricUnit::Number };
    user.script.file.registry.add(&name, kind, unit).map_err(|why| Exception::throw_type(&ctx, &why))
}

/// Adds a value to a metric: `sample(metric, value, tags)`.
fn sample(ctx: Ctx<'_>, metric: usize, value: f64, tags: Opt<Option<Vec<String>>>) -> Result<()> {
    let user = user_of(&ctx)?;
    if user.phase.get() == Phase::Init {
        return Err(Exception::throw_type(&ctx, "values of metrics are for functions, not for the init context"));
    }
    let tags = tags.0.flatten().unwrap_or_default();
    user.metrics.add_all(&[(metric, value)], &|name: &str, value: &str| user.has_tag(&tags, name, value));
    Ok(())
}

/// Counts a check: `check(name, passed, tags)`.
fn check(ctx: Ctx<'_>, name: String, has_passed: bool, tags: Opt<Option<Vec<String>>>) -> Result<()> {
    let user = user_of(&ctx)?;
    let tags = tags.0.flatten().unwrap_or_default();
    let group = user.group.borrow();
    let has_tag = |tag: &str, value: &str| (tag == "check" && value == name) || user.has_tag(&tags, tag, value);
    user.metrics.add_check(&group, &name, has_passed, &has_tag);
    Ok(())
}

/// Enters a group; returns that which the script was in.
fn group_enter(ctx: Ctx<'_>, name: String) -> Result<String> {
    let user = user_of(&ctx)?;
    if name.contains("::") {
        return Err(Exception::throw_type(&ctx, &format!("invalid group name '{name}'; leave out '::'")));
    }
    let outer = user.group.borrow().clone();
    *user.group.borrow_mut() = format!("{outer}::{name}");
    Ok(outer)
}

/// Leaves a group after a time: `groupLeave(outer, milliseconds)`.
fn group_leave(ctx: Ctx<'_>, outer: String, took_ms: f64) -> Result<()> {
    let user = user_of(&ctx)?;
    user.metrics.add_all(&[(BuiltIn::GroupDuration as usize, took_ms)], &|name: &str, value: &str| {
        user.has_tag(&[], name, value)
    });
    *user.group.borrow_mut() = outer;
    Ok(())
}

/// Replaces the tags of all samples of the user: `setTags([name, value, ...])`.
fn set_tags(ctx: Ctx<'_>, tags: Vec<String>) -> Result<()> {
    let user = user_of(&ctx)?;
    *user.tags.borrow_mut() = tags.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    Ok(())
}

impl UserState {
    /// Salt of the random numbers of scripts.
    pub(crate) const RANDOM_SALT: u64 = 0x006b_3600;

    /// Whether a value of this user has a tag: its own (names and values in turn), the user's, or those of group,
    /// scenario and user that it has by itself.
    pub(crate) fn has_tag(&self, own: &[String], name: &str, value: &str) -> bool {
        if let Some(pair) = own.chunks_exact(2).find(|pair| pair[0] == name) {
            return pair[1] == value;
        }
        if let Some((_, known)) = self.tags.borrow().iter().find(|(known, _)| known == name) {
            return known == value;
        }
        match name {
            "group" => *self.group.borrow() == value,
            "scenario" => self.script.scenario(self.iteration.get().scenario).name == value,
            "vu" => self.number.to_string() == value,
            "iter" => self.iteration.get().of_user.to_string() == value,
            _ => {
                let scenario = self.script.scenario(self.iteration.get().scenario);
                let common = scenario.tags.iter().chain(&self.script.options.tags);
                common.clone().any(|(known, _)| known == name)
                    && common.into_iter().find(|(known, _)| *known == name).is_some_and(|(_, known)| known == value)
            }
        }
    }
}

impl UserState {
    /// Adds the duration of a socket that ends now, if it was open.
    pub(crate) fn end_socket(&self, id: SocketId) {
        let opened = self.sockets.borrow_mut().opened(id).and_then(|socket| socket.opened);
        if let Some(opened) = opened {
            let took_ms = (self.now.get() - opened).0 as f64 / 1e6;
            self.add_of_socket(id, &[(BuiltIn::WsSessionDuration as usize, took_ms)]);
        }
    }

    /// Adds values that have the tags of a socket which has not ended.
    pub(crate) fn add_of_socket(&self, id: SocketId, values: &[(usize, f64)]) {
        let mut sockets = self.sockets.borrow_mut();
        let Some(socket) = sockets.socket(id) else { return };
        self.metrics.add_all(values, &|name: &str, value: &str| self.has_tag(&socket.tags, name, value));
    }
}
