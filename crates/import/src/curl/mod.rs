//! Command lines of cURL, as in a terminal, a script or a browser's clipboard.

mod command;
mod options;
mod shell;

use weir_hurl::Template;

use crate::collection::ImportedScenario;
use crate::error::Mismatch;
use crate::omission::OmissionKind;
use crate::session::ImportSession;
use crate::text;

/// Reads all commands of a text; others than cURL are omissions.
pub(crate) fn read(source: &str, session: &mut ImportSession) -> Result<Vec<ImportedScenario>, Mismatch> {
    let mut scenario = ImportedScenario::default();
    add(source, 1, session, &mut scenario);
    session.end(&mut scenario);
    if scenario.steps.is_empty() {
        return Err(Mismatch::new(1, "a command line such as curl http://localhost:8080/", "none"));
    }
    Ok(vec![scenario])
}

/// Adds the steps of the commands of a text that begins at a line.
pub(crate) fn add(source: &str, first_line: u32, session: &mut ImportSession, scenario: &mut ImportedScenario) {
    for mut shell in shell::commands(source, session) {
        shell.line = shell.line.saturating_add(first_line - 1);
        let is_curl = |word: &Template| {
            let name = word.as_text().and_then(|word| word.rsplit(['/', '\\']).next());
            name.is_some_and(|name| name.eq_ignore_ascii_case("curl") || name.eq_ignore_ascii_case("curl.exe"))
        };
        // Before the command may be a prompt, variables and a program that runs it.
        let Some(at) = shell.words.iter().take(6).position(is_curl) else {
            let words: Vec<String> = shell.words.iter().map(text::source).collect();
            session.omit(shell.line, OmissionKind::Script, format!("the command {}", words.join(" ")));
            continue;
        };
        shell.words.drain(..=at);
        command::read(&shell, session, scenario);
    }
}
