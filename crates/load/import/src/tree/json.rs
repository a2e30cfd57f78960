//! JSON to trees.

use std::borrow::Cow;

use super::MAX_DEPTH;
use super::node::{SourceNode, SourceText, SourceValue};
use crate::error::Mismatch;

/// Parses a JSON document.
///
/// # Errors
/// The first syntax error.
pub(crate) fn parse_json(text: &str) -> Result<SourceNode<'_>, Mismatch> {
    parse_json_to(text, usize::MAX)
}

/// Parses a JSON document whose lists and objects at `depth` are checked and left unread, until [`SourceNode::read`]
/// reads one: the tree of a recording takes several times the memory of its text.
///
/// # Errors
/// The first syntax error, at any depth.
pub(crate) fn parse_json_to(text: &str, depth: usize) -> Result<SourceNode<'_>, Mismatch> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = JsonTreeReader { text, at: 0, line: 1, counted: 0, max_depth: depth };
    let node = reader.value(0)?;
    reader.skip_spaces();
    if reader.at < text.len() { Err(reader.mismatch("the end of the file")) } else { Ok(node) }
}

struct JsonTreeReader<'a> {
    text: &'a str,
    at: usize,
    /// Line of the byte at `counted`.
    line: u32,
    counted: usize,
    /// Depth of what is left unread.
    max_depth: usize,
}

impl<'a> SourceNode<'a> {
    /// The node with all that is below it.
    pub(crate) fn read(&self) -> Self {
        let SourceValue::Unread(text) = self.value else { return self.clone() };
        let line = self.line;
        let mut reader = JsonTreeReader { text, at: 0, line, counted: 0, max_depth: usize::MAX };
        // The syntax has been checked.
        reader.value(0).unwrap_or(Self { line, value: SourceValue::Null })
    }
}

impl<'a> JsonTreeReader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn line(&mut self) -> u32 {
        let new = self.text.as_bytes()[self.counted..self.at].iter().filter(|byte| **byte == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(new).unwrap_or(u32::MAX));
        self.counted = self.at;
        self.line
    }

    fn mismatch(&mut self, expected: &str) -> Mismatch {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let found = match rest.chars().next() {
            None => "the end of the file".to_owned(),
            Some(_) => {
                let shown: String = rest.chars().take_while(|c| !c.is_control()).take(20).collect();
                if shown.is_empty() { "a control character".to_owned() } else { format!("'{shown}'") }
            }
        };
        Mismatch::new(self.line(), expected, found)
    }

    fn skip_spaces(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<SourceNode<'a>, Mismatch> {
        self.skip_spaces();
        if depth > MAX_DEPTH {
            return Err(self.mismatch(&format!("at most {MAX_DEPTH} lists and objects within one another")));
        }
        let (line, start) = (self.line(), self.at);
        let value = match self.peek() {
            Some(b'{') => self.map(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => SourceValue::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') if self.eat("true") => SourceValue::Bool(true),
            Some(b'f') if self.eat("false") => SourceValue::Bool(false),
            Some(b'n') if self.eat("null") => SourceValue::Null,
            _ => return Err(self.mismatch("a JSON value")),
        };
        let value = match value {
            SourceValue::Map(_) | SourceValue::List(_) if depth == self.max_depth => {
                SourceValue::Unread(&self.text[start..self.at])
            }
            value => value,
        };
        Ok(SourceNode { line, value })
    }

    fn eat(&mut self, word: &str) -> bool {
        let is_next = self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word));
        self.at += if is_next { word.len() } else { 0 };
        is_next
    }

    fn map(&mut self, depth: usize) -> Result<SourceValue<'a>, Mismatch> {
        self.at += 1;
        let mut members = Vec::new();
        loop {
            self.skip_spaces();
            if members.is_empty() && self.eat("}") {
                break;
            }
            if self.peek() != Some(b'"') {
                return Err(self.mismatch("a name in double quotes"));
            }
            let name = self.string()?;
            self.skip_spaces();
            if !self.eat(":") {
                return Err(self.mismatch("':'"));
            }
            members.push((name, self.value(depth + 1)?));
            self.skip_spaces();
            if self.eat("}") {
                break;
            }
            if !self.eat(",") {
                return Err(self.mismatch("',' or '}'"));
            }
        }
        members.shrink_to_fit();
        Ok(SourceValue::Map(members))
    }

    fn list(&mut self, depth: usize) -> Result<SourceValue<'a>, Mismatch> {
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_spaces();
            if items.is_empty() && self.eat("]") {
                break;
            }
            items.push(self.value(depth + 1)?);
            self.skip_spaces();
            if self.eat("]") {
                break;
            }
            if !self.eat(",") {
                return Err(self.mismatch("',' or ']'"));
            }
        }
        items.shrink_to_fit();
        Ok(SourceValue::List(items))
    }

    fn string(&mut self) -> Result<SourceText<'a>, Mismatch> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut at = start;
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
                None => return Err(self.mismatch("a string with a closing quote")),
            }
        }
        // An escaped character of several bytes is skipped in its middle, and ends before the quote anyway.
        let Some(text) = self.text.get(start..at) else { return Err(self.mismatch("a string")) };
        self.at = at + 1;
        Ok(SourceText::Escaped(text))
    }

    fn number(&mut self) -> Result<SourceValue<'a>, Mismatch> {
        let start = self.at;
        let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E');
        while self.peek().is_some_and(is_part) {
            self.at += 1;
        }
        let digits = &self.text[start..self.at];
        if serde_json::from_str::<serde_json::Number>(digits).is_err() {
            self.at = start;
            return Err(self.mismatch("a number"));
        }
        Ok(SourceValue::Number(Cow::Borrowed(digits)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nodes_have_their_lines() {
        let node = parse_json("{\n \"a\": [1,\n  {\"b\": \"x\\n\"}],\n\"c\": null}").unwrap();
        assert_eq!(node.get("a").unwrap().items()[1].line, 3);
        assert_eq!(node.get("c").unwrap().line, 4);
        assert_eq!(node.to_json(), r#"{"a": [1, {"b": "x\n"}], "c": null}"#);
    }

    #[test]
    fn an_error_has_its_line_and_what_is_expected() {
        let error = |text| {
            let Mismatch { line, expected, found } = parse_json(text).unwrap_err();
            format!("{line}: expected {expected}, found {found}")
        };
        assert_eq!(error("{\n\"a\": }"), "2: expected a JSON value, found '}'");
        assert_eq!(error("[1 2]"), "1: expected ',' or ']', found '2]'");
        assert_eq!(error("{\"a\": \"x"), "1: expected a string with a closing quote, found '\"x'");
        assert_eq!(error(""), "1: expected a JSON value, found the end of the file");
        assert!(error(&"[".repeat(100_000)).contains("at most 100 lists"));
    }

    #[test]
    fn what_is_left_unread_is_read_later_with_its_lines() {
        let text = "{\"log\": {\n\"entries\": [\n{\"a\": 1},\n[{\"b\":\n\"x\"}], 7]}}";
        let (whole, partly) = (parse_json(text).unwrap(), parse_json_to(text, 3).unwrap());
        fn entries<'a>(root: &SourceNode<'a>) -> Vec<SourceNode<'a>> {
            root.get("log").unwrap().items_of("entries").to_vec()
        }
        for (whole, unread) in entries(&whole).iter().zip(entries(&partly)) {
            assert!(unread.get("a").is_none() && unread.line == whole.line);
            let read = unread.read();
            assert_eq!((read.to_json(), read.line), (whole.to_json(), whole.line));
        }
        let read = entries(&partly)[1].read();
        assert_eq!(read.items()[0].get("b").unwrap().line, 5);
        assert_eq!(parse_json_to("[{\n\"a\": }]", 1).unwrap_err().line, 2);
    }

    proptest! {
        #[test]
        fn what_serde_json_reads_is_read_with_the_same_value(text in r#"[\[\]{}",:0-9a\\un tfe.-]{0,30}"#) {
            if let Ok(expected) = serde_json::from_str::<serde_json::Value>(&text) {
                let node = parse_json(&text).unwrap();
                let own: serde_json::Value = serde_json::from_str(&node.to_json()).unwrap();
                // serde_json keeps the last member of a name in a map.
                prop_assert_eq!(own, expected);
            }
        }
    }
}
