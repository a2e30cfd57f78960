//! Metrics and tags.
#![allow(clippy::needless_pass_by_value, reason = "arguments of functions of JavaScript are values")]

use rquickjs::function::Opt;
use rquickjs::module::Exports;
use rquickjs::{Ctx, Exception, Function, Result, Value};
use weir_load::program::SocketId;

use super::request_arguments::pairs;
use super::state::Phase;
use super::{UserState, user_of};
use crate::metrics::registry::{BuiltIn, MetricUnit, ScriptMetricKind};

pub(super) fn export<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
    exports.export("metric", Function::new(ctx.clone(), metric)?)?;
    exports.export("sample", Function::new(ctx.clone(), sample)?)?;
    exports.export("setTags", Function::new(ctx.clone(), set_tags)?)?;
    Ok(())
}

/// Number of a metric of the script: `metric(name, kind, unit)`.
pub(super) fn metric(ctx: Ctx<'_>, name: String, kind: String, is_time: bool) -> Result<usize> {
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
pub(super) fn sample<'js>(ctx: Ctx<'js>, metric: usize, value: f64, tags: Opt<Value<'js>>) -> Result<()> {
    let user = user_of(&ctx)?;
    if user.phase.get() == Phase::Init {
        return Err(Exception::throw_type(&ctx, "values of metrics are for functions, not for the init context"));
    }
    let tags = match &tags.0 {
        Some(tags) => pairs(&ctx, tags)?,
        None => Vec::new(),
    };
    user.metrics.add_all(&[(metric, value)], &|name: &str, value: &str| user.has_tag(&tags, name, value));
    Ok(())
}

/// Replaces the tags of all samples of the user: `setTags(object)`.
pub(super) fn set_tags<'js>(ctx: Ctx<'js>, tags: Value<'js>) -> Result<()> {
    let tags = pairs(&ctx, &tags)?;
    *user_of(&ctx)?.tags.borrow_mut() = tags;
    Ok(())
}

impl UserState {
    /// Salt of the random numbers of scripts.
    pub(crate) const RANDOM_SALT: u64 = 0x006b_3600;

    /// Whether a value of this user has a tag: its own, the user's, or those of group,
    /// scenario and user that it has by itself.
    pub(crate) fn has_tag(&self, own: &[(String, String)], name: &str, value: &str) -> bool {
        if let Some((_, known)) = own.iter().find(|(known, _)| known == name) {
            return known == value;
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
