//! Requests and environments of Bruno: `.bru` files, and its export as JSON.

mod blocks;
mod checks;
mod collection;
mod request;

use self::blocks::BruFile;
use crate::collection::ImportedScenario;
use crate::error::Mismatch;
use crate::placeholder;
use crate::session::ImportSession;
use crate::tree::parse_json;

/// Reads a file.
pub(crate) fn read(text: &str, session: &mut ImportSession) -> Result<Vec<ImportedScenario>, Mismatch> {
    let text = text.trim_start_matches('\u{feff}');
    let mut scenario = ImportedScenario::default();
    if text.trim_start().starts_with('{') {
        let root = parse_json(text)?;
        let Some(items) = root.get("items") else {
            return Err(Mismatch::new(root.line, "an export with \"items\"", root.noun()));
        };
        collection::read(&root, items, session, &mut scenario);
        session.end(&mut scenario);
        return Ok(vec![scenario]);
    }
    let file = BruFile::read(text)?;
    for (line, name, value) in file.pairs("vars").into_iter().chain(file.pairs("vars:pre-request")) {
        placeholder::define(name, value, false, line, session);
    }
    request::add(&file, session, &mut scenario);
    session.end(&mut scenario);
    Ok(vec![scenario])
}
