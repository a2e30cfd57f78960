//! Body of any API, with places that are filled in.

use std::str::FromStr;

/// Text of a body with `{{prompt}}`, `{{messages}}`, `{{model}}`, `{{max_tokens}}` and `{{stream}}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyTemplate(pub(super) Vec<TemplateItem>);

/// Fixed text or placeholder of a body template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplateItem {
    /// Text as it is.
    Literal(String),
    /// Text of all messages, as content of a JSON string.
    Prompt,
    /// List of the messages, as JSON.
    Messages,
    /// Name of the model, as content of a JSON string.
    Model,
    /// Maximum number of tokens, or null.
    MaxTokens,
    /// `true` or `false`.
    Streams,
}

impl FromStr for BodyTemplate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut items = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            // Braces of JSON may stand together: only names are places.
            let found = after.split_once("}}").and_then(|(name, behind)| Some((item(name.trim())?, behind)));
            match found {
                Some((item, behind)) => {
                    items.push(TemplateItem::Literal(before.to_owned()));
                    items.push(item);
                    rest = behind;
                }
                None => {
                    // One brace on, so that the second one may begin a place.
                    let (literal, behind) = rest.split_at(before.len() + 1);
                    items.push(TemplateItem::Literal(literal.to_owned()));
                    rest = behind;
                }
            }
        }
        items.push(TemplateItem::Literal(rest.to_owned()));
        items.retain(|item| *item != TemplateItem::Literal(String::new()));
        if !items.iter().any(|item| matches!(item, TemplateItem::Prompt | TemplateItem::Messages)) {
            return Err("the template has no prompt; write e.g. {\"inputs\": \"{{prompt}}\"}".to_owned());
        }
        Ok(Self(items))
    }
}

fn item(name: &str) -> Option<TemplateItem> {
    match name {
        "prompt" => Some(TemplateItem::Prompt),
        "messages" => Some(TemplateItem::Messages),
        "model" => Some(TemplateItem::Model),
        "max_tokens" => Some(TemplateItem::MaxTokens),
        "stream" => Some(TemplateItem::Streams),
        _ => None,
    }
}
