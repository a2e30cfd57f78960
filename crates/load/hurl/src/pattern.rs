//! Regular expressions.

use std::fmt;

use regex_syntax::ast;

use crate::error::Parsed;
use crate::reader::Reader;
use crate::template::Template;

/// Regular expression, in the syntax of Rust's `regex`.
#[derive(Clone, Debug, PartialEq)]
pub enum RegexPattern {
    /// `/.../`, checked for syntax.
    Literal(RegexLiteral),
    /// `"..."`, checked after its expressions are evaluated.
    Quoted(Template),
}

/// `/.../`: a regular expression that has been checked for syntax. An unknown Unicode class is found when it is
/// compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegexLiteral {
    /// Pattern without the delimiters; `\/` is `/`.
    pub pattern: String,
}

impl RegexPattern {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        match reader.peek() {
            Some('"') => Ok(Self::Quoted(Template::read_quoted(reader)?)),
            Some('/') => Ok(Self::Literal(RegexLiteral::read(reader)?)),
            _ => Err(reader.expected("a regular expression: /.../ or \"...\"")),
        }
    }
}

impl RegexLiteral {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        reader.need("/")?;
        let mut pattern = String::new();
        while !reader.eat("/") {
            match reader.peek() {
                None | Some('\n') => return Err(reader.expected("'/' at the end of the regular expression")),
                Some('\\') if reader.starts_with("\\/") => {
                    reader.eat("\\/");
                    pattern.push('/');
                }
                Some(c) => {
                    pattern.push(c);
                    reader.bump();
                }
            }
        }
        // Only the syntax tree: classes of a compiled pattern take far more time and memory than its text.
        if let Err(error) = ast::parse::Parser::new().parse(&pattern) {
            let mut problem = reader.expected_at(start, "a valid regular expression");
            problem.found = format!("an invalid one: {}", error.kind());
            return Err(problem);
        }
        Ok(Self { pattern })
    }
}

impl fmt::Display for RegexPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(literal) => literal.fmt(f),
            Self::Quoted(template) => template.quoted().fmt(f),
        }
    }
}

impl fmt::Display for RegexLiteral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.pattern.replace('/', "\\/").replace('\n', "\\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_is_escaped() {
        let mut reader = Reader::new(r"/^a\/\d+\\\/$/ x");
        let literal = RegexLiteral::read(&mut reader).unwrap();
        assert_eq!(literal.pattern, r"^a/\d+\\/$");
        assert_eq!(literal.to_string(), r"/^a\/\d+\\\/$/");
        assert_eq!(reader.rest(), " x");
    }

    #[test]
    fn an_invalid_pattern_has_a_reason() {
        let error = RegexPattern::read(&mut Reader::new("/a{b}/")).unwrap_err().to_string();
        let reason = "repetition quantifier expects a valid decimal";
        assert_eq!(error, format!("1:1: expected a valid regular expression, found an invalid one: {reason}"));
        let error = RegexPattern::read(&mut Reader::new("/ab\n/")).unwrap_err().to_string();
        assert_eq!(error, "1:4: expected '/' at the end of the regular expression, found the end of the line");
        let nested = format!("/{}/", "(".repeat(10_000));
        assert!(RegexPattern::read(&mut Reader::new(&nested)).is_err());
    }
}
