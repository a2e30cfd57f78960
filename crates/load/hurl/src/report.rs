//! Errors with the lines that they are in.

use std::fmt;

use crate::error::ParseError;

/// Most characters of a line that are shown.
const MAX_LINE_CHARS: usize = 120;

/// Errors for a person, each with its file, line and a caret:
///
/// ```text
/// shop.hurl:12:1: expected a query, found 'jsonpth'; did you mean 'jsonpath'?
///    12 | jsonpth "$.id" == 1
///       | ^
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ErrorReport<'a> {
    file: &'a str,
    text: &'a str,
    errors: &'a [ParseError],
}

impl<'a> ErrorReport<'a> {
    /// Report of the errors in the text of a file.
    pub fn new(file: &'a str, text: &'a str, errors: &'a [ParseError]) -> Self {
        Self { file, text, errors }
    }
}

impl fmt::Display for ErrorReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text.strip_prefix('\u{feff}').unwrap_or(self.text);
        let lines: Vec<&str> = text.split('\n').collect();
        for (index, error) in self.errors.iter().enumerate() {
            let break_before = if index == 0 { "" } else { "\n" };
            write!(f, "{break_before}{}:{error}", self.file)?;
            let number = usize::try_from(error.position.line).unwrap_or_default();
            if let Some(line) = number.checked_sub(1).and_then(|index| lines.get(index)) {
                let column = usize::try_from(error.position.column).unwrap_or_default();
                write_excerpt(number, line, column.saturating_sub(1), f)?;
            }
        }
        Ok(())
    }
}

/// Writes a line, cut to the part around a column that counts from 0, and a caret below the column.
fn write_excerpt(number: usize, line: &str, column: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let start = column.saturating_sub(MAX_LINE_CHARS * 3 / 4);
    let shown = || line.chars().skip(start).take(MAX_LINE_CHARS).map(printable);
    let ellipsis = if start > 0 { "..." } else { "" };
    let text: String = shown().collect();
    // Tabs are as wide above as below.
    let indent: String =
        shown().map(|c| if c == '\t' { c } else { ' ' }).chain(std::iter::repeat(' ')).take(column - start).collect();
    let before = " ".repeat(ellipsis.len());
    write!(f, "\n{number:5} | {ellipsis}{}\n      | {before}{indent}^", text.trim_end())
}

/// Replaces control characters, which a terminal may obey.
fn printable(c: char) -> char {
    match c {
        '\t' => c,
        '\r' => ' ',
        c if c.is_control() => char::REPLACEMENT_CHARACTER,
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn report(text: &str) -> String {
        let errors = parse(text).unwrap_err();
        ErrorReport::new("shop.hurl", text, &errors).to_string()
    }

    #[test]
    fn an_error_has_its_line_and_a_caret() {
        assert_eq!(
            report("GET http://h\nHTTP 200\n[Asserts]\n\tjsonpth \"$\" exists\nstatus = 200\n"),
            "shop.hurl:4:2: expected a query, found 'jsonpth'; did you mean 'jsonpath'?\n\
             \u{20}   4 | \tjsonpth \"$\" exists\n\
             \u{20}     | \t^\n\
             shop.hurl:5:8: expected a filter or a predicate, found '='; did you mean '=='?\n\
             \u{20}   5 | status = 200\n\
             \u{20}     |        ^"
        );
    }

    #[test]
    fn an_error_at_the_end_of_the_file_points_behind_its_last_line() {
        assert_eq!(
            report("GET"),
            "shop.hurl:1:4: expected a space, found the end of the file\n    1 | GET\n      |    ^"
        );
        assert!(report("POST http://h\n{\n").ends_with("\n    3 | \n      | ^"));
    }

    #[test]
    fn a_long_line_is_cut() {
        let report = report(&format!("POST http://h\n[{} x]", "1, ".repeat(1000)));
        let lines: Vec<&str> = report.lines().collect();
        assert!(lines[1].starts_with("    2 | ...") && lines[1].ends_with("1,  x]"), "{report}");
        let caret = lines[2].chars().count() - 1;
        assert_eq!(lines[1].chars().nth(caret), Some('x'));
    }

    #[test]
    fn control_characters_are_not_printed() {
        let report = report("GET http://h\n\u{1b}[2J: x\n");
        assert!(!report.contains('\u{1b}') && report.contains("U+001B"), "{report}");
    }
}
