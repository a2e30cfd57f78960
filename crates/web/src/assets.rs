//! Files of the page.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageAsset {
    pub(crate) content_type: &'static str,
    pub(crate) text: &'static str,
}

const SCRIPT: &str = concat!(
    include_str!("assets/quantiles.js"),
    include_str!("assets/store.js"),
    include_str!("assets/stream.js"),
    include_str!("assets/charts.js"),
    include_str!("assets/controls.js"),
    include_str!("assets/live.js"),
);

/// File of a path.
pub(crate) fn asset(path: &str) -> Option<PageAsset> {
    let (content_type, text) = match path {
        "/" => ("text/html; charset=utf-8", include_str!("assets/index.html")),
        "/report.css" => ("text/css; charset=utf-8", weir_report::page::STYLE),
        "/live.css" => ("text/css; charset=utf-8", include_str!("assets/live.css")),
        "/charts.js" => ("text/javascript; charset=utf-8", weir_report::page::CHART_MODULE),
        "/live.js" => ("text/javascript; charset=utf-8", SCRIPT),
        _ => return None,
    };
    Some(PageAsset { content_type, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATHS: [&str; 5] = ["/", "/report.css", "/live.css", "/charts.js", "/live.js"];

    #[test]
    fn the_page_is_small_and_names_no_foreign_host() {
        let all: Vec<PageAsset> = PATHS.into_iter().filter_map(asset).collect();
        assert_eq!(all.len(), PATHS.len());
        let bytes: usize = all.iter().map(|asset| asset.text.len()).sum();
        assert!(bytes <= 300 << 10, "{bytes} bytes");
        for asset in all {
            let known = asset.text.replace("http://www.w3.org/", "");
            assert!(!known.contains("http://") && !known.contains("https://") && !known.contains("innerHTML"));
        }
        assert!(asset("/../Cargo.toml").is_none() && asset("").is_none());
    }
}
