//! `--check`: asserts of hurl on the responses to jobs.

use std::sync::Arc;

use http::HeaderMap;

use weir_base::rng::SeededRng;
use weir_hurl::{Assertion, ParseError};
use weir_request::secret_mask::without_secrets;
use weir_scenario::evaluate::{CompiledCheck, RenderContext, ResponseView, VariableNames, VariableTable};
use weir_send::{ResponseCheck, wall_ms};

/// Stream of random numbers that an assert may have.
const CHECK_SALT: u64 = 0x73_656e_6401;

/// Asserts that all have to hold.
#[derive(Debug)]
pub(super) struct AssertCheck {
    checks: Vec<(String, CompiledCheck)>,
    variables: VariableTable,
}

impl AssertCheck {
    /// Check by the values of `--check`; None without one.
    pub(super) fn of_flags(texts: &[String]) -> Result<Option<Arc<dyn ResponseCheck>>, String> {
        if texts.is_empty() {
            return Ok(None);
        }
        let mut names = VariableNames::default();
        let mut compile = |text: &String| {
            let compiled = Assertion::parse(text).and_then(|assertion| CompiledCheck::compile(&assertion, &mut names));
            compiled.map(|check| (text.clone(), check)).map_err(|error| mistake(text, &error))
        };
        let checks = texts.iter().map(&mut compile).collect::<Result<Vec<_>, _>>()?;
        if let Some((name, _)) = names.iter().next() {
            return Err(format!("--check has the variable '{{{{{name}}}}}', and weir send has no variables"));
        }
        let follows = |check: &CompiledCheck| check.needs().redirects || check.needs().url;
        if let Some((text, _)) = checks.iter().find(|(_, check)| follows(check)) {
            return Err(format!("--check '{text}': weir send follows no redirects; check the status, headers or body"));
        }
        let variables = VariableTable::new(&names);
        Ok(Some(Arc::new(Self { checks, variables })))
    }
}

impl ResponseCheck for AssertCheck {
    fn check(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> Result<(), String> {
        let pairs: Vec<(&str, &[u8])> = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let view =
            ResponseView { version: "1.1", status, headers: &pairs, body, raw_body: body, ..ResponseView::default() };
        let mut rng = SeededRng::new(0, CHECK_SALT);
        let mut context = RenderContext { rng: &mut rng, unix_s: wall_ms().0 / 1000, sequence: 0 };
        let failed =
            self.checks.iter().find(|(_, check)| check.evaluate(&view, &self.variables, &mut context).is_err());
        failed.map_or(Ok(()), |(text, _)| Err(format!("the response failed --check '{text}'")))
    }
}

/// `--check 'status = 200': expected a filter or a predicate, found '='; did you mean '=='?`.
fn mistake(text: &str, error: &ParseError) -> String {
    let ParseError { expected, found, hint, .. } = error;
    let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
    without_secrets(&format!("--check '{text}': expected {expected}, found {found}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(texts: &[&str], body: &str) -> Result<(), String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/x"))]);
        AssertCheck::of_flags(&texts)?.map_or(Ok(()), |check| check.check(200, &headers, body.as_bytes()))
    }

    #[test]
    fn all_asserts_have_to_hold() {
        let texts = ["status == 200", "jsonpath \"$.a\" == 1", "header \"Content-Type\" contains \"text\""];
        assert_eq!(check(&texts, r#"{"a": 1}"#), Ok(()));
        let failed = "the response failed --check 'jsonpath \"$.a\" == 1'".to_owned();
        assert_eq!(check(&texts, r#"{"a": 2}"#), Err(failed.clone()), "without the value: failures are counted by it");
        assert_eq!(check(&texts, "no JSON"), Err(failed));
        assert_eq!(check(&[], ""), Ok(()));
    }

    #[test]
    fn an_assert_that_cannot_be_evaluated_is_an_error_at_the_start() {
        for (text, reason) in [
            ("status = 200", "--check 'status = 200': expected a"),
            ("jsonpath \"$.a\" == \"{{x}}\"", "--check has the variable '{{x}}'"),
            ("url contains \"a\"", "--check 'url contains \"a\"': weir send follows no redirects"),
        ] {
            let why = check(&[text], "").unwrap_err();
            assert!(why.starts_with(reason), "{why}");
        }
    }
}
