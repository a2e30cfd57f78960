//! Reads `[[routes]]`.

use http::Method;

use super::caller::{Callers, callers};
use super::problem::Notes;
use super::read::{Node, Table};
use super::rewrite::{is_authority, rewrite};
use super::upstream::unknown;
use super::{AnswerRule, PolicyConfig, Rewrite, RouteConfig, answer, load, pattern, policy};
use crate::decide::policy::Repeat;
use crate::http::path::PathRule;

/// What routes may name.
#[derive(Debug)]
pub(super) struct Names<'n> {
    pub(super) upstreams: Vec<&'n str>,
    pub(super) policies: Vec<(&'n str, Option<PolicyConfig>)>,
    /// How requests' paths are read.
    pub(super) paths: PathRule,
}

/// A route, and what it has in common with others.
#[derive(Debug)]
pub(super) struct Read<'a> {
    pub(super) route: RouteConfig,
    /// Where its path stands.
    pub(super) path: Node<'a>,
    /// The name of its policy, if it is not its own.
    pub(super) policy: Option<String>,
}

pub(super) fn route<'a>(node: &Node<'a>, names: &Names<'_>) -> Option<Read<'a>> {
    let table = node.table()?;
    let matched = matched(&table, names.paths);
    let text = matched.as_ref().map(|it| it.path.value().as_str().unwrap_or_default()).unwrap_or_default();
    let captures = pattern::captures(text).unwrap_or_default();
    let upstream = upstream(&table, names);
    let (policy, named) = policy_of(&table, names);
    let part = |key| table.get(key).and_then(|node| node.table());
    let rewrite = part("rewrite").map_or_else(Rewrite::default, |table| rewrite(&table, &captures));
    let deadline_from = part("deadline_from").and_then(|table| answer::deadline_from(&table, &captures));
    let answer = part("answer").map_or_else(AnswerRule::default, |table| answer::answer(&table));
    let limit = load::of_route(&table);
    let Callers { priority, caller, rate } = callers(&table, &captures);
    table.close();
    let Matched { path, methods, host } = matched?;
    let policy = policy?;
    check_repeat(&table, &policy, &methods);
    let route = RouteConfig {
        path: text.to_owned(),
        methods,
        host,
        upstream: upstream.unwrap_or_default(),
        policy,
        limit,
        priority,
        caller,
        rate,
        rewrite,
        deadline_from,
        answer,
    };
    Some(Read { route, path, policy: named })
}

struct Matched<'a> {
    path: Node<'a>,
    methods: Vec<Method>,
    host: Option<String>,
}

fn matched<'a>(table: &Table<'a>, paths: PathRule) -> Option<Matched<'a>> {
    let Some(node) = table.get("match") else {
        table.wrong("it has no match", r#"write match = { path = "/{*rest}" }"#);
        return None;
    };
    let table = node.table()?;
    let methods = table.get("methods").map(|node| methods(&node)).unwrap_or_default();
    let host = table.get("host").and_then(|node| host(&node));
    let path = table.get("path");
    table.close();
    let Some(path) = path else {
        table.wrong("it has no path", r#"write path = "/{*rest}""#);
        return None;
    };
    if let Err((what, remedy)) = pattern::captures(path.string()?) {
        path.wrong(what, remedy);
        return None;
    }
    let text = path.string()?;
    if !pattern::is_normal(text, paths) {
        let what = format!("no request has the path {text:?}: it is compared in its normal form");
        path.wrong(
            what,
            "write no \"//\" and no dot segments, letters and digits as they are, and escapes in capitals",
        );
    }
    Some(Matched { path, methods, host })
}

fn methods(node: &Node<'_>) -> Vec<Method> {
    let list = node.list();
    if list.as_ref().is_some_and(Vec::is_empty) {
        node.wrong("there is no method in it", r#"write it as ["GET"], or leave it out for all"#);
    }
    let mut methods = Vec::new();
    for node in list.unwrap_or_default() {
        let Some(text) = node.string() else { continue };
        // Methods are case-sensitive (RFC 9110, 9.1), and nobody means "get".
        let upper = !text.bytes().any(|b| b.is_ascii_lowercase());
        match Method::from_bytes(text.as_bytes()) {
            Ok(Method::CONNECT) => node.wrong("\"CONNECT\" is not passed on", "leave it out"),
            Ok(method) if upper && !methods.contains(&method) => methods.push(method),
            Ok(_) if upper => node.wrong(format!("{text:?} is there twice"), "leave one out"),
            _ => node.is_no("method", r#"write it as "GET""#),
        }
    }
    methods
}

fn host(node: &Node<'_>) -> Option<String> {
    let text = node.string()?;
    let port = text.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    if port || !is_authority(text) {
        node.is_no("host", r#"write a name such as "example.org", without a port"#);
    }
    // The dot of the root is no part of the name.
    Some(text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase())
}

fn upstream(table: &Table<'_>, names: &Names<'_>) -> Option<String> {
    let Some(node) = table.get("upstream") else {
        match names.upstreams.as_slice() {
            [] => {}
            [only] => return Some((*only).to_owned()),
            all => table.wrong("it does not name its upstream", super::problem::one_of(all)),
        }
        return None;
    };
    let name = node.string()?;
    if !names.upstreams.contains(&name) {
        unknown(&node, "upstream", "upstreams", name, &names.upstreams);
    }
    Some(name.to_owned())
}

/// A route's policy; and its name, if it is not its own.
fn policy_of(table: &Table<'_>, names: &Names<'_>) -> (Option<PolicyConfig>, Option<String>) {
    let Some(node) = table.get("policy") else { return (Some(PolicyConfig::new(policy::DEFAULT)), None) };
    if node.is_table() {
        return (policy::policy(&node, &node.at), None);
    }
    if !node.is_string() {
        node.is_no("policy", "write the name of one, or a table");
        return (None, None);
    }
    let name = node.string().unwrap_or_default();
    if let Some((_, policy)) = names.policies.iter().find(|(known, _)| *known == name) {
        return (policy.clone(), Some(name.to_owned()));
    }
    let known: Vec<&str> = names.policies.iter().map(|(name, _)| *name).collect();
    unknown(&node, "policy", "policies", name, &known);
    (None, None)
}

/// Notes when no request of the route may be sent twice, and its policy says how to.
fn check_repeat(table: &Table<'_>, policy: &PolicyConfig, methods: &[Method]) {
    let repeat = policy.policy.repeat;
    let any = methods.is_empty() || methods.iter().any(|method| policy::may_repeat(repeat, method));
    if policy.policy.repeats() && !any {
        let methods: Vec<&str> = methods.iter().map(Method::as_str).collect();
        let what = format!("its policy has stages or retries, and no {} is sent twice", methods.join(", no "));
        let idempotent = methods.iter().any(|method| matches!(*method, "PUT" | "DELETE"));
        let enough = if idempotent && repeat == Repeat::Safe { "idempotent" } else { "every" };
        table.odd(what, format!("if that does no harm upstream, write repeat = \"{enough}\" in the policy"));
    }
}

/// Notes routes of which one hides the other.
pub(super) fn check_twins(routes: &[Read<'_>], notes: &Notes<'_>) {
    let mut seen: std::collections::HashMap<(String, &Option<String>), Vec<usize>> = std::collections::HashMap::new();
    for (index, Read { route, path, .. }) in routes.iter().enumerate() {
        let same = seen.entry((pattern::shape(&route.path), &route.host)).or_default();
        for earlier in same.iter().map(|earlier| &routes[*earlier]) {
            let both = earlier.route.methods.iter().find(|method| route.methods.contains(method));
            if both.is_some() || route.methods.is_empty() && earlier.route.methods.is_empty() {
                let what = match both {
                    Some(method) => format!("{method} {} has a route already", route.path),
                    None => format!("{} has a route already", route.path),
                };
                let (line, _) = notes.position(earlier.path.start());
                path.wrong(what, format!("see line {line}; tell them apart by path, methods or host"));
                break;
            }
        }
        same.push(index);
    }
}
