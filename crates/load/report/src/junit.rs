//! Objectives of a run as JUnit XML, as Jenkins, GitLab and others read it.

use std::fmt::Write;

use weir_base::markup;
use weir_measure::Run;

/// The run as a suite of test cases: one for each objective, one for the condition that ends a run early, one for
/// whether it is trusted (an error if `strict`, else skipped), and one for whether any request succeeded.
pub fn render(run: &Run, strict: bool) -> String {
    let mut cases = vec![JunitCase {
        name: "at least one request succeeds".to_owned(),
        outcome: match run.requests.ok {
            0 if !run.needs_no_requests() => CaseOutcome::Failure(format!(
                "none of {} requests succeeded; {}",
                run.requests.total,
                run.why_none_succeeded()
            )),
            _ => CaseOutcome::Passed,
        },
    }];
    cases.extend(run.slo.iter().map(|held| JunitCase {
        name: held.objective.clone(),
        outcome: if held.ok { CaseOutcome::Passed } else { CaseOutcome::Failure(held.measured.clone()) },
    }));
    cases.extend(run.aborted.iter().map(|why| JunitCase {
        name: "the run goes on to its end".to_owned(),
        outcome: CaseOutcome::Failure(format!("aborted: {why}")),
    }));
    let reasons = run.trust.reasons.join(" ");
    cases.push(JunitCase {
        name: "the run is trusted".to_owned(),
        outcome: match (run.trust.ok, strict) {
            (true, _) => CaseOutcome::Passed,
            (false, true) => CaseOutcome::Error(reasons),
            (false, false) => CaseOutcome::Skipped(reasons),
        },
    });
    let number = |of: fn(&CaseOutcome) -> bool| cases.iter().filter(|case| of(&case.outcome)).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{:.3}\"",
        cases.len(),
        number(|outcome| matches!(outcome, CaseOutcome::Failure(_))),
        number(|outcome| matches!(outcome, CaseOutcome::Error(_))),
        number(|outcome| matches!(outcome, CaseOutcome::Skipped(_))),
        run.duration_s,
    );
    let suite = format!("{} {}", run.target.method, run.target.url);
    let suite = escaped(suite.trim());
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string does not fail.
    let _ = writeln!(xml, "<testsuites name=\"weir load\" {counts}>\n  <testsuite name=\"{suite}\" {counts}>");
    for JunitCase { name, outcome } in &cases {
        let name = escaped(name);
        let (tag, message) = match outcome {
            CaseOutcome::Passed => {
                let _ = writeln!(xml, "    <testcase classname=\"{suite}\" name=\"{name}\"/>");
                continue;
            }
            CaseOutcome::Failure(message) => ("failure", message),
            CaseOutcome::Error(message) => ("error", message),
            CaseOutcome::Skipped(message) => ("skipped", message),
        };
        let message = escaped(message);
        let _ = writeln!(xml, "    <testcase classname=\"{suite}\" name=\"{name}\">");
        let _ = writeln!(xml, "      <{tag} message=\"{message}\"/>\n    </testcase>");
    }
    xml + "  </testsuite>\n</testsuites>\n"
}

struct JunitCase {
    name: String,
    outcome: CaseOutcome,
}

enum CaseOutcome {
    Passed,
    Failure(String),
    Error(String),
    Skipped(String),
}

/// Text of an attribute. Characters that XML 1.0 cannot have become `U+FFFD`.
fn escaped(text: &str) -> String {
    let allowed = text.chars().map(|c| match c {
        '\t' | '\n' | '\r' => ' ',
        '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => '\u{fffd}',
        c => c,
    });
    markup::escaped(&allowed.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::fixtures;

    #[test]
    fn each_objective_is_a_case_and_a_missed_one_a_failure() {
        let run = fixtures::open();
        let xml = render(&run, false);
        let parsed = roxmltree::Document::parse(&xml).expect("XML");
        let cases: Vec<_> = parsed.descendants().filter(|node| node.has_tag_name("testcase")).collect();
        assert_eq!(cases.len(), run.slo.len() + 2);
        let failed: Vec<_> =
            cases.iter().filter(|case| case.children().any(|child| child.has_tag_name("failure"))).collect();
        let missed: Vec<&str> = run.slo.iter().filter(|held| !held.ok).map(|held| held.objective.as_str()).collect();
        assert_eq!(failed.iter().filter_map(|case| case.attribute("name")).collect::<Vec<_>>(), missed);
        let suite = parsed.root_element();
        assert_eq!((suite.attribute("failures"), suite.attribute("skipped")), (Some("2"), Some("1")));
        assert!(render(&run, true).contains("errors=\"1\" skipped=\"0\""));
    }

    #[test]
    fn a_run_without_a_success_is_a_failure_and_any_text_is_xml() {
        let mut run = fixtures::broken();
        run.target.url = "http://h/?a=1&b=\"<x>\"\u{1}\n".into();
        let xml = render(&run, false);
        let parsed = roxmltree::Document::parse(&xml).expect("XML");
        let name = parsed.descendants().find_map(|node| node.attribute("classname")).expect("a case");
        assert!(name.ends_with("?a=1&b=\"<x>\"\u{fffd}"), "{name:?}");
        let message =
            parsed.descendants().find(|node| node.has_tag_name("failure")).and_then(|node| node.attribute("message"));
        assert!(message.is_some_and(|message| message.contains("none of 400 requests succeeded")), "{message:?}");
    }
}
