//! JSONPaths on bodies: nothing panics, what is found is part of the body and JSON, and a wildcard finds what a tree has.
//! The first line is the path, the rest the body.

use serde_json::Value;
use weir_json::JsonPath;

crate::target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len());
    let (path, body) = (&bytes[..end], bytes.get(end + 1..).unwrap_or_default());
    let tree: Option<Value> = serde_json::from_slice(body).ok();
    if let Some(tree) = &tree {
        let mut found = Vec::new();
        let every = JsonPath::parse("$.*").expect("a path");
        let result = every.find(body, &mut found);
        // Members of the same name are all found here, and the last one is in the tree.
        let count = match tree {
            Value::Array(list) => list.len(),
            Value::Object(map) => map.len(),
            _ => 0,
        };
        assert!(result.is_err() || found.len() >= count, "{} of {count}", found.len());
    }
    let Ok(path) = std::str::from_utf8(path) else { return };
    let Ok(path) = JsonPath::parse(path) else { return };
    let mut found = Vec::new();
    if path.find(body, &mut found).is_err() {
        return;
    }
    let within = body.as_ptr_range();
    for node in &found {
        let part = node.as_ptr_range();
        assert!(within.start <= part.start && part.end <= within.end);
        if tree.is_some() {
            assert!(serde_json::from_slice::<Value>(node).is_ok(), "{}", node.escape_ascii());
        }
    }
    assert!(!path.is_singular() || found.len() <= 1, "{} nodes of a singular path", found.len());
});
