//! Parses how calls count in their callers' rate limit, and what responses say of it.

use http::HeaderName;

use super::headers;
use super::read::{DocumentNode, DocumentTable};

/// How calls count in a rate limit, and what responses say of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateTerms {
    /// Weight of a call.
    pub weight: CallWeight,
    /// Whether responses have `X-RateLimit-*`.
    pub reports: bool,
}

/// Weight of a call in its caller's rate limit, in tokens; at least 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CallWeight {
    /// One token.
    #[default]
    One,
    /// The number in this header; 1 without one.
    Header(HeaderName),
    /// One token for each piece of this number of bytes that the request's body has begun.
    Body(u64),
    /// Tokens of a language model: estimated from the request, corrected by the usage in the response.
    ModelTokens,
}

/// Largest number of bytes of a token.
const MAX_TOKEN_BYTES: usize = 1 << 30;

/// Parses `weight` and `headers` of a rate limit.
pub(super) fn rate_terms(table: &DocumentTable<'_>) -> RateTerms {
    let weight = table.get("weight").and_then(|node| call_weight(&node)).unwrap_or_default();
    let reports = table.get("headers").and_then(|node| node.boolean()).unwrap_or_default();
    RateTerms { weight, reports }
}

/// Parses `{ header = "x-weight" }`, `{ body = "1KiB" }` or `{ tokens = "usage" }`.
fn call_weight(node: &DocumentNode<'_>) -> Option<CallWeight> {
    let table = node.table()?;
    let (header, body, tokens) = (table.get("header"), table.get("body"), table.get("tokens"));
    table.check_unknown_keys();
    match (header, body, tokens) {
        (None, None, Some(tokens)) => tokens.choice(&[("usage", ())]).map(|()| CallWeight::ModelTokens),
        (Some(header), None, None) => headers::name(&header, header.string()?).map(CallWeight::Header),
        (None, Some(body), None) => body.size(1..=MAX_TOKEN_BYTES).map(|bytes| CallWeight::Body(bytes as u64)),
        _ => {
            table.error(
                "a weight is that of a header, of the body, or of tokens",
                r#"write header = "x-weight", body = "1KiB" or tokens = "usage""#,
            );
            None
        }
    }
}
