//! Patterns in the notation of nginx's `log_format`.

use super::access_time::StampMoment;
use super::line_field::{LineField, TookUnit};
use super::line_piece::{LinePiece, PatternError};

/// Pieces of a pattern with `$variables`, also as `${variable}`.
pub(crate) fn pieces(text: &str) -> Result<Vec<LinePiece>, PatternError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let Some(at) = rest.find('$') else {
            pieces.push(LinePiece::Literal(rest.to_owned()));
            break;
        };
        if at > 0 {
            pieces.push(LinePiece::Literal(rest[..at].to_owned()));
        }
        let (name, after) = match rest[at + 1..].strip_prefix('{') {
            Some(braced) => braced
                .split_once('}')
                .ok_or_else(|| PatternError(format!("'${{' without '}}' in '{}'", &rest[at..])))?,
            None => {
                let named = &rest[at + 1..];
                named.split_at(named.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(named.len()))
            }
        };
        if name.is_empty() {
            return Err(PatternError("'$' without the name of a variable".to_owned()));
        }
        pieces.push(LinePiece::Field(field(name)));
        rest = after;
    }
    Ok(pieces)
}

/// Field of a variable; those that a replay does not need are any text.
fn field(name: &str) -> LineField {
    match name {
        // nginx writes a line at the end of the response.
        "time_local" | "time_iso8601" | "msec" => LineField::Time(StampMoment::End),
        "request_time" => LineField::Took(TookUnit::Seconds),
        "request" => LineField::RequestLine,
        "request_method" => LineField::Method,
        "request_uri" => LineField::Target,
        "uri" | "document_uri" => LineField::Path,
        "args" | "query_string" => LineField::Query,
        "status" => LineField::Status,
        "host" | "http_host" | "server_name" => LineField::Host,
        "http_user_agent" => LineField::UserAgent,
        "http_referer" => LineField::Referer,
        "request_body" => LineField::Body,
        _ => LineField::Other,
    }
}
