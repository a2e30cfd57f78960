//! Input and output of a shell's commands: files, documents within the script, and outputs of other commands.

use super::super::marks;
use super::super::shell_command::ShellInput;
use super::{HereDocument, Redirection, ShellSplitter};
use crate::omission::OmissionKind;
use crate::text;

impl<'a> ShellSplitter<'a, '_> {
    /// `>`, `>>`, `2>`, `&>`, `<`, `<<` or `<<<`, after its first character.
    pub(super) fn redirection(&mut self, c: char) {
        if c != '&' && self.rest.starts_with('(') {
            return self.process(c);
        }
        // The number before it is that of a descriptor.
        let is_descriptor =
            self.word.as_ref().is_some_and(|word| word.len() == 1 && word.starts_with(|c: char| c.is_ascii_digit()));
        if is_descriptor {
            self.word = None;
        } else {
            self.end_word();
        }
        if c != '<' {
            while self.rest.starts_with(['>', '&', '|']) && self.bump().is_some() {}
            self.redirection = Some(Redirection::Output);
        } else if self.eat("<<") {
            self.redirection = Some(Redirection::HereString);
        } else if self.eat("<") {
            self.document();
        } else {
            self.eat("&");
            self.redirection = Some(Redirection::Input);
        }
    }

    /// `<<END`: its lines are read where the line ends.
    fn document(&mut self) {
        let is_indented = self.eat("-");
        while self.rest.starts_with([' ', '\t']) && self.bump().is_some() {}
        let mut document = HereDocument { end: String::new(), is_indented, is_quoted: false };
        while let Some(c) = self.rest.chars().next().filter(|c| !c.is_whitespace() && !";|&<>()".contains(*c)) {
            self.bump();
            match c {
                '\'' | '"' | '\\' => document.is_quoted = true,
                c => document.end.push(c),
            }
        }
        self.command.document = Some(self.documents.len());
        self.documents.push(document);
    }

    /// Reads the lines of documents, which begin here.
    pub(super) fn read_documents(&mut self) {
        let documents = std::mem::take(&mut self.documents);
        for (number, document) in documents.into_iter().enumerate() {
            let word = self.word.replace(String::new());
            while !self.rest.is_empty() {
                let length = self.rest.find('\n').map_or(self.rest.len(), |at| at + 1);
                let line = self.rest[..length].trim_end_matches(['\n', '\r']);
                if document.is_indented {
                    let tabs = line.len() - line.trim_start_matches('\t').len();
                    self.skip(tabs);
                }
                let line = if document.is_indented { line.trim_start_matches('\t') } else { line };
                if line == document.end {
                    self.skip(line.len());
                    while self.bump().is_some_and(|c| c != '\n') {}
                    break;
                }
                self.document_line(document.is_quoted);
            }
            let text = std::mem::replace(&mut self.word, word).unwrap_or_default();
            let commands = &mut self.script.commands;
            if let Some(command) = commands.iter_mut().rev().find(|command| command.document == Some(number)) {
                (command.input, command.document) = (Some(ShellInput::Text(text)), None);
            }
        }
    }

    fn document_line(&mut self, is_quoted: bool) {
        while let Some(c) = self.bump() {
            match c {
                '\r' if self.rest.starts_with('\n') => {}
                '\n' => return self.push_char(c),
                '\\' if self.rest.starts_with('"') => self.push_char(c),
                c if is_quoted => self.push_char(c),
                c => self.in_double_quotes(c),
            }
        }
    }

    /// `<(...)`: the output of a command as a file.
    fn process(&mut self, c: char) {
        let inner = self.parenthesized();
        self.output_of(inner, &format!("{c}({inner})"));
    }

    /// `$(...)`: the output of a command, which becomes a variable.
    pub(super) fn substitution(&mut self) {
        let inner = self.parenthesized();
        self.output_of(inner, &format!("$({inner})"));
    }

    /// `` `...` ``, after the first of the two.
    pub(super) fn backquoted(&mut self) {
        let length = self.rest.find('`').unwrap_or(self.rest.len());
        let inner = &self.rest[..length];
        self.skip(length);
        self.bump();
        self.output_of(inner, &format!("`{inner}`"));
    }

    /// Text in parentheses, the first of which is next.
    fn parenthesized(&mut self) -> &'a str {
        self.bump();
        let start = self.rest;
        let (mut depth, mut quote) = (1, None);
        while let Some(c) = self.bump() {
            match (quote, c) {
                (Some(open), c) if open == c => quote = None,
                (None | Some('"'), '\\') => {
                    self.bump();
                }
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(c),
                (None, '(') => depth += 1,
                (None, ')') if depth == 1 => return &start[..start.len() - self.rest.len() - 1],
                (None, ')') => depth -= 1,
                (None, _) => {}
            }
        }
        start
    }

    /// Adds the output of a command: of `cat` the content of its file, of others a variable.
    fn output_of(&mut self, command: &str, shown: &str) {
        let command = command.trim();
        let file = command.strip_prefix("cat ").or_else(|| command.strip_prefix('<')).map(str::trim);
        let is_name = |name: &&str| !name.contains([' ', '\n', '$', '`', '*', '|', ';', '&', '<', '>', '(']);
        let content = file.filter(is_name).filter(|_| shown.starts_with(['$', '`'])).and_then(|name| {
            let name = name.trim_matches(['"', '\'']);
            self.session.read_file(name)
        });
        if let Some(bytes) = content {
            let end = bytes.iter().rposition(|byte| *byte != b'\n').map_or(0, |at| at + 1);
            return marks::push_bytes(self.word.get_or_insert_default(), &bytes[..end]);
        }
        self.omit(OmissionKind::Variable, &format!("the output of {shown}, a variable instead"));
        let name = self.session.names.name(command.split([' ', '\n', '/']).next().unwrap_or_default());
        self.push_template(&text::variable(&name));
    }
}
