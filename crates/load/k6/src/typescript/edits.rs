//! Changes of a text.

use oxc_span::Span;

/// Changes of a text, by their places.
#[derive(Debug)]
pub(super) struct Edits<'t> {
    text: &'t str,
    /// Start, end, and what is there instead.
    changes: Vec<(usize, usize, Change)>,
}

/// What is in place of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Change {
    /// Spaces, but for a first and a last character.
    Blank(Option<char>, Option<char>),
    /// A text, before the ends of lines that the part has.
    Text(String),
}

impl<'t> Edits<'t> {
    /// No change.
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, changes: Vec::new() }
    }

    /// Replaces a part by spaces.
    pub(super) fn blank(&mut self, start: u32, end: u32) {
        self.push(start, end, Change::Blank(None, None));
    }

    /// Replaces a part by spaces after a first character.
    pub(super) fn blank_after(&mut self, first: char, start: u32, end: u32) {
        self.push(start, end, Change::Blank(Some(first), None));
    }

    /// Replaces a part by spaces before a last character.
    pub(super) fn blank_before(&mut self, last: char, start: u32, end: u32) {
        self.push(start, end, Change::Blank(None, Some(last)));
    }

    /// Erases a statement or a member of a class: a semicolon keeps those around it apart.
    pub(super) fn erase_whole(&mut self, span: Span) {
        self.blank_after(';', span.start, span.end);
    }

    /// Replaces a part by a text. Lines keep their numbers.
    pub(super) fn replace(&mut self, start: u32, end: u32, text: String) {
        self.push(start, end, Change::Text(text));
    }

    fn push(&mut self, start: u32, end: u32, change: Change) {
        if start <= end {
            self.changes.push((start as usize, end as usize, change));
        }
    }

    /// Part of the text.
    pub(super) fn part(&self, start: u32, end: u32) -> &'t str {
        self.text.get(start as usize..end as usize).unwrap_or("")
    }

    /// First place from `at` on that is neither space nor comment.
    pub(super) fn skip_trivia(&self, at: u32) -> u32 {
        let mut rest = self.text.get(at as usize..).unwrap_or("");
        loop {
            rest = rest.trim_start();
            let skipped = match rest {
                _ if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
                _ if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                _ => return u32::try_from(self.text.len() - rest.len()).unwrap_or(at),
            };
            rest = rest.get(skipped..).unwrap_or("");
        }
    }

    /// Place of a sign if it is the next one from `at` on.
    pub(super) fn next_sign(&self, at: u32, sign: char) -> Option<u32> {
        let at = self.skip_trivia(at);
        self.text.get(at as usize..)?.starts_with(sign).then_some(at)
    }

    /// Erases a sign of one byte if it is the next one from `at` on.
    pub(super) fn blank_sign(&mut self, at: u32, sign: char) {
        if let Some(at) = self.next_sign(at, sign) {
            self.blank(at, at + 1);
        }
    }

    /// Erases a sign of one byte if it is the last one before `at`.
    pub(super) fn blank_sign_before(&mut self, at: u32, sign: char) {
        let before = self.part(0, at).trim_end();
        if before.ends_with(sign) {
            let end = u32::try_from(before.len()).unwrap_or(at);
            self.blank(end - 1, end);
        }
    }

    /// Words of a part without comments, with their places.
    pub(super) fn words(&self, start: u32, end: u32) -> Vec<(u32, u32)> {
        let mut words = Vec::new();
        let mut at = self.skip_trivia(start);
        while at < end {
            let rest = self.part(at, end);
            let is_word = |sign: char| sign.is_alphanumeric() || sign == '_' || sign == '$';
            let length = rest.find(|sign| !is_word(sign)).unwrap_or(rest.len());
            let length = if length == 0 {
                rest.chars().next().map_or(1, char::len_utf8)
            } else {
                words.push((at, at + u32::try_from(length).unwrap_or(0)));
                length
            };
            at = self.skip_trivia(at + u32::try_from(length).unwrap_or(1));
        }
        words
    }

    /// Text with the changes; those within an erased part are lost.
    pub(super) fn applied(mut self) -> String {
        self.changes.sort_by_key(|(start, end, _)| (*start, std::cmp::Reverse(*end)));
        // An insertion at the start of a change is before it.
        let mut changes: Vec<_> = std::mem::take(&mut self.changes);
        changes.sort_by_key(|(start, end, _)| (*start, start != end));
        let mut made = String::with_capacity(self.text.len() + 64);
        let mut at = 0;
        for (start, end, change) in changes {
            if start < at {
                continue;
            }
            made.push_str(self.text.get(at..start).unwrap_or(""));
            let part = self.text.get(start..end).unwrap_or("");
            match change {
                Change::Blank(first, last) => push_blank(&mut made, part, first, last),
                Change::Text(text) => {
                    made.push_str(&text);
                    made.extend(part.chars().filter(|sign| is_line_end(*sign)));
                }
            }
            at = end;
        }
        made.push_str(self.text.get(at..).unwrap_or(""));
        made
    }
}

fn is_line_end(sign: char) -> bool {
    matches!(sign, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

fn push_blank(made: &mut String, part: &str, first: Option<char>, last: Option<char>) {
    let count = part.chars().count();
    for (index, sign) in part.chars().enumerate() {
        let kept = match index {
            0 if first.is_some() => first,
            _ if index + 1 == count => last,
            _ => None,
        };
        made.push(match kept {
            Some(kept) => kept,
            None if is_line_end(sign) => sign,
            None => ' ',
        });
    }
}
