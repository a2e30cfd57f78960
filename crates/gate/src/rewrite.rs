//! Path and query of upstream requests.

use std::borrow::Cow;

use http::Uri;

use super::config::{QueryRule, Rewrite};
use super::routing::Captures;

/// Path and query of an upstream request. `path` is the caller's in normal form; a kept query is passed on byte by
/// byte.
pub(super) fn target<'a>(rule: &Rewrite, captures: &Captures<'_>, path: &str, uri: &'a Uri) -> Cow<'a, str> {
    if rule.path.is_none() && rule.query == QueryRule::Keep {
        // OPTIONS has a target without a path.
        let original = uri.path_and_query().map_or("*", |both| both.as_str());
        // `http://host?query` has an implicit path.
        if original.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('?')) {
            return original.into();
        }
    }
    path_and_query(rule.path.as_deref(), &rule.query, captures, path, uri.query()).into()
}

/// A path and a query from templates; without a template the path is the caller's.
pub(super) fn path_and_query(
    template: Option<&str>,
    query_rule: &QueryRule,
    captures: &Captures<'_>,
    path: &str,
    query: Option<&str>,
) -> String {
    let mut target = template.map_or_else(|| path.to_owned(), |template| expand_template(template, captures));
    let query = match query_rule {
        QueryRule::Keep => query.map(Cow::Borrowed),
        QueryRule::Drop => None,
        QueryRule::Set(query) => Some(Cow::Owned(expand_template(query, captures))),
    };
    if let Some(query) = query {
        target.push('?');
        target.push_str(&query);
    }
    target
}

/// The template with the values of its captures; an unknown one is empty.
fn expand_template(template: &str, captures: &Captures<'_>) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((name, behind)) = after.split_once('}') else { break };
        text.push_str(captures.get(name).unwrap_or_default());
        rest = behind;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::config::RouteConfig;
    use crate::routing::{RequestFacts, RouteMatch, Routes};
    use weir_http::path::{PathRule, normalize};

    fn rewritten(path: Option<&str>, query: QueryRule, asked: &str) -> String {
        let routes = [RouteConfig::forward_all("upstream", "/api/{id}/{*rest}")];
        let (routes, uri) = (Routes::new(&routes).unwrap(), asked.parse::<Uri>().unwrap());
        let rule = PathRule { pass_ambiguous: true, ..PathRule::default() };
        let normal = normalize(uri.path(), rule).unwrap();
        let (method, headers) = (http::Method::GET, http::HeaderMap::new());
        let request = RequestFacts { method: &method, host: None, path: &normal, query: None, headers: &headers };
        let RouteMatch::Route { captures: held, .. } = routes.find(&request) else {
            panic!("no route for {asked}");
        };
        let rewrite = Rewrite { path: path.map(str::to_owned), query, ..Rewrite::default() };
        target(&rewrite, &held, &normal, &uri).into_owned()
    }

    #[test]
    fn targets_are_kept_or_rewritten() {
        let asked = "/api//7/a%2fb/x/../%63?x=%20&y";
        for (path, query, expected) in [
            (None, QueryRule::Keep, "/api/7/a%2Fb/c?x=%20&y"),
            (None, QueryRule::Drop, "/api/7/a%2Fb/c"),
            (Some("/v2/{rest}"), QueryRule::Keep, "/v2/a%2Fb/c?x=%20&y"),
            (Some("/v2"), QueryRule::Set("id={id}&z".to_owned()), "/v2?id=7&z"),
            (Some("/{id}{none}/"), QueryRule::Drop, "/7/"),
        ] {
            assert_eq!(rewritten(path, query, asked), expected);
        }
    }

    #[test]
    fn an_absolute_target_becomes_path_and_query() {
        assert_eq!(rewritten(None, QueryRule::Keep, "http://a.example/api/1/x?y"), "/api/1/x?y");
    }
}
