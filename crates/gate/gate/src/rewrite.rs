//! Path and query of upstream requests.

use std::borrow::Cow;

use http::Uri;

use super::config::{QueryRule, Rewrite};
use super::routing::Captures;
use weir_base::placeholder::placeholders;
use weir_net::path::{AmbiguousPath, PathRule, normalize_joined};

/// Path and query of an upstream request. `path` is the caller's in normal form; a kept query is passed on byte by
/// byte.
///
/// # Errors
/// Captures have made a path that is read in another way than they were.
pub(super) fn target<'a>(
    rewrite: &Rewrite,
    captures: &Captures<'_>,
    path: &str,
    uri: &'a Uri,
    rule: PathRule,
) -> Result<Cow<'a, str>, AmbiguousPath> {
    if rewrite.path.is_none() && rewrite.query == QueryRule::Keep {
        // OPTIONS has a target without a path.
        let original = uri.path_and_query().map_or("*", |both| both.as_str());
        // `http://host?query` has an implicit path.
        if original.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('?')) {
            return Ok(original.into());
        }
    }
    path_and_query(rewrite.path.as_deref(), &rewrite.query, captures, (path, uri.query()), rule).map(Cow::Owned)
}

/// A path and a query from templates; without a template they are the caller's.
///
/// # Errors
/// Captures have made a path that is read in another way than they were.
pub(super) fn path_and_query(
    template: Option<&str>,
    query_rule: &QueryRule,
    captures: &Captures<'_>,
    (path, query): (&str, Option<&str>),
    rule: PathRule,
) -> Result<String, AmbiguousPath> {
    let mut target = match template {
        None => path.to_owned(),
        Some(template) => {
            let joined = expand_template(template, captures, String::push_str);
            normalize_joined(&joined, rule)?.into_owned()
        }
    };
    let query = match query_rule {
        QueryRule::Keep => query.map(Cow::Borrowed),
        QueryRule::Drop => None,
        QueryRule::Set(query) => Some(Cow::Owned(expand_template(query, captures, push_query_value))),
    };
    if let Some(query) = query {
        target.push('?');
        target.push_str(&query);
    }
    Ok(target)
}

/// The template with the values of its captures, each appended by `push`; an unknown one is empty.
fn expand_template(template: &str, captures: &Captures<'_>, push: impl Fn(&mut String, &str)) -> String {
    let (mut text, mut end) = (String::with_capacity(template.len()), 0);
    // The configuration has checked that all braces are those of captures.
    for field in placeholders(template, |c| !matches!(c, '{' | '}')) {
        text.push_str(&template[end..field.start]);
        push(&mut text, captures.get(field.name).unwrap_or_default());
        end = field.end;
    }
    text.push_str(&template[end..]);
    text
}

/// Appends a part of a path to a query, so that its parameter has the same text: what separates parameters, or is a space
/// to readers of forms, is escaped. Escapes stay.
fn push_query_value(query: &mut String, part: &str) {
    for char in part.chars() {
        match char {
            'a'..='z'
            | 'A'..='Z'
            | '0'..='9'
            | '-'
            | '.'
            | '_'
            | '~'
            | '%'
            | '/'
            | ':'
            | '@'
            | ','
            | '!'
            | '*'
            | '('
            | ')' => {
                query.push(char);
            }
            // A path in normal form is ASCII.
            other => query.push_str(&format!("%{:02X}", u32::from(other))),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

    use super::*;
    use crate::config::RouteConfig;
    use crate::routing::{RequestFacts, RouteMatch, Routes};
    use weir_net::path::normalize;

    use proptest::prelude::*;

    const PASSED: PathRule = PathRule { merge_slashes: true, pass_ambiguous: true, pass_parameters: true };

    fn rewritten(path: Option<&str>, query: QueryRule, asked: &str) -> String {
        rewritten_by("/api/{id}/{*rest}", PASSED, path, query, asked).unwrap()
    }

    fn rewritten_by(
        matched: &str,
        rule: PathRule,
        path: Option<&str>,
        query: QueryRule,
        asked: &str,
    ) -> Result<String, AmbiguousPath> {
        let routes = [RouteConfig::forward_all("upstream", matched)];
        let (routes, uri) = (Routes::new(&routes).unwrap(), asked.parse::<Uri>().unwrap());
        let normal = normalize(uri.path(), rule)?;
        let (method, headers) = (http::Method::GET, http::HeaderMap::new());
        let request = RequestFacts { method: &method, host: None, path: &normal, query: None, headers: &headers };
        let RouteMatch::Route { captures: held, .. } = routes.find(&request) else {
            panic!("no route for {asked}");
        };
        let rewrite = Rewrite { path: path.map(str::to_owned), query, ..Rewrite::default() };
        target(&rewrite, &held, &normal, &uri, rule).map(Cow::into_owned)
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

    #[test]
    fn captures_that_form_dot_segments_are_an_error() {
        let strict = PathRule::default();
        for (matched, template, asked) in [
            ("/files/{name}.json", "/data/{name}", "/files/...json"),
            ("/files/{name}.json", "/data/{name}/x", "/files/..json"),
            ("/v{major}.{minor}/{*rest}", "/api/{minor}/{rest}", "/v1.../secret"),
            ("/x/{a}.{b}", "/{a}{b}/c", "/x/..."),
            ("/f{a}", "/.{a}", "/f."),
            ("/f{a}", "/.{a}/b", "/f.;x"),
            ("/f{a}", "/{a}/b", "/f;x"),
        ] {
            let found = rewritten_by(matched, strict, Some(template), QueryRule::Keep, asked);
            assert!(found.is_err(), "{asked} of {matched} as {template}: {found:?}");
        }
        for (matched, template, asked, expected) in [
            ("/files/{name}.json", "/data/{name}", "/files/a..b.json", "/data/a..b"),
            ("/files/{*rest}", "/data/{rest}/x", "/files/", "/data/x"),
            ("/files/{*rest}", "/data/{rest}", "/files/a/b/", "/data/a/b/"),
            ("/map/{at}", "/m/{at}", "/map/p;x=1;y=2", "/m/p;x=1;y=2"),
        ] {
            let found = rewritten_by(matched, strict, Some(template), QueryRule::Keep, asked);
            assert_eq!(found.as_deref(), Ok(expected), "{asked}");
        }
    }

    #[test]
    fn a_capture_is_one_value_of_a_query() {
        for (asked, expected) in [
            ("/api/a&admin=1/x", "/?user=a%26admin%3D1"),
            ("/api/a+b/x", "/?user=a%2Bb"),
            ("/api/a;admin=1/x", "/?user=a%3Badmin%3D1"),
            ("/api/%26%23%2B%20/x", "/?user=%26%23%2B%20"),
            ("/api/a:b@c,d!(e)*~-._/x", "/?user=a:b@c,d!(e)*~-._"),
            ("/api/a'$%25/x", "/?user=a%27%24%25"),
        ] {
            assert_eq!(rewritten(Some("/"), QueryRule::Set("user={id}".to_owned()), asked), expected);
        }
    }

    proptest! {
        #[test]
        fn readers_of_queries_find_the_parameters_of_the_template(
            id in "[!-~\u{e9}]{1,20}", rest in "[!-~]{0,20}", in_the_middle: bool,
        ) {
            let asked = format!("/api/{}/{}", id.replace(['/', '?', '#', '\\'], "&"), rest.replace(['?', '#', '\\'], "="));
            prop_assume!(asked.parse::<Uri>().is_ok());
            let template = if in_the_middle { "a=1&user=x{id}y&rest={rest}&z=2" } else { "user={id}&rest={rest}" };
            let Ok(normal) = normalize(&asked, PASSED).map(Cow::into_owned) else { return Ok(()) };
            let Some((id, rest)) = normal.strip_prefix("/api/").and_then(|inner| inner.split_once('/')) else { return Ok(()) };
            prop_assume!(!id.is_empty());
            let target = rewritten(Some("/"), QueryRule::Set(template.to_owned()), &asked);
            let query = target.strip_prefix("/?").unwrap();
            let plain = |text: &str| percent_decoded(text);
            let (id, rest) = (plain(id), plain(rest));
            let expected: Vec<(String, String)> = match in_the_middle {
                true => vec![("a".into(), "1".into()), ("user".into(), format!("x{id}y")), ("rest".into(), rest), ("z".into(), "2".into())],
                false => vec![("user".into(), id), ("rest".into(), rest)],
            };
            let found: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            prop_assert_eq!(&found, &expected, "{}", target);
            // Readers that take a semicolon for an ampersand find the same.
            prop_assert!(!query.contains(';') && !query.contains('#'), "{}", target);
        }
    }

    /// Bytes of the escapes and of the rest, where invalid UTF-8 is U+FFFD.
    fn percent_decoded(text: &str) -> String {
        let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
        while let Some((byte, after)) = rest.split_first() {
            match (byte, after.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok())) {
                (b'%', Some(value)) => {
                    bytes.push(value);
                    rest = &after[2..];
                }
                _ => {
                    bytes.push(*byte);
                    rest = after;
                }
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
