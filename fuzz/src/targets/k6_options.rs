//! The object `options` of a script of k6: a plan whose scenarios have users and a length, or one line.

use weir_k6::described_scenarios;

crate::target!(|text: &str| {
    let Ok(options) = serde_json::from_str(text) else { return };
    match described_scenarios(&options) {
        Ok(scenarios) => {
            for scenario in scenarios {
                let [start, end, until] = scenario.times;
                assert!(scenario.users > 0 && start < end && end <= until, "{scenario:?}");
                assert!(scenario.first.is_none_or(|first| first >= start), "{scenario:?}");
            }
        }
        Err(why) => assert!(!why.is_empty() && !why.contains(char::is_control), "{why:?}"),
    }
});
