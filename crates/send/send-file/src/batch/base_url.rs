//! Base URL of an API, as its libraries take it, and the path of a line of a batch: what both have counts once.

use weir_request::url_text::UrlText;
use weir_send::template::has_fields;

/// Path and query of a base URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BaseUrl {
    /// Path without a slash at its end.
    path: String,
    /// Query with its question mark; may be empty.
    query: String,
}

impl BaseUrl {
    /// Base of a URL.
    ///
    /// # Errors
    /// One line, if its path has a field in braces: paths of jobs are data.
    pub(super) fn of(url: &str) -> Result<Self, String> {
        let after = UrlText::of(url).after_authority;
        if has_fields(after) {
            return Err(
                "--url has a field in braces in its path, which is data with --results; give it with --header".into()
            );
        }
        let after = after.split('#').next().unwrap_or_default();
        let (path, query) = after.split_at(after.find('?').unwrap_or(after.len()));
        Ok(Self { path: path.trim_end_matches('/').to_owned(), query: query.to_owned() })
    }

    /// Path of a request: that of the base, and that of the line without what the base ends with.
    pub(super) fn join(&self, path: &str) -> String {
        let (own, query) = path.split_at(path.find('?').unwrap_or(path.len()));
        let ends = own.match_indices('/').map(|(at, _)| at).chain([own.len()]);
        let common = ends.filter(|end| self.path.ends_with(&own[..*end])).max().unwrap_or(0);
        let query = if query.is_empty() { &self.query } else { query };
        format!("{}{}{query}", self.path, &own[common..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn joined(base: &str, path: &str) -> String {
        BaseUrl::of(base).unwrap().join(path)
    }

    #[test]
    fn the_base_is_that_of_the_libraries_an_origin_or_the_whole_url() {
        for (base, expected) in [
            ("http://h", "/v1/chat/completions"),
            ("http://h/", "/v1/chat/completions"),
            ("http://h/v1", "/v1/chat/completions"),
            ("http://h/v1/", "/v1/chat/completions"),
            ("http://h/openai/v1", "/openai/v1/chat/completions"),
            ("http://h/openai", "/openai/v1/chat/completions"),
            ("http://h/v1/chat/completions", "/v1/chat/completions"),
            ("http://h/av1", "/av1/v1/chat/completions"),
            ("http://h/v1/chat/comp", "/v1/chat/comp/v1/chat/completions"),
            ("http://h/d?api-version=1", "/d/v1/chat/completions?api-version=1"),
            ("http://h?a=/v1#f", "/v1/chat/completions?a=/v1"),
        ] {
            assert_eq!(joined(base, "/v1/chat/completions"), expected, "{base}");
        }
        assert_eq!(joined("http://h/v1?a=1", "/v1/x?b=/v1"), "/v1/x?b=/v1");
        assert!(BaseUrl::of("http://h/{key}/v1").unwrap_err().contains("--header"));
    }

    proptest! {
        /// A naive oracle: the most segments with which the one ends and the other begins.
        #[test]
        fn the_longest_common_part_counts_once(
            base in prop::collection::vec("[ab]{1,2}", 0..5),
            path in prop::collection::vec("[ab]{1,2}", 1..5),
        ) {
            let most = (0..=base.len().min(path.len())).rev().find(|n| base[base.len() - n..] == path[..*n]).unwrap();
            let all: Vec<String> = base.iter().chain(&path[most..]).cloned().collect();
            prop_assert_eq!(
                joined(&format!("http://h/{}", base.join("/")), &format!("/{}", path.join("/"))),
                format!("/{}", all.join("/"))
            );
        }
    }
}
