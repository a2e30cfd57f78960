//! Scripts in TypeScript: types become spaces, and lines keep their numbers.

use weir_k6::without_types;

crate::target!(|text: &str| {
    let lines = |text: &str| text.matches('\n').count();
    if let Ok(made) = without_types("fuzz.ts", text) {
        assert_eq!(lines(&made), lines(text));
        // What is left has no types: it stays as it is.
        if let Ok(again) = without_types("fuzz.ts", &made) {
            assert_eq!(lines(&again), lines(text));
        }
    }
});
