//! Operations on texts with expressions.

use weir_hurl::{Expression, ExpressionSource, FilterKind, Template, TemplatePart, TextPosition};

/// Text of parts; empty parts are dropped and neighboring texts joined.
pub(crate) fn from_parts(parts: impl IntoIterator<Item = TemplatePart>) -> Template {
    let mut joined: Vec<TemplatePart> = Vec::new();
    for part in parts {
        match (joined.last_mut(), part) {
            (_, TemplatePart::Text(text)) if text.is_empty() => {}
            (Some(TemplatePart::Text(before)), TemplatePart::Text(text)) => before.push_str(&text),
            (_, part) => joined.push(part),
        }
    }
    Template { parts: joined, position: TextPosition::default() }
}

/// Texts one after another.
pub(crate) fn concat<'a>(texts: impl IntoIterator<Item = &'a Template>) -> Template {
    from_parts(texts.into_iter().flat_map(|text| text.parts.iter().cloned()))
}

/// Variable as a text.
pub(crate) fn variable(name: &str) -> Template {
    from_parts([TemplatePart::Expression(Expression::variable(name))])
}

/// Text as people write it: expressions in braces, nothing escaped.
pub(crate) fn source(text: &Template) -> String {
    let parts = text.parts.iter().map(|part| match part {
        TemplatePart::Text(text) => text.clone(),
        TemplatePart::Expression(expression) => expression.to_string(),
    });
    parts.collect()
}

/// Whether there is neither text nor an expression.
pub(crate) fn is_empty(text: &Template) -> bool {
    text.parts.is_empty()
}

/// Fixed text at the beginning.
pub(crate) fn start(text: &Template) -> &str {
    match text.parts.first() {
        Some(TemplatePart::Text(text)) => text,
        _ => "",
    }
}

/// Applies a function to the fixed parts, each of which becomes a text.
pub(crate) fn map_fixed(text: &Template, mut map: impl FnMut(&str) -> Template) -> Template {
    from_parts(text.parts.iter().flat_map(|part| match part {
        TemplatePart::Text(text) => map(text).parts,
        expression @ TemplatePart::Expression(_) => vec![expression.clone()],
    }))
}

/// Replaces the occurrences of `old` that `accepts` takes, by the texts before and after them.
pub(crate) fn replaced(
    text: &Template,
    old: &str,
    new: &Template,
    accepts: &dyn Fn(&str, &str) -> bool,
) -> (Template, usize) {
    let mut count = 0;
    let mapped = map_fixed(text, |fixed| {
        let mut parts = Vec::new();
        let mut from = 0;
        while let Some(at) = fixed.get(from..).and_then(|rest| rest.find(old)).map(|at| from + at) {
            let end = at + old.len();
            if accepts(&fixed[..at], &fixed[end..]) {
                let start = parts_end(&parts);
                parts.push((TemplatePart::Text(fixed[start..at].to_owned()), at));
                parts.extend(new.parts.iter().map(|part| (part.clone(), end)));
                count += 1;
            }
            from = end.max(at + 1);
            while !fixed.is_char_boundary(from) {
                from += 1;
            }
        }
        let start = parts_end(&parts);
        let last = TemplatePart::Text(fixed[start..].to_owned());
        from_parts(parts.into_iter().map(|(part, _)| part).chain([last]))
    });
    (mapped, count)
}

/// End of the fixed text that parts stand for.
fn parts_end(parts: &[(TemplatePart, usize)]) -> usize {
    parts.last().map_or(0, |(_, end)| *end)
}

/// Names of the variables of a text, also in arguments of filters.
pub(crate) fn variables(text: &Template) -> Vec<String> {
    let mut names = Vec::new();
    for expression in text.expressions() {
        if let ExpressionSource::Variable(name) = &expression.source {
            names.push(name.clone());
        }
        for filter in &expression.filters {
            match &filter.kind {
                FilterKind::Text(_, text) => names.extend(variables(text)),
                FilterKind::Replace { old, new } => names.extend(variables(old).into_iter().chain(variables(new))),
                _ => {}
            }
        }
    }
    names
}

/// One line of a text without control characters, cut to a number of characters.
pub(crate) fn one_line(text: &str, max_chars: usize) -> String {
    let clean: String = text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(max_chars + 1).collect();
    match clean.char_indices().nth(max_chars) {
        Some((at, _)) => format!("{}...", clean[..at].trim_end()),
        None => clean,
    }
}

/// Text as a regular expression that matches it.
pub(crate) fn regex_escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if "\\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_are_replaced_where_they_are_accepted() {
        let text = Template::parse("/a/12/b/123{{x}}12").unwrap();
        let whole = |_: &str, after: &str| !after.starts_with(|c: char| c.is_ascii_digit());
        let (text, count) = replaced(&text, "12", &variable("id"), &whole);
        assert_eq!((source(&text).as_str(), count), ("/a/{{id}}/b/123{{x}}{{id}}", 2));
    }

    #[test]
    fn a_long_text_is_cut_on_one_line() {
        assert_eq!(one_line("a\nb", 10), "a b");
        assert_eq!(one_line("ääääää", 3), "äää...");
    }
}
