//! Small study with measurements, for tests.

use std::path::Path;

use crate::StudyOutcome;
use crate::definition::Definition;
use crate::file::{self, LoadSyntax, ParsedLoad};
use crate::measurement::{LoadMetrics, Measurement, MeasurementFailure};
use crate::results_folder::ResultsFolder;
use weir_load::Options;

/// Definition with two variants and a load; `more` is appended to the file.
pub(crate) fn definition(more: &str) -> Definition {
    let text = format!(
        "question = \"Which?\"\nrepeats = 7\n[variants.a]\ncommand = \"a\"\n[variants.b]\ncommand = \"b\"\n\
         [loads.main]\nurl = \"http://127.0.0.1:{{port}}/\"\n{more}"
    );
    let read = |args: &[String], _: &Path| {
        let options = Options { url: args.last().cloned().unwrap_or_default(), ..Options::default() };
        Ok(ParsedLoad { options, warnings: Vec::new() })
    };
    let flags = ["rate".to_owned()];
    file::parse(&text, Path::new("."), &LoadSyntax { flags: &flags, parse: &read }, false).expect("fine").0
}

/// Outcome with these rates of the runs of both variants; None is a failure.
pub(crate) fn outcome(a: [Option<f64>; 7], b: [Option<f64>; 7]) -> (tempfile::TempDir, StudyOutcome) {
    let cell = |variant: &str, repeat: u64, rate: Option<f64>| {
        let why = "it ended in the middle: exit code 3".to_owned();
        let failure = MeasurementFailure { reason: why, last_lines: vec!["out of luck".to_owned()] };
        let figures =
            |rate_per_s| LoadMetrics { load: "main".into(), rate_per_s, p99_ms: Some(1.0), ..LoadMetrics::default() };
        Measurement {
            variant: variant.to_owned(),
            repeat,
            loads: rate.map(figures).into_iter().collect(),
            failure: rate.is_none().then_some(failure),
            ..Measurement::default()
        }
    };
    let of = |variant, rates: [Option<f64>; 7]| (1..).zip(rates).map(move |(at, rate)| cell(variant, at, rate));
    let dir = tempfile::tempdir().expect("a folder");
    let folder = ResultsFolder::open(dir.path()).expect("can be written");
    let cells = of("a", a).chain(of("b", b)).collect();
    let outcome = StudyOutcome {
        measurements: cells,
        missing: 0,
        interrupted: false,
        out_of_time: false,
        disjoint_cpus: true,
        folder,
    };
    (dir, outcome)
}

/// Rates with a realistic variation.
pub(crate) const STEADY_RATES_PER_S: [Option<f64>; 7] =
    [Some(100.0), Some(101.0), Some(99.0), Some(100.5), Some(99.5), Some(100.2), Some(99.8)];
