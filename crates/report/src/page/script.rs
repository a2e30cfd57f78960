//! Script of an HTML report, made of the files of `script/`.

/// The files in one function, so that their names are not global.
pub(super) const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("script/units.js"),
    include_str!("script/axis.js"),
    include_str!("script/dom.js"),
    include_str!("script/lines.js"),
    include_str!("script/controls.js"),
    include_str!("script/chart.js"),
    include_str!("script/start.js"),
    "})();\n"
);
