//! Output of commands that can be predicted: `echo`, `printf` and `cat`.

use super::marks::MarkTable;
use super::shell_command::{ShellCommand, ShellInput};

/// Output of a command that reads `input`.
pub(super) fn output(command: &ShellCommand, input: Option<ShellInput>, marks: &MarkTable) -> ShellInput {
    let unknown = || {
        let words: Vec<String> = command.words.iter().map(|word| marks.shown(word)).collect();
        ShellInput::Output(words.join(" "))
    };
    let Some((name, arguments)) = command.words.split_first() else { return unknown() };
    let known = match name.rsplit('/').next().unwrap_or_default() {
        "echo" => echo(arguments),
        "printf" => printf(arguments),
        "cat" => match arguments {
            [] => return command.input.clone().or(input).unwrap_or_else(unknown),
            [file] if file != "-" && !file.starts_with('-') => return ShellInput::File(marks.shown(file)),
            _ => None,
        },
        _ => None,
    };
    known.map_or_else(unknown, ShellInput::Text)
}

fn echo(arguments: &[String]) -> Option<String> {
    let flags = arguments
        .iter()
        .take_while(|word| word.len() > 1 && word.starts_with('-') && word[1..].chars().all(|c| "neE".contains(c)));
    let flags: Vec<&String> = flags.collect();
    let text = arguments[flags.len()..].join(" ");
    let has_escapes = flags.iter().any(|flag| flag.contains('e'));
    if has_escapes && text.contains('\\') {
        return None;
    }
    let end = if flags.iter().any(|flag| flag.contains('n')) { "" } else { "\n" };
    Some(text + end)
}

/// `printf` of `%s`, `%%` and the usual escapes.
fn printf(arguments: &[String]) -> Option<String> {
    let (format, arguments) = arguments.split_first()?;
    let mut arguments = arguments.iter();
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' => match chars.next()? {
                's' => out.push_str(arguments.next().map_or("", String::as_str)),
                '%' => out.push('%'),
                _ => return None,
            },
            '\\' => out.push(match chars.next()? {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                '\\' => '\\',
                '"' => '"',
                _ => return None,
            }),
            c => out.push(c),
        }
    }
    arguments.next().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_are_known_where_they_are_plain() {
        let made = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            output(&ShellCommand { words, ..ShellCommand::default() }, None, &MarkTable::default())
        };
        let text = |text: &str| ShellInput::Text(text.to_owned());
        assert_eq!(made(&["echo", "{}"]), text("{}\n"));
        assert_eq!(made(&["echo", "-n", "a", "b\\n"]), text("a b\\n"));
        assert_eq!(made(&["printf", "%s\\n%%", "x"]), text("x\n%"));
        assert_eq!(made(&["cat", "a.json"]), ShellInput::File("a.json".into()));
        assert_eq!(made(&["echo", "-e", "a\\n"]), ShellInput::Output("echo -e a\\n".into()));
        assert_eq!(made(&["jq", "."]), ShellInput::Output("jq .".into()));
    }
}
