//! Words of command lines, as bash reads them.

mod redirection;

use std::collections::HashMap;

use weir_hurl::Template;

use super::marks::{self, MarkTable};
use super::shell_command::{ShellCommand, ShellInput, ShellScript};
use super::{ansi, assignment, braces, cmd};
use crate::omission::OmissionKind;
use crate::session::ImportSession;
use crate::text;

/// Most bytes of values that are split into words.
const MAX_SPLIT_BYTES: usize = 1 << 20;

/// Most values that variables of a script get.
const MAX_VALUES: usize = 1_000;

/// Splits a text into commands. Variables of the shell become expressions; what a command writes to is dropped.
pub(super) fn commands(text: &str, session: &mut ImportSession) -> ShellScript {
    if cmd::is_cmd(text) {
        return ShellScript { commands: cmd::commands(text), marks: MarkTable::default() };
    }
    let mut splitter = ShellSplitter {
        rest: text,
        line: 1,
        script: ShellScript { commands: Vec::new(), marks: MarkTable::default() },
        command: ShellCommand::default(),
        word: None,
        redirection: None,
        documents: Vec::new(),
        values: HashMap::new(),
        values_set: 0,
        split_bytes_left: MAX_SPLIT_BYTES,
        session,
    };
    splitter.run();
    splitter.script
}

/// Target of the next word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Redirection {
    Output,
    Input,
    HereString,
}

/// `<<END`, whose lines are still to come.
#[derive(Debug)]
struct HereDocument {
    end: String,
    is_indented: bool,
    is_quoted: bool,
}

/// Variable that the text sets.
#[derive(Debug)]
struct ShellVariable {
    name: String,
    value: String,
}

struct ShellSplitter<'a, 'b> {
    rest: &'a str,
    line: u32,
    script: ShellScript,
    command: ShellCommand,
    word: Option<String>,
    redirection: Option<Redirection>,
    documents: Vec<HereDocument>,
    values: HashMap<String, ShellVariable>,
    values_set: usize,
    /// Bytes of values that may still be split into words.
    split_bytes_left: usize,
    session: &'b mut ImportSession,
}

impl<'a> ShellSplitter<'a, '_> {
    fn bump(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        self.line = self.line.saturating_add(u32::from(c == '\n'));
        Some(c)
    }

    fn eat(&mut self, text: &str) -> bool {
        let is_next = self.rest.starts_with(text);
        if is_next {
            for _ in text.chars() {
                self.bump();
            }
        }
        is_next
    }

    fn push_char(&mut self, c: char) {
        marks::push_char(self.word.get_or_insert_default(), c);
    }

    fn push_mark(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn omit(&mut self, kind: OmissionKind, what: &str) {
        self.session.omit(self.line, kind, what);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if let Some(redirection) = self.redirection.take() {
            let word = braces::plain(&word);
            match redirection {
                Redirection::Output => {}
                Redirection::Input => self.command.input = Some(ShellInput::File(self.script.marks.shown(&word))),
                Redirection::HereString => self.command.input = Some(ShellInput::Text(word + "\n")),
            }
            return;
        }
        if self.command.words.is_empty() {
            self.command.line = self.line;
        }
        match braces::expand(&word) {
            Some(words) => self.command.words.extend(words),
            None => {
                self.omit(OmissionKind::Variable, &format!("braces that make more than {} words", braces::MAX_WORDS));
                self.command.words.push(braces::plain(&word));
            }
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.redirection = None;
        let command = std::mem::take(&mut self.command);
        if !command.words.is_empty() && !self.assign(&command) {
            self.script.commands.push(command);
        }
    }

    /// Takes the variables of a command that sets nothing else.
    fn assign(&mut self, command: &ShellCommand) -> bool {
        let Some(assigned) = assignment::variables(&command.words) else { return false };
        for (name, value) in assigned {
            if self.values_set >= MAX_VALUES {
                self.omit(OmissionKind::Variable, &format!("the value of {name}"));
                continue;
            }
            self.values_set += 1;
            let value_text = self.script.marks.template(value);
            let known = self.values.get(name);
            let own = match known {
                Some(known) if known.value == value => continue,
                Some(_) => self.session.names.unique(name),
                None => self.session.names.name(name),
            };
            assignment::define(&own, &value_text, self.session);
            self.values.insert(name.to_owned(), ShellVariable { name: own, value: value.to_owned() });
        }
        true
    }

    fn run(&mut self) {
        while let Some(c) = self.bump() {
            match c {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' => {
                    self.end_command();
                    self.read_documents();
                }
                ';' => self.end_command(),
                '#' if self.word.is_none() => while self.rest.starts_with(|c| c != '\n') && self.bump().is_some() {},
                '\\' => self.escaped(),
                // PowerShell's line continuation.
                '`' if self.rest.starts_with(['\n', '\r']) => self.skip_line_end(),
                '`' => self.backquoted(),
                '\'' => self.single_quoted(),
                '"' => self.double_quoted(),
                '$' if self.eat("'") => {
                    let length = ansi::push(self.rest, self.word.get_or_insert_default());
                    self.skip(length);
                }
                '$' if self.eat("\"") => self.double_quoted(),
                '$' => self.dollar(false),
                '|' if self.eat("|") => self.end_command(),
                '|' => {
                    self.eat("&");
                    self.end_command();
                    self.command.is_piped = true;
                }
                '&' if self.rest.starts_with('>') => self.redirection(c),
                '&' => {
                    let is_within = self.word.is_some() && !self.rest.starts_with(['&', ' ', '\n', '\r']);
                    if is_within && !self.rest.is_empty() && !self.eat("&") {
                        self.omit(OmissionKind::Setting, "what follows an & outside of quotes, where the command ends");
                    }
                    self.eat("&");
                    self.end_command();
                }
                '<' | '>' => self.redirection(c),
                '(' if self.word.is_none() && self.command.words.is_empty() => {}
                ')' => self.end_command(),
                '{' => self.push_mark(braces::OPEN),
                ',' => self.push_mark(braces::COMMA),
                '}' => self.push_mark(braces::CLOSE),
                c => self.push_char(c),
            }
        }
        self.end_command();
    }

    fn skip(&mut self, bytes: usize) {
        let end = self.rest.len() - bytes;
        while self.rest.len() > end {
            self.bump();
        }
    }

    fn skip_line_end(&mut self) {
        self.eat("\r");
        self.eat("\n");
    }

    fn escaped(&mut self) {
        if self.rest.starts_with(['\n', '\r']) {
            self.skip_line_end();
            return;
        }
        // Spaces after a backslash at the end of a line are a frequent mistake of copies.
        let after = self.rest.trim_start_matches([' ', '\t']);
        if after.len() < self.rest.len() && after.starts_with(['\n', '\r']) {
            self.omit(
                OmissionKind::Setting,
                "spaces after the \\ at the end of a line, where a shell ends the command",
            );
            self.rest = after;
            self.end_word();
            self.skip_line_end();
            return;
        }
        if let Some(c) = self.bump() {
            self.push_char(c);
        }
    }

    fn single_quoted(&mut self) {
        let length = self.rest.find('\'').unwrap_or(self.rest.len());
        let word = self.word.get_or_insert_default();
        self.rest[..length].chars().for_each(|c| marks::push_char(word, c));
        self.skip(length);
        self.bump();
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.bump() {
            match c {
                '"' => return,
                c => self.in_double_quotes(c),
            }
        }
    }

    /// Takes a character of a text in which only variables and outputs are replaced.
    fn in_double_quotes(&mut self, c: char) {
        match c {
            '\\' if self.rest.starts_with(['"', '\\', '$', '`']) => {
                let c = self.bump().unwrap_or('\\');
                self.push_char(c);
            }
            '\\' if self.rest.starts_with('\n') || self.rest.starts_with("\r\n") => self.skip_line_end(),
            '`' => self.backquoted(),
            '$' => self.dollar(true),
            c => self.push_char(c),
        }
    }

    /// Expands a `$`: a variable, a parameter, the output of a command, or a plain dollar sign.
    fn dollar(&mut self, is_quoted: bool) {
        match self.rest.chars().next() {
            Some('(') => self.substitution(),
            Some(c) if c == '{' || c == '_' || c.is_ascii_alphabetic() => self.variable(is_quoted),
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                self.bump();
                self.omit(OmissionKind::Variable, &format!("the parameter ${c} of the shell, a variable instead"));
                let name = self.session.names.name(&format!("parameter_{c}"));
                self.push_template(&text::variable(&name));
            }
            _ => self.push_char('$'),
        }
    }

    fn push_template(&mut self, template: &Template) {
        self.script.marks.push(self.word.get_or_insert_default(), template);
    }

    /// `$NAME` or `${NAME}`, after its `$`.
    fn variable(&mut self, is_quoted: bool) {
        let is_braced = self.eat("{");
        let length = self.rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let name = self.rest[..length].to_owned();
        self.skip(length);
        let mut default = None;
        if is_braced {
            let start = self.rest;
            while self.rest.starts_with(|c| c != '}' && c != '\n') && self.bump().is_some() {}
            let operation = &start[..start.len() - self.rest.len()];
            self.eat("}");
            let value = operation.strip_prefix(":-").or_else(|| operation.strip_prefix('-'));
            default = value.filter(|value| !value.contains(['$', '`', '"', '\'', '\\', '{'])).map(str::to_owned);
            if default.is_none() && !operation.is_empty() || name.is_empty() {
                let what = format!("the expansion ${{{name}{operation}}}, the variable itself instead");
                self.omit(OmissionKind::Variable, &what);
            }
        }
        let known = self.values.get(&name);
        if let Some(words) = known.filter(|known| {
            !is_quoted && known.value.contains([' ', '\t', '\n']) && known.value.len() <= self.split_bytes_left
        }) {
            // The shell splits it into words.
            let value = words.value.clone();
            self.split_bytes_left -= value.len();
            for c in value.chars() {
                if matches!(c, ' ' | '\t' | '\n') { self.end_word() } else { self.push_mark(c) }
            }
            return;
        }
        let own = match known {
            Some(known) => known.name.clone(),
            None => self.session.names.name(&name),
        };
        if let Some(default) = default {
            self.session.import.define(&own, &default, false);
        }
        self.push_template(&text::variable(&own));
    }
}
