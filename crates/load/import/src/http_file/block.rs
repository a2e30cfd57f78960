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
    /// Lines of httpyac's scripts after the request.
    pub(super) script_after: Vec<(u32, String)>,
    /// httpyac's checks after `??`.
    pub(super) checks: Vec<(u32, &'a str)>,
}

/// Blocks of a file.
pub(super) fn blocks(source: &str) -> Vec<HttpBlock<'_>> {
    let mut found = Vec::new();
    let mut block = HttpBlock::default();
    let mut is_script = false;
    let mut is_httpyac_script = false;
    for (number, line) in (1_u32..).zip(source.lines()) {
        let trimmed = line.trim();
        if let Some(title) = line.strip_prefix("###") {
            found.push(std::mem::take(&mut block));
            block.title = title.trim_start_matches('#').trim();
            is_script = false;
            is_httpyac_script = false;
            continue;
        }
        if is_httpyac_script || begins_httpyac_script(trimmed) {
            let script = if block.lines.is_empty() { &mut block.script_before } else { &mut block.script_after };
            let is_mark = trimmed == "}}" || !is_httpyac_script;
            if !is_mark {
                script.push((number, trimmed.to_owned()));
            }
            is_httpyac_script = trimmed != "}}";
            continue;
        }
        if !block.lines.is_empty() {
            if let Some(check) = trimmed.strip_prefix("??") {
                block.checks.push((number, check.trim()));
            } else if !block.script_after.is_empty() && is_request_line(line) {
                // After a script httpyac begins another request without a line of `###`.
                found.push(std::mem::take(&mut block));
                block.lines.push((number, line));
            } else {
                block.lines.push((number, line));
            }
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

/// Whether a line begins a script of httpyac: `{{`, `{{+after`, `{{@request`, but no variable.
fn begins_httpyac_script(line: &str) -> bool {
    line.strip_prefix("{{").is_some_and(|event| {
        let event = event.trim_start_matches(['+', '@']);
        event.chars().all(|c| c.is_ascii_alphanumeric())
    })
}

fn is_request_line(line: &str) -> bool {
    let (method, url) = line.split_once(' ').unwrap_or((line, ""));
    method.len() >= 3 && method.chars().all(|c| c.is_ascii_uppercase()) && !url.trim().is_empty()
}

/// Name and value of `@name = value`.
fn variable(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix('@')?.split_once('=')?;
    let name = name.trim();
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some((name, value.trim()))
}
