//! Test plans of JMeter: the part that is HTTP.

mod argument;
mod assertion;
mod controller;
mod element;
mod extractor;
mod function;
mod sampler;
mod scope;
mod thread_group;
mod timer;

use roxmltree::{Document, ParsingOptions};
use weir_scenario::xml_bounds::check_xml;

use self::controller::PlanWalker;
use self::element::{LineStarts, PlanElement};
use crate::collection::ImportedScenario;
use crate::error::Mismatch;
use crate::session::ImportSession;

/// Elements and attributes of a plan, at most.
const MAX_NODES: u32 = 4_000_000;

/// Reads a plan: a scenario for each thread group.
pub(crate) fn read(text: &str, session: &mut ImportSession) -> Result<Vec<ImportedScenario>, Mismatch> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    // JMeter writes XML 1.1 now and then, which differs in nothing that a plan has.
    let text = match text.get(..80).and_then(|head| head.find("version=\"1.1\"")) {
        Some(at) => format!("{}version=\"1.0\"{}", &text[..at], &text[at + "version=\"1.1\"".len()..]),
        None => text.to_owned(),
    };
    check_xml(&text).map_err(|excess| Mismatch::new(excess.line, "XML of a test plan", excess.to_string()))?;
    let options = ParsingOptions { allow_dtd: false, nodes_limit: MAX_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&text, options)
        .map_err(|error| Mismatch::new(error.pos().row, "XML of a test plan", format!("text that is not: {error}")))?;
    let lines = LineStarts::new(&text);
    let root = document.root_element();
    if root.tag_name().name() != "jmeterTestPlan" {
        let line = lines.line(root.range().start);
        return Err(Mismatch::new(line, "<jmeterTestPlan>", format!("<{}>", root.tag_name().name())));
    }
    let mut walker = PlanWalker::new(session);
    if let Some(tree) = root.children().find(|node| node.has_tag_name("hashTree")) {
        let plan = PlanElement::children(tree, &lines);
        walker.plan(&plan);
    }
    Ok(walker.finish())
}
