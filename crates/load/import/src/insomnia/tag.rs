//! Tags in texts: `{% response 'body', 'req_1', '$.token' %}`, `{% uuid 'v4' %}`.

use base64::Engine;

/// Tag with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InsomniaTag {
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
}

impl InsomniaTag {
    /// Reads what is between `{%` and `%}`.
    pub(super) fn read(inner: &str) -> Self {
        let inner = inner.trim();
        let end = inner.find(|c: char| c.is_whitespace()).unwrap_or(inner.len());
        let mut arguments = Vec::new();
        let mut rest = inner[end..].trim();
        while !rest.is_empty() {
            let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
            let (argument, after) = match quote {
                Some(quote) => rest[1..].split_once(quote).unwrap_or((&rest[1..], "")),
                None => rest.split_once(',').unwrap_or((rest, "")),
            };
            arguments.push(decoded(argument.trim()));
            rest = after.trim_start_matches([',', ' ', '\t', '\n']);
        }
        Self { name: inner[..end].to_owned(), arguments }
    }

    pub(super) fn argument(&self, index: usize) -> &str {
        self.arguments.get(index).map(String::as_str).unwrap_or_default()
    }
}

/// Text of `b64::...::46b`, or the text itself.
fn decoded(argument: &str) -> String {
    let encoded = argument.strip_prefix("b64::").and_then(|rest| rest.strip_suffix("::46b"));
    let bytes = encoded.and_then(|encoded| base64::engine::general_purpose::STANDARD.decode(encoded).ok());
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| argument.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_or_encoded() {
        let tag = InsomniaTag::read(" response 'body', 'req_1', 'b64::JC50b2tlbg==::46b', 'never', 60 ");
        assert_eq!(tag.name, "response");
        assert_eq!(tag.arguments, ["body", "req_1", "$.token", "never", "60"]);
        assert_eq!(InsomniaTag::read("uuid").arguments, Vec::<String>::new());
    }
}
