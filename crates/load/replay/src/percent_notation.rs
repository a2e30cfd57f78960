//! Patterns in the notations of Apache's `LogFormat` and of Envoy's access log.

use super::access_time::StampMoment;
use super::line_field::{LineField, TookUnit};
use super::line_piece::{LinePiece, PatternError};

/// Whether a pattern with percent signs is Envoy's: its commands are in capital letters between two of them.
pub(crate) fn is_envoy(text: &str) -> bool {
    text.contains("%START_TIME") || text.contains("%REQ(") || text.contains("%PROTOCOL%")
}

/// Pieces of a pattern of Apache.
pub(crate) fn apache_pieces(text: &str) -> Result<Vec<LinePiece>, PatternError> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        literal.push_str(&rest[..at]);
        let unknown = || PatternError(format!("unknown directive '{}'", crate::line_error::shown(&rest[at..])));
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('%') {
            literal.push('%');
            rest = after;
            continue;
        }
        // Conditions on the status, and which of several internal requests is meant.
        let after = after.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, ',' | '!' | '<' | '>'));
        let (argument, after) = match after.strip_prefix('{') {
            Some(braced) => braced.split_once('}').ok_or_else(unknown)?,
            None => ("", after),
        };
        let name = after.strip_prefix('^').and_then(|long| long.get(..2)).or_else(|| after.get(..1));
        let name = name.ok_or_else(unknown)?;
        let length = if after.starts_with('^') { name.len() + 1 } else { name.len() };
        push_literal(&mut pieces, &mut literal);
        let is_plain_time = name == "t" && argument.is_empty();
        // Apache writes the brackets itself.
        if is_plain_time {
            push_text(&mut pieces, "[");
        }
        pieces.push(LinePiece::Field(apache_field(name, argument).ok_or_else(unknown)?));
        if is_plain_time {
            push_text(&mut pieces, "]");
        }
        rest = &after[length..];
    }
    literal.push_str(rest);
    push_literal(&mut pieces, &mut literal);
    Ok(pieces)
}

fn push_literal(pieces: &mut Vec<LinePiece>, literal: &mut String) {
    if !literal.is_empty() {
        push_text(pieces, literal);
        literal.clear();
    }
}

/// Appends a literal; two of them become one.
fn push_text(pieces: &mut Vec<LinePiece>, text: &str) {
    match pieces.last_mut() {
        Some(LinePiece::Literal(last)) => last.push_str(text),
        _ => pieces.push(LinePiece::Literal(text.to_owned())),
    }
}

fn apache_field(name: &str, argument: &str) -> Option<LineField> {
    let header = |line: &str| argument.eq_ignore_ascii_case(line);
    Some(match name {
        "t" => match argument {
            // Formats of strftime(3) are any notation that is known.
            "" | "sec" | "msec" | "usec" => LineField::Time(StampMoment::Start),
            _ if argument.starts_with("end:") => LineField::Time(StampMoment::End),
            "msec_frac" | "usec_frac" => LineField::Other,
            _ => LineField::Time(StampMoment::Start),
        },
        "r" => LineField::RequestLine,
        "m" => LineField::Method,
        "U" => LineField::Path,
        "q" => LineField::Query,
        "s" => LineField::Status,
        "D" => LineField::Took(TookUnit::Micros),
        "T" => LineField::Took(match argument {
            "ms" => TookUnit::Millis,
            "us" => TookUnit::Micros,
            _ => TookUnit::Seconds,
        }),
        "v" | "V" => LineField::Host,
        "i" if header("User-Agent") => LineField::UserAgent,
        "i" if header("Referer") => LineField::Referer,
        "i" if header("Host") => LineField::Host,
        _ if name.bytes().all(|byte| byte.is_ascii_alphabetic()) => LineField::Other,
        _ => return None,
    })
}

/// Pieces of a pattern of Envoy.
pub(crate) fn envoy_pieces(text: &str) -> Result<Vec<LinePiece>, PatternError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let unknown = || PatternError(format!("unknown command '{}'", crate::line_error::shown(&rest[at..])));
        if at > 0 {
            push_text(&mut pieces, &rest[..at]);
        }
        let after = &rest[at + 1..];
        if let Some(after) = after.strip_prefix('%') {
            push_text(&mut pieces, "%");
            rest = after;
            continue;
        }
        // An argument, such as a format of strftime(3), may have percent signs.
        let name_end = after.find(['(', '%']).ok_or_else(unknown)?;
        let (name, argument, end) = match after[name_end..].starts_with('(') {
            true => {
                let close = name_end + after[name_end..].find(')').ok_or_else(unknown)?;
                let end = close + after[close..].find('%').ok_or_else(unknown)?;
                (&after[..name_end], &after[name_end + 1..close], end)
            }
            false => (&after[..name_end], "", name_end),
        };
        pieces.push(LinePiece::Field(envoy_field(name, argument)));
        rest = &after[end + 1..];
    }
    if !rest.is_empty() {
        push_text(&mut pieces, rest);
    }
    Ok(pieces)
}

fn envoy_field(name: &str, argument: &str) -> LineField {
    let header = argument.to_ascii_uppercase();
    match name {
        "START_TIME" | "START_TIME_LOCAL" => LineField::Time(StampMoment::Start),
        "DURATION" => LineField::Took(TookUnit::Millis),
        "RESPONSE_CODE" => LineField::Status,
        "REQ" if header.starts_with(":METHOD") => LineField::Method,
        "REQ" if header.starts_with(":PATH") || header.contains("?:PATH") => LineField::Target,
        "REQ" if header.starts_with(":AUTHORITY") => LineField::Host,
        "REQ" if header.starts_with("USER-AGENT") => LineField::UserAgent,
        "REQ" if header.starts_with("REFERER") => LineField::Referer,
        _ => LineField::Other,
    }
}
