//! Results of other tools: whatever the text, reading it and comparing it in any form never panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir::measure::compare::Settings;
use weir::report::comparison::{Asked, Comparison, Kept, Side, likeness, markdown, text};
use weir::report::read::read;

fuzz_target!(|data: &[u8]| {
    let reading = match read(&String::from_utf8_lossy(data)) {
        Ok(reading) => reading,
        Err(why) => {
            assert!(!why.contains('\n'), "one line: {why}");
            return;
        }
    };
    let kept = Kept { file: "run".into(), reading };
    let side = |name: &str, runs: usize| Side { name: name.into(), runs: vec![kept.clone(); runs] };
    let sides = [side("a", 3), side("b", 3), side("c", 1)];
    assert!(likeness::obstacles(&sides).is_empty(), "it is like itself");
    let settings = Settings { resamples: 19, ..Settings::default() };
    let comparison = Comparison::new(&sides, &Asked::USUAL, &settings, Vec::new());
    assert!(!comparison.has_worse(), "it is not worse than itself");
    for shown in [text::render(&comparison, false), markdown::render(&comparison), comparison.to_json()] {
        assert!(shown.ends_with('\n') && !shown.contains('\u{1b}'));
    }
});
