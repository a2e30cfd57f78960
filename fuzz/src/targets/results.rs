//! Results of other tools: parsing and comparing any text never panics.

use weir_measure::compare::Settings;
use weir_report::comparison::{MetricSelector, RunComparison, SavedRun, Side, comparability, markdown, text};
use weir_report::read::read;

crate::target!(|data: &[u8]| {
    let reading = match read(&String::from_utf8_lossy(data)) {
        Ok(reading) => reading,
        Err(error) => {
            assert!(!error.contains('\n'), "one line: {error}");
            return;
        }
    };
    let saved = SavedRun { file: "run".into(), result: reading };
    let side = |name: &str, runs: usize| Side { name: name.into(), runs: vec![saved.clone(); runs] };
    let sides = [side("a", 3), side("b", 3), side("c", 1)];
    assert!(comparability::obstacles(&sides).is_empty(), "a run is comparable to itself");
    let settings = Settings { resamples: 19, ..Settings::default() };
    let comparison = RunComparison::new(&sides, &MetricSelector::DEFAULTS, &settings, Vec::new());
    assert!(!comparison.has_worse(), "it is not worse than itself");
    for shown in [text::render(&comparison, false), markdown::render(&comparison), comparison.to_json()] {
        assert!(shown.ends_with('\n') && !shown.contains('\u{1b}'));
    }
});
