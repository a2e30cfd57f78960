//! Command lines of cURL, as in a terminal, a script or a browser's clipboard.

mod ansi;
mod assignment;
mod braces;
mod cmd;
mod command;
mod data;
mod form;
mod glob;
mod letters;
mod marks;
mod options;
mod pipeline;
mod shell;
mod shell_command;
mod steps;

use self::shell_command::{ShellCommand, ShellInput, ShellScript};
use crate::collection::ImportedScenario;
use crate::error::Mismatch;
use crate::omission::OmissionKind;
use crate::session::ImportSession;

/// Words of a shell before a command that change nothing of what it sends.
const BEFORE: [&str; 18] = [
    "!", "do", "else", "elif", "env", "exec", "if", "nice", "nohup", "sudo", "then", "time", "timeout", "until",
    "while", "{", "command", "PS",
];

/// Words of a shell that are commands by themselves.
const ENDS: [&str; 8] = ["{", "}", "do", "done", "else", "esac", "fi", "then"];

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
    let ShellScript { commands, marks } = shell::commands(source, session);
    let mut written: Option<ShellInput> = None;
    let mut commands = commands.into_iter().peekable();
    while let Some(mut command) = commands.next() {
        command.line = command.line.saturating_add(first_line - 1);
        // Words that end a group send nothing.
        if let [word] = command.words.as_slice()
            && ENDS.contains(&word.as_str())
        {
            continue;
        }
        let input = written.take().filter(|_| command.is_piped);
        let is_read = commands.peek().is_some_and(|next| next.is_piped);
        let Some(at) = curl_at(&command) else {
            let words: Vec<String> = command.words.iter().map(|word| marks.shown(word)).collect();
            let is_known = if is_read {
                let output = pipeline::output(&command, input, &marks);
                let is_known = !matches!(output, ShellInput::Output(_));
                written = Some(output);
                is_known && commands.peek().is_some_and(|next| curl_at(next).is_some() || next.is_piped)
            } else {
                false
            };
            // What follows a pipe works on a response.
            if !is_known && !command.is_piped {
                session.omit(command.line, OmissionKind::Script, format!("the command {}", words.join(" ")));
            }
            continue;
        };
        if is_read {
            written = Some(ShellInput::Output("curl".to_owned()));
        }
        command.input = command.input.or(input);
        command.words.drain(..=at);
        command::read(&command, &marks, session, scenario);
    }
}

/// Number of the word that is the program; before it may be a prompt, variables and a program that runs it.
fn curl_at(command: &ShellCommand) -> Option<usize> {
    let is_curl = |word: &str| {
        let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
        name.eq_ignore_ascii_case("curl") || name.eq_ignore_ascii_case("curl.exe")
    };
    let at = command.words.iter().take(6).position(|word| is_curl(word))?;
    let may_be_before = |word: &String| {
        BEFORE.contains(&word.as_str())
            || word.starts_with('-')
            || word.ends_with(['$', '%', '#', '>'])
            || word.starts_with(|c: char| c.is_ascii_digit())
            || assignment::variable(word).is_some()
    };
    command.words[..at].iter().all(may_be_before).then_some(at)
}
