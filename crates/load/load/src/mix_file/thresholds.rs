//! `[thresholds]` of a mix file: objectives, and a condition that ends the run early.

use crate::objectives::PlacedObjective;
use weir_document::read::DocumentNode;
use weir_measure::abort::{AbortRule, DEFAULT_ABORT_WINDOW};
use weir_measure::slo::Slo;

/// Objectives with their places in the file, and the condition of `abort`.
pub(super) fn read(node: &DocumentNode<'_>) -> (Vec<PlacedObjective>, Option<AbortRule>) {
    let (mut slos, mut abort) = (Vec::new(), None);
    for member in node.table().map(|table| table.members()).unwrap_or_default() {
        if member.key == "abort" {
            abort = self::abort(&member.node);
            continue;
        }
        let Some(limit) = member.node.string() else { continue };
        match format!("{} {}", member.key, limit.trim()).parse::<Slo>() {
            Ok(slo) => {
                let at = node.diagnostics().position(member.node.start());
                slos.push(PlacedObjective { slo, place: format!("{}:{}: {}", at.line, at.column, member.node.path) });
            }
            Err(why) => member.node.error(why, ""),
        }
    }
    (slos, abort)
}

/// `{ when = "errors > 20%", after = "10s" }`, or the condition alone.
fn abort(node: &DocumentNode<'_>) -> Option<AbortRule> {
    let (when, window) = if node.is_string() {
        (node.clone(), None)
    } else {
        let table = node.table()?;
        let (when, window) = (table.get("when"), table.get("after"));
        table.check_unknown_keys();
        let Some(when) = when else {
            table.error("abort without when", r#"write { when = "errors > 20%", after = "10s" }"#);
            return None;
        };
        (when, window.and_then(|node| node.time()))
    };
    let condition = when.string()?.parse::<Slo>();
    let rule = condition.and_then(|condition| AbortRule::new(condition, window.unwrap_or(DEFAULT_ABORT_WINDOW)));
    rule.map_err(|why| when.error(why, "")).ok()
}
