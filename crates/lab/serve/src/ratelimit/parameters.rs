//! Parameters of a request.

use std::borrow::Cow;

/// Parameters of the query, then of the form; the first of a name counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestParameters<'a> {
    query: &'a [u8],
    form: &'a [u8],
}

impl<'a> RequestParameters<'a> {
    pub(super) fn new(query: &'a str, form: &'a [u8]) -> Self {
        Self { query: query.as_bytes(), form }
    }

    pub(super) fn get(&self, name: &str) -> Option<Cow<'a, str>> {
        let all = form_urlencoded::parse(self.query).chain(form_urlencoded::parse(self.form));
        all.into_iter().find(|(of, _)| of == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::RequestParameters;

    #[test]
    fn the_query_wins_and_the_first_counts() {
        let parameters = RequestParameters::new("a=1&a=2&b=&c", b"a=3&d=%C3%A9+e");
        let get = |name| parameters.get(name).map(std::borrow::Cow::into_owned);
        assert_eq!(get("a").as_deref(), Some("1"));
        assert_eq!(get("b").as_deref(), Some(""));
        assert_eq!(get("c").as_deref(), Some(""));
        assert_eq!(get("d").as_deref(), Some("é e"));
        assert_eq!(get("e"), None);
    }
}
