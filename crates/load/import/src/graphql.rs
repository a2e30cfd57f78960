//! Bodies of GraphQL.

use weir_hurl::Template;

use crate::placeholder::braces;
use crate::request::ImportedBody;
use crate::session::ImportSession;
use crate::text;

/// Body of a query and its variables, as JSON.
pub(crate) fn body(query: &str, variables: &str, line: u32, session: &mut ImportSession) -> ImportedBody {
    let quoted = serde_json::Value::from(query).to_string();
    let variables = variables.trim();
    let is_object = variables.starts_with('{') && variables.len() > 2;
    // The query's own braces are not placeholders: `{items{{id}}` does not occur in it, as fields have names.
    let query = braces(&quoted, line, session);
    let variables = braces(variables, line, session);
    let text = match is_object {
        true => text::concat([
            &Template::text("{\"query\":"),
            &query,
            &Template::text(",\"variables\":"),
            &variables,
            &Template::text("}"),
        ]),
        false => text::concat([&Template::text("{\"query\":"), &query, &Template::text("}")]),
    };
    ImportedBody::Text { text, media_type: "application/json".to_owned() }
}
