//! Style and charts that all pages have: HTML reports, the page of a load while it runs, and that of a gateway. So a chart
//! has one look and one set of keys.
//!
//! They are texts that a page includes as they are, without a build step.

/// Beginning of pages that change while they are open, up to the title.
pub const HEAD: &str = include_str!("head.html");

/// Colours, and the style of charts.
pub const CHART_STYLE: &str = include_str!("chart.css");

/// Style of all pages.
pub const STYLE: &str = concat!(include_str!("chart.css"), include_str!("page.css"));

/// Style of pages that change while they are open, after [`STYLE`].
pub const LIVE_STYLE: &str = include_str!("live.css");

/// Script of charts, whose files use those before them.
macro_rules! chart_script {
    () => {
        concat!(
            include_str!("script/units.js"),
            include_str!("script/axis.js"),
            include_str!("script/dom.js"),
            include_str!("script/lines.js"),
            include_str!("script/cells.js"),
            include_str!("script/controls.js"),
            include_str!("script/chart.js"),
        )
    };
}

/// Charts as a module, for a page that makes them itself, and lets them grow.
pub const CHART_MODULE: &str = concat!(
    chart_script!(),
    include_str!("script/live_chart.js"),
    "export { BOTTOM, Chart, LiveChart, TOP, element, figureOf, firstFrom, scales, shape, units };\n"
);

/// Script of an HTML report, which has the charts' data in it: the files in one function, so that their names are not
/// global.
pub const REPORT_SCRIPT: &str =
    concat!("\"use strict\";\n(() => {\n", chart_script!(), include_str!("script/start.js"), "})();\n");
