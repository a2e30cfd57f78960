//! Names of requests that differ in identifiers alone: `GET /items/:id`.

use std::collections::HashMap;

/// Names of the most frequent routes of a log; all others share one.
#[derive(Clone, Debug, Default)]
pub struct RouteTable {
    names: Vec<String>,
    indices: HashMap<String, u32>,
}

/// Name of all routes that have none of their own.
const OTHER_ROUTES: &str = "(others)";
/// Longest name, in bytes.
const MAX_NAME_BYTES: usize = 200;

impl RouteTable {
    /// Table of the `most` most frequent routes of a sample of methods and paths, the most frequent first.
    pub fn of<'a>(sample: impl Iterator<Item = (&'a str, &'a str)>, most: usize) -> Self {
        let mut counts: HashMap<String, u64> = HashMap::new();
        for (method, path) in sample {
            *counts.entry(route(method, path)).or_default() += 1;
        }
        let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let mut names: Vec<String> = counts.into_iter().take(most).map(|(name, _)| name).collect();
        let indices = (0..).zip(&names).map(|(index, name)| (name.clone(), index)).collect();
        names.push(OTHER_ROUTES.to_owned());
        Self { names, indices }
    }

    /// Names, in the order of their indices; the last one is that of all others.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Index of a route.
    pub fn index(&self, method: &str, path: &str) -> u32 {
        let others = u32::try_from(self.names.len().saturating_sub(1)).unwrap_or(u32::MAX);
        self.indices.get(&route(method, path)).copied().unwrap_or(others)
    }
}

/// Method, and the path with `:id` in place of identifiers.
pub(crate) fn route(method: &str, path: &str) -> String {
    let mut name = String::with_capacity(method.len() + path.len() + 1);
    name.push_str(method);
    name.push(' ');
    for (nth, segment) in path.split('/').enumerate() {
        if nth > 0 {
            name.push('/');
        }
        name.push_str(if is_identifier(segment) { ":id" } else { segment });
        if name.len() > MAX_NAME_BYTES {
            // The path is ASCII.
            let end = (0..=MAX_NAME_BYTES).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
            name.truncate(end);
            name.push_str("...");
            break;
        }
    }
    name
}

/// Whether a segment of a path is an identifier: a number, a UUID, or at least 8 characters of which a digit for every 4
/// of them, without a point as in names of files.
fn is_identifier(segment: &str) -> bool {
    let digits = segment.bytes().filter(u8::is_ascii_digit).count();
    let is_word = segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'%' | b'~'));
    let is_number = digits > 0 && digits == segment.len();
    is_number || (is_word && segment.len() >= 8 && digits * 4 >= segment.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn identifiers_are_told_from_names() {
        for (path, expected) in [
            ("/", "GET /"),
            ("/items/42", "GET /items/:id"),
            ("/items/42/", "GET /items/:id/"),
            ("/v1/users", "GET /v1/users"),
            ("/u/550e8400-e29b-41d4-a716-446655440000/x", "GET /u/:id/x"),
            ("/static/app.3f2b1c9d.js", "GET /static/app.3f2b1c9d.js"),
            ("/orders/checkout", "GET /orders/checkout"),
            ("/o/5f43a1b2c3d4e5f6", "GET /o/:id"),
        ] {
            assert_eq!(route("GET", path), expected);
        }
    }

    #[test]
    fn rare_routes_share_a_name() {
        let sample = [("GET", "/a"), ("GET", "/b/1"), ("GET", "/b/2"), ("POST", "/c")];
        let table = RouteTable::of(sample.into_iter(), 2);
        assert_eq!(table.names(), ["GET /b/:id", "GET /a", "(others)"]);
        assert_eq!([("GET", "/b/9"), ("GET", "/a"), ("POST", "/c")].map(|(m, p)| table.index(m, p)), [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn any_path_has_a_route(path in "/[!-~é]{0,300}") {
            prop_assert!(route("GET", &path).len() <= 2 * MAX_NAME_BYTES + 400);
            let table = RouteTable::of([("GET", path.as_str())].into_iter(), 5);
            prop_assert_eq!(table.index("GET", &path), 0);
        }
    }
}
