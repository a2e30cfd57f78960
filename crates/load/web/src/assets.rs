//! Files of the pages.

use std::sync::LazyLock;

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageAsset {
    pub(crate) content_type: &'static str,
    pub(crate) text: &'static str,
}

/// Page of a load, between the parts that other pages add.
static HTML: LazyLock<String> = LazyLock::new(|| [weir_page::HEAD, HEAD, TOP, LIVE, FOOT].concat());
static UI_HTML: LazyLock<String> = LazyLock::new(|| {
    let (head, nav) = (include_str!("assets/ui_head.html"), include_str!("assets/ui_nav.html"));
    [weir_page::HEAD, HEAD, head, TOP, nav, LIVE, include_str!("assets/ui.html"), FOOT].concat()
});
const HEAD: &str = include_str!("assets/head.html");
const TOP: &str = include_str!("assets/top.html");
const LIVE: &str = include_str!("assets/live.html");
const FOOT: &str = include_str!("assets/foot.html");
const UI_SCRIPT: &str = concat!(
    include_str!("assets/ui_views.js"),
    include_str!("assets/ui_history.js"),
    include_str!("assets/ui_trends.js"),
    include_str!("assets/ui_form.js"),
    include_str!("assets/ui.js"),
);
const SCRIPT: &str = concat!(
    include_str!("assets/quantiles.js"),
    include_str!("assets/store.js"),
    include_str!("assets/stream.js"),
    include_str!("assets/charts.js"),
    include_str!("assets/heat.js"),
    include_str!("assets/controls.js"),
    include_str!("assets/live.js"),
);

/// One file, since the first paint waits for each: that of reports, and what is new.
static PAGE_STYLE: LazyLock<String> =
    LazyLock::new(|| [weir_page::STYLE, weir_page::LIVE_STYLE, include_str!("assets/live.css")].concat());

/// File of the page of a load.
pub(crate) fn asset(path: &str) -> Option<PageAsset> {
    let (content_type, text) = match path {
        "/" => ("text/html; charset=utf-8", HTML.as_str()),
        "/page.css" => ("text/css; charset=utf-8", PAGE_STYLE.as_str()),
        "/charts.js" => ("text/javascript; charset=utf-8", weir_page::CHART_MODULE),
        "/live.js" => ("text/javascript; charset=utf-8", SCRIPT),
        _ => return None,
    };
    Some(PageAsset { content_type, text })
}

/// File of the page of `weir ui`.
pub(crate) fn ui_asset(path: &str) -> Option<PageAsset> {
    let (content_type, text) = match path {
        "/" => ("text/html; charset=utf-8", UI_HTML.as_str()),
        "/ui.css" => ("text/css; charset=utf-8", include_str!("assets/ui.css")),
        "/ui.js" => ("text/javascript; charset=utf-8", UI_SCRIPT),
        _ => return asset(path),
    };
    Some(PageAsset { content_type, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [&str; 6] = ["/", "/page.css", "/charts.js", "/live.js", "/ui.css", "/ui.js"];

    #[test]
    fn the_page_is_small_and_names_no_foreign_host() {
        let all: Vec<PageAsset> = PATHS.into_iter().filter_map(ui_asset).collect();
        assert_eq!(all.len(), PATHS.len());
        let bytes: usize = all.iter().map(|asset| asset.text.len()).sum();
        assert!(bytes <= 300 << 10, "{bytes} bytes");
        for asset in all {
            let known = asset.text.replace("http://www.w3.org/", "").replace("http://localhost:8080/", "");
            assert!(!known.contains("http://") && !known.contains("https://") && !known.contains("innerHTML"));
        }
        assert!(asset("/../Cargo.toml").is_none() && asset("").is_none());
    }
}
