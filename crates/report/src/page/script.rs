//! Script of an HTML report, made of the files of `script/`.

/// Charts as a module, for a page that makes them itself.
pub const CHART_MODULE: &str = concat!(
    include_str!("script/units.js"),
    include_str!("script/axis.js"),
    include_str!("script/dom.js"),
    include_str!("script/lines.js"),
    include_str!("script/cells.js"),
    include_str!("script/controls.js"),
    include_str!("script/chart.js"),
    "export { BOTTOM, Chart, TOP, element, firstFrom, scales, shape, units };\n"
);

/// The files in one function, so that their names are not global.
pub(super) const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("script/units.js"),
    include_str!("script/axis.js"),
    include_str!("script/dom.js"),
    include_str!("script/lines.js"),
    include_str!("script/cells.js"),
    include_str!("script/controls.js"),
    include_str!("script/chart.js"),
    include_str!("script/start.js"),
    "})();\n"
);
