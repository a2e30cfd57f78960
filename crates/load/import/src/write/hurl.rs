//! Scenarios as `.hurl` text.

use super::entry::{comment, entry};
use crate::collection::ImportedScenario;

/// Text of a scenario in the format of `.hurl` files. A step that is disabled is a comment.
pub fn to_hurl(scenario: &ImportedScenario) -> String {
    let mut blocks = Vec::new();
    if !scenario.notes.is_empty() {
        blocks.push(comments(&scenario.notes));
    }
    for step in &scenario.steps {
        if !step.is_disabled {
            blocks.push(entry(step).to_string());
            continue;
        }
        let notes = comments(&step.notes);
        let lines = entry(&crate::ImportedStep { notes: Vec::new(), ..step.clone() }).to_string();
        // What is said of a step that is not played is not said of the next one.
        let lines = lines.lines().filter(|line| !line.starts_with("# @"));
        let hidden: String = lines.map(|line| comment(line).to_string()).collect();
        blocks.push(notes + &hidden);
    }
    if !scenario.end_notes.is_empty() {
        blocks.push(comments(&scenario.end_notes));
    }
    blocks.join("\n")
}

fn comments(notes: &[String]) -> String {
    notes.iter().map(|note| comment(note).to_string()).collect()
}
