//! Kind of resource that a browser requests, and the page that a request belongs to. PURE.

use http::HeaderMap;

/// Resource type, in the words of Chromium's HAR files, of a request for a part of a page; `None` for pages, requests of
/// scripts, and clients that do not say it.
pub(crate) fn resource_type(headers: &HeaderMap) -> Option<&'static str> {
    match headers.get("sec-fetch-dest")?.as_bytes() {
        b"image" => Some("image"),
        b"font" => Some("font"),
        b"style" | b"xslt" => Some("stylesheet"),
        b"script" | b"worker" | b"serviceworker" | b"sharedworker" | b"audioworklet" | b"paintworklet" => {
            Some("script")
        }
        b"audio" | b"video" => Some("media"),
        b"manifest" => Some("manifest"),
        b"track" => Some("texttrack"),
        _ => None,
    }
}

/// Whether a request opens a page: a navigation of a window, not of a frame.
pub(crate) fn opens_page(headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &[u8]| headers.get(name).is_some_and(|own| own.as_bytes() == value);
    match headers.contains_key("sec-fetch-dest") {
        true => is("sec-fetch-dest", b"document"),
        // Browsers leave these headers out where the page is not served securely.
        false => {
            let accepts = headers.get("accept").map_or(&b""[..], http::HeaderValue::as_bytes);
            headers.contains_key("upgrade-insecure-requests") && accepts.starts_with(b"text/html")
        }
    }
}

/// Number of the page that a browser shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageCounter {
    page: u32,
    /// Whether the page's first response has sent the browser elsewhere.
    is_redirected: bool,
}

impl PageCounter {
    /// Number of the page of a request, from 1, and whether the request opens it; 0 before the first page.
    pub(crate) fn page_of(&mut self, opens_page: bool) -> (u32, bool) {
        let begins = opens_page && !self.is_redirected;
        if opens_page {
            self.is_redirected = false;
        }
        self.page += u32::from(begins);
        (self.page, begins)
    }

    /// Takes the status of the response to a request that opens a page: the target of a redirect is the same page.
    pub(crate) fn on_response(&mut self, opens_page: bool, status: u16) {
        if opens_page {
            self.is_redirected = matches!(status, 301 | 302 | 303 | 307 | 308);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn browsers_say_what_they_want_a_response_for() {
        assert_eq!(resource_type(&headers(&[("sec-fetch-dest", "style")])), Some("stylesheet"));
        assert_eq!(resource_type(&headers(&[("sec-fetch-dest", "empty")])), None);
        assert_eq!(resource_type(&headers(&[])), None);
    }

    #[test]
    fn a_redirect_leads_to_the_same_page() {
        let mut pages = PageCounter::default();
        assert_eq!(pages.page_of(false), (0, false));
        assert_eq!(pages.page_of(true), (1, true));
        pages.on_response(true, 302);
        assert_eq!(pages.page_of(false), (1, false));
        pages.on_response(false, 200);
        assert_eq!(pages.page_of(true), (1, false));
        pages.on_response(true, 200);
        assert_eq!(pages.page_of(true), (2, true));
    }

    #[test]
    fn a_page_is_opened_by_a_navigation() {
        assert!(opens_page(&headers(&[("sec-fetch-dest", "document"), ("sec-fetch-mode", "navigate")])));
        assert!(!opens_page(&headers(&[("sec-fetch-dest", "iframe"), ("upgrade-insecure-requests", "1")])));
        assert!(opens_page(&headers(&[("upgrade-insecure-requests", "1"), ("accept", "text/html,*/*;q=0.8")])));
        assert!(!opens_page(&headers(&[("accept", "*/*")])));
    }
}
