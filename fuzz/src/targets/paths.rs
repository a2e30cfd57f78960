//! Paths: nothing panics; normalization is idempotent, and its result begins with a slash and is unambiguous.

use weir_net::path::{PathRule, normalize};

crate::target!(|input: (bool, bool, &str)| {
    let (merge_slashes, pass_ambiguous, path) = input;
    let rule = PathRule { merge_slashes, pass_ambiguous, ..PathRule::default() };
    let Ok(once) = normalize(path, rule) else {
        assert!(!pass_ambiguous, "{path:?}");
        return;
    };
    assert_eq!(normalize(&once, rule).as_deref(), Ok(&*once), "{path:?}");
    if !path.starts_with('/') {
        assert_eq!(once, path);
        return;
    }
    assert!(once.starts_with('/') && once.is_ascii(), "{path:?}: {once}");
    assert!(!once.split('/').any(|segment| segment == "." || segment == ".."), "{path:?}: {once}");
    assert!(!merge_slashes || !once.contains("//"), "{path:?}: {once}");
    if !pass_ambiguous {
        let lower = once.to_ascii_lowercase();
        assert!(!["%2f", "%5c", "%00", "\\"].iter().any(|doubt| lower.contains(doubt)), "{path:?}: {once}");
    }
});
