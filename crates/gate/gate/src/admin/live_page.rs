//! Files of the live page. Its data are [`super::live_state`]'s; what it changes goes by the same requests as those of
//! any operator.

use std::sync::LazyLock;

use bytes::Bytes;
use http::{HeaderValue, Response, header};

use weir_page::{CHART_MODULE, HEAD, LIVE_STYLE, STYLE};
use weir_server::ResponseBody;

static HTML: LazyLock<String> = LazyLock::new(|| [HEAD, include_str!("live/live.html")].concat());
const SCRIPT: &str = concat!(
    include_str!("live/history.js"),
    include_str!("live/charts.js"),
    include_str!("live/tables.js"),
    include_str!("live/actions.js"),
    include_str!("live/live.js"),
);
static PAGE_STYLE: LazyLock<String> = LazyLock::new(|| [STYLE, LIVE_STYLE, include_str!("live/live.css")].concat());

/// Content policy of the page: no script, style or connection but those of this server, and no frame around it.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'",
);

/// File of the page at this path.
pub(super) fn file(path: &str) -> Option<Response<ResponseBody>> {
    let (content_type, text) = content(path)?;
    let mut response = Response::new(ResponseBody::from(Bytes::from_static(text.as_bytes())));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, POLICY);
    Some(response)
}

fn content(path: &str) -> Option<(&'static str, &'static str)> {
    match path {
        "/live" => Some(("text/html; charset=utf-8", HTML.as_str())),
        "/live/page.css" => Some(("text/css; charset=utf-8", PAGE_STYLE.as_str())),
        "/live/charts.js" => Some(("text/javascript; charset=utf-8", CHART_MODULE)),
        "/live/live.js" => Some(("text/javascript; charset=utf-8", SCRIPT)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_names_no_foreign_host() {
        let files = ["/live", "/live/page.css", "/live/charts.js", "/live/live.js"].map(content);
        let texts: Vec<&str> = files.into_iter().flatten().map(|(_, text)| text).collect();
        assert_eq!(texts.len(), files.len());
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        assert!(bytes <= 100_000, "{bytes} bytes");
        for text in texts {
            let known = text.replace("http://www.w3.org/", "");
            assert!(!known.contains("http://") && !known.contains("https://") && !known.contains("innerHTML"));
        }
        assert!(content("/live/").is_none() && content("/live/../config").is_none());
    }
}
