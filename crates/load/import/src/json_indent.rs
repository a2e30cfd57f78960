//! JSON that is made up, over several lines.

/// Longest JSON that stays on one line.
const MAX_JSON_CHARS: usize = 120;

/// JSON with a member a line if it is long.
pub(crate) fn readable(json: String) -> String {
    let is_long = json.len() > MAX_JSON_CHARS && !json.contains('\n');
    if is_long { indented(&json).unwrap_or(json) } else { json }
}

/// JSON with a member a line; `None` if it has expressions.
fn indented(source: &str) -> Option<String> {
    if source.contains("{{") {
        return None;
    }
    let (mut out, mut depth, mut is_string, mut is_escaped) = (String::new(), 0_usize, false, false);
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        if is_string {
            out.push(c);
            (is_string, is_escaped) = match c {
                '\\' if !is_escaped => (true, true),
                '"' if !is_escaped => (false, false),
                _ => (true, false),
            };
            continue;
        }
        match c {
            '"' => (is_string, is_escaped) = (true, false),
            c if c.is_ascii_whitespace() => continue,
            _ => {}
        }
        match c {
            '{' | '[' => {
                out.push(c);
                while chars.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(close) = chars.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(close);
                } else {
                    depth += 1;
                    break_line(&mut out, depth)?;
                }
            }
            '}' | ']' => {
                depth = depth.checked_sub(1)?;
                break_line(&mut out, depth)?;
                out.push(c);
            }
            ',' => {
                out.push(c);
                break_line(&mut out, depth)?;
            }
            ':' => out.push_str(": "),
            c => out.push(c),
        }
    }
    Some(out)
}

/// Begins a line; `None` below a depth at which indentation would fill the file.
fn break_line(out: &mut String, depth: usize) -> Option<()> {
    out.push('\n');
    (0..depth).for_each(|_| out.push_str("  "));
    (depth <= 20).then_some(())
}
