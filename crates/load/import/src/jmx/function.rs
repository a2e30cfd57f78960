//! `${name}` and `${__function(...)}` in texts of a plan.

use weir_hurl::Template;

use crate::omission::OmissionKind;
use crate::placeholder::{between, parsed};
use crate::session::ImportSession;
use crate::text;

/// Text of a plan as a template.
pub(super) fn template(source: &str, line: u32, session: &mut ImportSession) -> Template {
    between("${", "}", source, line, session, &mut expression)
}

/// Text of a number: a function that reads a property has its default.
pub(super) fn number(source: &str) -> Option<u64> {
    let source = source.trim();
    let source = match source.strip_prefix("${__P(").or_else(|| source.strip_prefix("${__property(")) {
        Some(arguments) => arguments.trim_end_matches(")}").rsplit(',').next().unwrap_or_default().trim(),
        None => source,
    };
    source.parse::<f64>().ok().filter(|number| (0.0..=1e12).contains(number)).map(|number| number as u64)
}

fn expression(inner: &str, line: u32, session: &mut ImportSession) -> Option<Template> {
    let inner = inner.trim();
    let Some(call) = inner.strip_prefix("__") else {
        return (!inner.is_empty()).then(|| text::variable(&session.names.name(inner)));
    };
    let (name, arguments) = call.split_once('(').unwrap_or((call, ""));
    let arguments: Vec<&str> = arguments.trim_end_matches(')').split(',').map(str::trim).collect();
    let argument = |index: usize| arguments.get(index).copied().unwrap_or_default();
    let made = match name {
        "P" | "property" | "env" | "V" => {
            let variable = session.names.name(argument(0));
            let fallback = arguments.last().copied().unwrap_or_default();
            if arguments.len() > 1 && !fallback.is_empty() && name != "V" {
                session.import.define(&variable, fallback, false);
            }
            return Some(text::variable(&variable));
        }
        "UUID" => "{{newUuid}}".to_owned(),
        "Random" => match (argument(0).parse::<i64>(), argument(1).parse::<i64>()) {
            (Ok(least), Ok(most)) if least <= most => format!("{{{{randomInt {least} {most}}}}}"),
            _ => return Some(unknown(inner, line, session)),
        },
        "RandomString" => match argument(0).parse::<u16>() {
            Ok(length) => format!("{{{{randomString {length}}}}}"),
            Err(_) => return Some(unknown(inner, line, session)),
        },
        "counter" => "{{seq}}".to_owned(),
        "threadNum" => "{{seq}}".to_owned(),
        "time" | "timeShift" => match date_format(argument(0)) {
            Some(format) => format!("{{{{newDate dateFormat \"{format}\"}}}}"),
            None => return Some(unknown(inner, line, session)),
        },
        "RandomDate" => "{{newDate dateFormat \"%Y-%m-%d\"}}".to_owned(),
        "urlencode" | "escapeHtml" | "unescape" if argument(0).starts_with("${") => {
            return Some(template(&format!("{}}}", argument(0).trim_end_matches('}')), line, session));
        }
        _ => return Some(unknown(inner, line, session)),
    };
    Some(parsed(&made))
}

fn unknown(inner: &str, line: u32, session: &mut ImportSession) -> Template {
    session.omit(line, OmissionKind::Variable, format!("the function ${{{inner}}}, a variable instead"));
    let name = inner.trim_start_matches('_').split('(').next().unwrap_or_default();
    text::variable(&session.names.name(&format!("{name}_value")))
}

/// Format of a date in the notation of strftime; milliseconds since 1970 are seconds with three zeros.
fn date_format(java: &str) -> Option<String> {
    let java = java.replace('\'', "");
    if java.is_empty() {
        return Some("%s000".to_owned());
    }
    if java == "/1000" {
        return Some("%s".to_owned());
    }
    let mut format = String::new();
    let mut rest = java.as_str();
    while let Some(first) = rest.chars().next() {
        let length = rest.chars().take_while(|c| *c == first).count() * first.len_utf8();
        let run = &rest[..length];
        format.push_str(match run {
            "yyyy" => "%Y",
            "yy" => "%y",
            "MM" => "%m",
            "dd" => "%d",
            "HH" => "%H",
            "mm" => "%M",
            "ss" => "%S",
            "SSS" => "000",
            "T" => "T",
            "Z" | "XXX" | "X" => "Z",
            "EEE" => "%a",
            "MMM" => "%b",
            _ if !first.is_ascii_alphabetic() && first != '"' && first != '%' => run,
            _ => return None,
        });
        rest = &rest[length..];
    }
    Some(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_expressions_and_properties_have_their_defaults() {
        let mut session = ImportSession::default();
        let mut read = |source: &str| text::source(&template(source, 1, &mut session));
        assert_eq!(read("a${x}b${__UUID()}"), "a{{x}}b{{newUuid}}");
        assert_eq!(read("${__P(host,localhost)}:${__Random(1,6,)}"), "{{host}}:{{randomInt 1 6}}");
        assert_eq!(read("${__time(yyyy-MM-dd,)}"), "{{newDate dateFormat \"%Y-%m-%d\"}}");
        assert_eq!(read("${__groovy(1+1,)}"), "{{groovy_value}}");
        assert_eq!(session.import.omissions.len(), 1);
        assert_eq!(session.import.variables[0].value.as_deref(), Some("localhost"));
        assert_eq!((number("${__P(users,25)}"), number(" 10 "), number("${n}")), (Some(25), Some(10), None));
    }
}
