//! Words of command lines, as a POSIX shell or Windows' cmd reads them.

use weir_hurl::{Template, TemplatePart};

use crate::session::ImportSession;
use crate::text;

/// Command with its words.
#[derive(Debug, Default)]
pub(super) struct ShellCommand {
    pub(super) line: u32,
    pub(super) words: Vec<Template>,
}

/// Splits a text into commands. Variables of the shell become expressions; what a command writes to and reads from, and
/// commands after a pipe, are dropped.
pub(super) fn commands(text: &str, session: &mut ImportSession) -> Vec<ShellCommand> {
    // cmd escapes with carets, as browsers copy "cURL (cmd)".
    let is_cmd = text.contains("^\"") || text.contains("^\r\n") || text.contains("^\n");
    let mut splitter = ShellSplitter {
        rest: text,
        line: 1,
        is_cmd,
        commands: Vec::new(),
        command: ShellCommand::default(),
        word: None,
        is_ignored: false,
        session,
    };
    splitter.run();
    splitter.commands
}

struct ShellSplitter<'a, 'b> {
    rest: &'a str,
    line: u32,
    is_cmd: bool,
    commands: Vec<ShellCommand>,
    command: ShellCommand,
    word: Option<Vec<TemplatePart>>,
    /// Whether words belong to a redirection or to a command after a pipe.
    is_ignored: bool,
    session: &'b mut ImportSession,
}

impl ShellSplitter<'_, '_> {
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

    fn push(&mut self, part: TemplatePart) {
        self.word.get_or_insert_default().push(part);
    }

    fn push_char(&mut self, c: char) {
        match self.word.get_or_insert_default().last_mut() {
            Some(TemplatePart::Text(text)) => text.push(c),
            _ => self.push(TemplatePart::Text(c.to_string())),
        }
    }

    fn end_word(&mut self) {
        let Some(parts) = self.word.take() else { return };
        if self.is_ignored {
            return;
        }
        if self.command.words.is_empty() {
            self.command.line = self.line;
        }
        self.command.words.push(text::from_parts(parts));
    }

    fn end_command(&mut self) {
        self.end_word();
        self.is_ignored = false;
        let command = std::mem::take(&mut self.command);
        if !command.words.is_empty() {
            self.commands.push(command);
        }
    }

    fn run(&mut self) {
        loop {
            let escape = if self.is_cmd { '^' } else { '\\' };
            let Some(c) = self.bump() else { break };
            match c {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' | ';' => self.end_command(),
                '#' if self.word.is_none() => while self.rest.starts_with(|c| c != '\n') && self.bump().is_some() {},
                c if c == escape => self.escaped(),
                // PowerShell's line continuation.
                '`' if self.rest.starts_with(['\n', '\r']) => self.skip_line_end(),
                '\'' if !self.is_cmd => self.single_quoted(),
                '"' => self.double_quoted(),
                '$' if !self.is_cmd && self.eat("'") => self.ansi_quoted(),
                '$' if !self.is_cmd
                    && self.rest.starts_with(|c: char| c == '{' || c == '_' || c.is_ascii_alphabetic()) =>
                {
                    self.variable();
                }
                '$' if !self.is_cmd && self.rest.starts_with('(') => self.substitution(),
                '|' if self.eat("|") => self.end_command(),
                '|' => {
                    self.end_word();
                    self.is_ignored = true;
                }
                '&' if self.word.is_none() || self.rest.starts_with(['&', ' ', '\n', '\r']) || self.rest.is_empty() => {
                    self.eat("&");
                    self.end_command();
                }
                '>' | '<' if self.word.is_none() || self.is_descriptor() => self.redirection(),
                c => self.push_char(c),
            }
        }
        self.end_command();
    }

    /// Whether the word so far is the number before a redirection, as in `2>`.
    fn is_descriptor(&self) -> bool {
        matches!(self.word.as_deref(), Some([TemplatePart::Text(text)]) if text == "1" || text == "2")
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
            self.rest = after;
            self.end_word();
            self.skip_line_end();
            return;
        }
        match self.bump() {
            Some('"') if self.is_cmd => self.double_quoted(),
            Some(c) => self.push_char(c),
            None => {}
        }
    }

    fn single_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.bump() {
            if c == '\'' {
                return;
            }
            self.push_char(c);
        }
    }

    fn double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.bump() {
            match c {
                '"' => return,
                '^' if self.is_cmd => match self.bump() {
                    Some('"') => return,
                    Some('\\') if self.eat("^\"") => self.push_char('"'),
                    Some('\n' | '\r') => {
                        self.eat("\n");
                        self.push_char('\n');
                    }
                    Some(c) => self.push_char(c),
                    None => return,
                },
                '\\' if self.rest.starts_with(['"', '\\', '$', '`']) => {
                    let c = self.bump().unwrap_or('\\');
                    self.push_char(c);
                }
                '\\' if !self.is_cmd && self.eat("\n") => {}
                '$' if !self.is_cmd && self.rest.starts_with('(') => self.substitution(),
                '$' if !self.is_cmd
                    && self.rest.starts_with(|c: char| c == '{' || c == '_' || c.is_ascii_alphabetic()) =>
                {
                    self.variable();
                }
                c => self.push_char(c),
            }
        }
    }

    /// `$'...'` of bash.
    fn ansi_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.bump() {
            match c {
                '\'' => return,
                '\\' => {
                    let c = match self.bump() {
                        Some('n') => '\n',
                        Some('r') => '\r',
                        Some('t') => '\t',
                        Some('b') => '\u{8}',
                        Some('f') => '\u{c}',
                        Some('x') => self.code_point(2),
                        Some('u') => self.code_point(4),
                        Some('U') => self.code_point(8),
                        Some(c) => c,
                        None => return,
                    };
                    self.push_char(c);
                }
                c => self.push_char(c),
            }
        }
    }

    fn code_point(&mut self, max_digits: usize) -> char {
        let digits = self.rest.bytes().take(max_digits).take_while(u8::is_ascii_hexdigit).count();
        let value = u32::from_str_radix(&self.rest[..digits], 16).ok().and_then(char::from_u32);
        self.rest = &self.rest[digits..];
        value.unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// `$NAME` or `${NAME}`, after its `$`.
    fn variable(&mut self) {
        let is_braced = self.eat("{");
        let length = self.rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let name = &self.rest[..length];
        self.rest = &self.rest[length..];
        if is_braced {
            // Defaults, as in ${NAME:-value}, are dropped.
            while self.rest.starts_with(|c| c != '}' && c != '\n') && self.bump().is_some() {}
            self.eat("}");
        }
        if name.is_empty() {
            self.push_char('$');
            return;
        }
        let name = self.session.names.name(name);
        text::variable(&name).parts.into_iter().for_each(|part| self.push(part));
    }

    /// `$(...)`: the output of a command, which becomes a variable.
    fn substitution(&mut self) {
        self.bump();
        let (start, line) = (self.rest, self.line);
        let mut depth = 1;
        while depth > 0 {
            match self.bump() {
                Some('(') => depth += 1,
                Some(')') => depth -= 1,
                Some(_) => {}
                None => break,
            }
        }
        let command = start[..start.len() - self.rest.len()].trim_end_matches(')');
        let what = format!("the output of $({command}), a variable instead");
        self.session.omit(line, crate::OmissionKind::Variable, what);
        let name = self.session.names.name(command.split([' ', '\n', '/']).next().unwrap_or_default());
        text::variable(&name).parts.into_iter().for_each(|part| self.push(part));
    }

    /// Drops the file of `>`, `>>`, `2>` or `<`.
    fn redirection(&mut self) {
        self.word = None;
        while self.rest.starts_with(['>', '<', '&', ' ', '-']) && self.bump().is_some() {}
        while self.rest.starts_with(|c: char| !c.is_whitespace() && c != ';' && c != '|') && self.bump().is_some() {}
    }
}
