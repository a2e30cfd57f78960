//! Tests.

pub(crate) mod fixtures;

use super::*;

#[test]
fn every_format_is_known_by_its_name_here_and_to_clap() {
    for format in ReportFormat::value_variants() {
        assert_eq!(format.to_string().parse(), Ok(*format));
        assert_eq!(<ReportFormat as ValueEnum>::from_str(format.name(), false), Ok(*format));
    }
    assert_eq!(
        "hey".parse::<ReportFormat>(),
        Err("unknown format 'hey'; choose text, ab, wrk, jmeter, k6, json".into())
    );
}

#[test]
fn a_run_read_back_from_its_json_gives_the_same_reports() {
    for run in fixtures::all() {
        let back = Run::from_json(&render(&run, ReportFormat::Json, false)).expect("own JSON");
        for format in ReportFormat::value_variants() {
            assert_eq!(render(&back, *format, true), render(&run, *format, true), "{format}");
        }
        assert_eq!(csv::series(&back), csv::series(&run));
    }
}

#[test]
fn no_line_is_wider_than_a_terminal_and_every_report_ends_with_one_newline() {
    for run in fixtures::all() {
        for format in ReportFormat::value_variants() {
            let report = render(&run, *format, false);
            assert!(report.ends_with('\n') && !report.ends_with("\n\n"), "{format}");
        }
        let text = render(&run, ReportFormat::Text, false);
        for line in text.lines() {
            assert!(line.chars().count() <= number_format::TERMINAL_COLUMNS, "{line}");
            assert!(!line.ends_with(' '), "{line:?}");
        }
    }
}

#[test]
fn texts_of_a_service_cannot_steer_the_terminal() {
    let mut run = fixtures::open();
    let evil = "\u{1b}[2J\rgood\n";
    run.target.server = Some(evil.into());
    run.target.url = evil.into();
    run.target.path = evil.into();
    run.target.failure_details.values_mut().for_each(|words| *words = evil.into());
    for format in ReportFormat::value_variants() {
        let report = render(&run, *format, false);
        assert!(!report.contains('\u{1b}') && !report.contains('\r'), "{format}");
    }
}
