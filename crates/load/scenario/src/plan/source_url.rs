//! URLs as a file has them, before values are filled in.

use weir_hurl::{Template, TemplatePart};

use super::origin::RequestOrigin;
use weir_request::url::HttpUrl;
use weir_request::url_text::UrlText;

/// Text at the start of a URL, before any expression.
pub(super) fn first_text(url: &Template) -> &str {
    if let Some(TemplatePart::Text(text)) = url.parts.first() { text } else { "" }
}

/// Origin of a URL whose scheme, host and port nothing changes.
pub(super) fn fixed_origin(url: &Template) -> Option<RequestOrigin> {
    let start = UrlText::of(first_text(url));
    if start.after_authority.is_empty() {
        return None;
    }
    HttpUrl::parse(start.origin.as_bytes()).ok().map(|url| RequestOrigin::of(&url))
}

/// Whether a URL begins with a scheme of requests.
pub(super) fn has_scheme(url: &str) -> bool {
    let scheme = UrlText::of(url).scheme.unwrap_or_default();
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

/// The URL with parameters in its query string, and without its fragment.
pub(super) fn with_query(url: &str, query: &str) -> String {
    let url = url.split('#').next().unwrap_or_default();
    match url {
        url if query.is_empty() => url.to_owned(),
        url if url.ends_with('?') => format!("{url}{query}"),
        url if url.contains('?') => format!("{url}&{query}"),
        url => format!("{url}?{query}"),
    }
}
