//! Metrics of some tags, as thresholds name them: `http_req_duration{scenario:a, status:200}`.

/// Name of a metric, and the tags that its values must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TagSelector {
    /// As it is written.
    pub(crate) text: String,
    pub(crate) metric: String,
    /// Names and values.
    pub(crate) tags: Vec<(String, String)>,
}

impl TagSelector {
    /// Reads a selector.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("invalid metric '{text}'; write e.g. http_req_duration{{scenario:login}}");
        let (metric, tags) = match text.split_once('{') {
            None => (text.trim(), Vec::new()),
            Some((metric, rest)) => {
                let inner = rest.trim_end().strip_suffix('}').ok_or_else(invalid)?;
                let pair = |part: &str| {
                    let (name, value) = part.split_once(':')?;
                    let unquoted = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
                    Some((unquoted(name), unquoted(value))).filter(|(name, _)| !name.is_empty())
                };
                let parts = inner.split(',').map(str::trim).filter(|part| !part.is_empty());
                (metric.trim(), parts.map(pair).collect::<Option<Vec<_>>>().ok_or_else(invalid)?)
            }
        };
        if metric.is_empty() {
            return Err(invalid());
        }
        Ok(Self { text: text.to_owned(), metric: metric.to_owned(), tags })
    }

    /// Whether a value belongs to it; `tag_of` has the value's tags.
    pub(crate) fn matches(&self, mut has_tag: impl FnMut(&str, &str) -> bool) -> bool {
        self.tags.iter().all(|(name, value)| has_tag(name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_has_a_metric_and_tags() {
        let parsed = |text: &str| TagSelector::parse(text).map(|selector| (selector.metric, selector.tags));
        let tag = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(parsed("checks"), Ok(("checks".to_owned(), vec![])));
        let two = vec![tag("scenario", "a"), tag("url", "http://x/y")];
        assert_eq!(parsed("http_reqs{scenario:a, url:http://x/y}"), Ok(("http_reqs".to_owned(), two)));
        assert_eq!(parsed("http_reqs{group:::login}"), Ok(("http_reqs".to_owned(), vec![tag("group", "::login")])));
        assert_eq!(parsed("http_reqs{ }"), Ok(("http_reqs".to_owned(), vec![])));
        for wrong in ["", "{a:b}", "x{a}", "x{a:b", "x{:b}"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
