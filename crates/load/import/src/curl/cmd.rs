//! Words of command lines of Windows' cmd, as browsers copy "cURL (cmd)".
//!
//! Two programs read such a line: cmd takes carets away outside of its quotes, then the C library splits what is left into
//! words, with backslashes before quotes.

use super::marks::push_char;
use super::shell_command::ShellCommand;

/// Whether a text is for cmd: a caret before a quote that begins a word, or at the end of a line, outside of the quotes
/// of a POSIX shell, before any backslash at the end of a line.
pub(super) fn is_cmd(text: &str) -> bool {
    let mut chars = text.chars().peekable();
    let (mut quote, mut before) = (None, ' ');
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (None | Some('"'), '\\') => {
                let next = chars.next();
                if quote.is_none() && matches!(next, Some('\n' | '\r')) {
                    return false;
                }
            }
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '^') => match chars.peek() {
                Some('\n' | '\r') => return true,
                Some('"') if before.is_ascii_whitespace() => return true,
                _ => {}
            },
            (None, '#') if before.is_ascii_whitespace() => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, _) => {}
        }
        before = c;
    }
    false
}

/// Character after cmd's reading, and whether it was escaped.
type CmdChar = (char, bool);

/// Splits a text into commands.
pub(super) fn commands(text: &str) -> Vec<ShellCommand> {
    let mut commands = Vec::new();
    let mut line: Vec<CmdChar> = Vec::new();
    let (mut number, mut start, mut is_quoted, mut is_ignored) = (1_u32, 1_u32, false, false);
    let mut end = |line: &mut Vec<CmdChar>, at: u32| {
        let words = words(&std::mem::take(line));
        if !words.is_empty() {
            commands.push(ShellCommand { line: at, words, ..ShellCommand::default() });
        }
    };
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' if !is_quoted => {
                number = number.saturating_add(1);
                end(&mut line, start);
                (start, is_ignored) = (number, false);
            }
            '\n' => {
                number = number.saturating_add(1);
                line.push((c, true));
            }
            '\r' if !is_quoted => {}
            '"' => {
                is_quoted = !is_quoted;
                line.push((c, false));
            }
            '^' if !is_quoted => {
                let mut breaks = 0;
                while breaks < 2 {
                    let mut ahead = chars.clone();
                    ahead.next_if_eq(&'\r');
                    if ahead.next_if_eq(&'\n').is_none() {
                        break;
                    }
                    (chars, breaks) = (ahead, breaks + 1);
                    number = number.saturating_add(1);
                }
                match breaks {
                    // The line goes on.
                    1 => {}
                    // The second line end is what the caret escapes.
                    2 => line.push(('\n', true)),
                    _ => line.extend(chars.next().map(|c| (c, c != '"'))),
                }
            }
            '&' | '|' if !is_quoted => {
                end(&mut line, start);
                (start, is_ignored) = (number, c == '|' && chars.peek() != Some(&'|'));
            }
            c if !is_ignored => line.push((c, is_quoted)),
            _ => {}
        }
    }
    end(&mut line, start);
    commands
}

/// Words of a line, as the C library splits it.
fn words(line: &[CmdChar]) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let (mut is_quoted, mut at) = (false, 0);
    while let Some((c, _)) = line.get(at).copied() {
        at += 1;
        match c {
            '\\' => {
                let count = 1 + line[at..].iter().take_while(|(c, _)| *c == '\\').count();
                let is_before_quote = line.get(at + count - 1).is_some_and(|(c, _)| *c == '"');
                at += count - 1;
                let word = word.get_or_insert_default();
                let kept = if is_before_quote { count / 2 } else { count };
                (0..kept).for_each(|_| word.push('\\'));
                if is_before_quote && count % 2 == 1 {
                    word.push('"');
                    at += 1;
                }
            }
            '"' => {
                word.get_or_insert_default();
                if is_quoted && line.get(at).is_some_and(|(c, _)| *c == '"') {
                    word.get_or_insert_default().push('"');
                    at += 1;
                } else {
                    is_quoted = !is_quoted;
                }
            }
            ' ' | '\t' | '\n' if !is_quoted => words.extend(word.take()),
            c => push_char(word.get_or_insert_default(), c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_for_cmd_by_carets_outside_of_quotes() {
        for text in ["curl ^\"http://h^\"", "curl \"http://h/it's\" ^\r\n  -k", "curl http://h ^\n -k"] {
            assert!(is_cmd(text), "{text}");
        }
        for text in ["curl -d 'a^\nb' h", "curl -d '{\"r\": \"^\"}' h", "curl \\\n -d x^\" h", "# ^\"\ncurl h"] {
            assert!(!is_cmd(text), "{text}");
        }
    }

    #[test]
    fn words_are_those_of_windows() {
        let read = |text: &str| commands(text).into_iter().map(|command| command.words).collect::<Vec<_>>();
        assert_eq!(read("curl ^\"a^\\^\"b^\" ^\r\n  -d ^\"x^\r\n\r\ny^\"\r\n"), [["curl", "a\"b", "-d", "x\ny"]]);
        assert_eq!(read("curl \"a^b\" \"c\\\\\" \"d\"\"e\""), [["curl", "a^b", "c\\", "d\"e"]]);
        assert_eq!(read("curl a^&b & curl c | more"), [vec!["curl", "a&b"], vec!["curl", "c"]]);
    }
}
