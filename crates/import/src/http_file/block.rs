//! Parts of a file: requests between lines that begin with `###`.

/// Request with what stands above it.
#[derive(Clone, Debug, Default)]
pub(super) struct HttpBlock<'a> {
    /// Text after `###`.
    pub(super) title: &'a str,
    /// Annotations without `@`: `name login`, `no-redirect`.
    pub(super) annotations: Vec<(u32, &'a str)>,
    /// `@name = value`.
    pub(super) variables: Vec<(u32, &'a str, &'a str)>,
    /// Comments above the request.
    pub(super) comments: Vec<&'a str>,
    /// Lines of scripts before the request.
    pub(super) script_before: Vec<(u32, String)>,
    /// Lines of the request, from the first one that is not a comment.
    pub(super) lines: Vec<(u32, &'a str)>,
}

/// Blocks of a file.
pub(super) fn blocks(source: &str) -> Vec<HttpBlock<'_>> {
    let mut found = Vec::new();
    let mut block = HttpBlock::default();
    let mut is_script = false;
    for (number, line) in (1_u32..).zip(source.lines()) {
        let trimmed = line.trim();
        if let Some(title) = line.strip_prefix("###") {
            found.push(std::mem::take(&mut block));
            block.title = title.trim_start_matches('#').trim();
            is_script = false;
            continue;
        }
        if !block.lines.is_empty() {
            block.lines.push((number, line));
            continue;
        }
        if is_script {
            let (code, is_end) = trimmed.split_once("%}").map_or((trimmed, false), |(code, _)| (code, true));
            block.script_before.push((number, code.to_owned()));
            is_script = !is_end;
            continue;
        }
        if let Some(code) = trimmed.strip_prefix("< {%") {
            let (code, is_end) = code.split_once("%}").map_or((code, false), |(code, _)| (code, true));
            block.script_before.push((number, code.to_owned()));
            is_script = !is_end;
            continue;
        }
        let comment = trimmed.strip_prefix("//").or_else(|| trimmed.strip_prefix('#'));
        match comment.map(str::trim) {
            Some(comment) => match comment.strip_prefix('@') {
                Some(annotation) => block.annotations.push((number, annotation.trim())),
                None if !comment.is_empty() => block.comments.push(comment),
                None => {}
            },
            None if trimmed.is_empty() => {}
            None => match variable(trimmed) {
                Some((name, value)) => block.variables.push((number, name, value)),
                None => block.lines.push((number, line)),
            },
        }
    }
    found.push(block);
    found
}

/// Name and value of `@name = value`.
fn variable(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix('@')?.split_once('=')?;
    let name = name.trim();
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some((name, value.trim()))
}
