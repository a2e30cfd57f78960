//! `.http` and `.rest` files, of the REST Client of Visual Studio Code and of JetBrains.

mod block;
pub(crate) mod environment;
mod message;
mod parts;
mod reference;

use self::block::{HttpBlock, blocks};
use self::reference::ResponseReferences;
use crate::collection::ImportedScenario;
use crate::error::Mismatch;
use crate::placeholder::define;
use crate::session::ImportSession;

/// Reads a file, or an environment of JetBrains.
pub(crate) fn read(source: &str, session: &mut ImportSession) -> Result<Vec<ImportedScenario>, Mismatch> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let beginning = source.trim_start();
    if beginning.starts_with('{') && !beginning.starts_with("{{") {
        return environment::read(source, session).map(|()| Vec::new());
    }
    let mut scenario = ImportedScenario::default();
    let blocks: Vec<HttpBlock<'_>> = blocks(source);
    // Variables of a file hold in all of it, also before their line.
    for block in &blocks {
        for (line, name, value) in &block.variables {
            define(name, value, false, *line, session);
        }
    }
    let mut references = ResponseReferences::default();
    for block in &blocks {
        message::read(block, &mut references, session, &mut scenario);
    }
    references.add_captures(&mut scenario, session);
    session.end(&mut scenario);
    if scenario.steps.is_empty() && scenario.end_notes.is_empty() && session.import.variables.is_empty() {
        return Err(Mismatch::new(1, "a request, such as GET http://localhost:8080/", "none"));
    }
    Ok(vec![scenario])
}
