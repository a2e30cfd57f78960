//! Random paths on random bodies, against evaluation on a tree.

use proptest::prelude::*;
use serde_json::Value;

use super::super::JsonPath;

/// Segment of the oracle, which knows no filters with functions.
#[derive(Clone, Debug)]
enum Step {
    Name(String),
    Index(i64),
    Wildcard,
    Slice(Option<i64>, Option<i64>, i64),
    Below(Box<Step>),
    GreaterThan(String, i64),
}

impl Step {
    fn text(&self) -> String {
        let number = |n: &Option<i64>| n.map(|n| n.to_string()).unwrap_or_default();
        match self {
            Self::Name(name) => format!("['{name}']"),
            Self::Index(index) => format!("[{index}]"),
            Self::Wildcard => "[*]".into(),
            Self::Slice(start, end, step) => format!("[{}:{}:{step}]", number(start), number(end)),
            Self::Below(step) => format!("..{}", step.text()),
            Self::GreaterThan(name, n) => format!("[?@.{name} > {n}]"),
        }
    }

    fn apply<'v>(&self, node: &'v Value, out: &mut Vec<&'v Value>) {
        let children = |node: &'v Value| -> Vec<&'v Value> {
            match node {
                Value::Array(list) => list.iter().collect(),
                Value::Object(map) => map.values().collect(),
                _ => Vec::new(),
            }
        };
        match self {
            Self::Name(name) => out.extend(node.get(name)),
            Self::Index(index) => {
                let list = node.as_array().map(Vec::as_slice).unwrap_or_default();
                let at = if *index < 0 { list.len() as i64 + index } else { *index };
                out.extend(usize::try_from(at).ok().and_then(|at| list.get(at)));
            }
            Self::Wildcard => out.extend(children(node)),
            Self::Slice(start, end, step) => {
                let list = node.as_array().map(Vec::as_slice).unwrap_or_default();
                let length = list.len() as i64;
                let place = |n: i64| if n < 0 { length + n } else { n };
                // All offsets that Python's slices would visit.
                let first = start.map_or(if *step > 0 { 0 } else { length - 1 }, place);
                let mut at = if *step > 0 { first.max(0) } else { first.min(length - 1) };
                let stop = end.map(place);
                while at >= 0 && at < length && *step != 0 {
                    if stop.is_some_and(|stop| if *step > 0 { at >= stop } else { at <= stop }) {
                        break;
                    }
                    out.push(&list[at as usize]);
                    at += step;
                }
            }
            Self::Below(step) => {
                step.apply(node, out);
                for child in children(node) {
                    self.apply(child, out);
                }
            }
            Self::GreaterThan(name, n) => {
                let above = |v: &&Value| v.get(name).and_then(Value::as_f64).is_some_and(|v| v > *n as f64);
                out.extend(children(node).into_iter().filter(above));
            }
        }
    }
}

fn bodies() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5..5_i64).prop_map(Value::from),
        "[a-c\\\\\"é{}\\[\\], :]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn steps() -> impl Strategy<Value = Step> {
    let bound = || prop::option::of(-5..5_i64);
    let plain = prop_oneof![
        "[abc]".prop_map(Step::Name),
        (-4..4_i64).prop_map(Step::Index),
        Just(Step::Wildcard),
        (bound(), bound(), -3..3_i64).prop_map(|(start, end, step)| Step::Slice(start, end, step)),
        ("[abc]", -3..3_i64).prop_map(|(name, n)| Step::GreaterThan(name, n)),
    ];
    (plain, any::<bool>()).prop_map(|(step, below)| if below { Step::Below(Box::new(step)) } else { step })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn paths_select_what_they_select_in_a_tree(body in bodies(), steps in prop::collection::vec(steps(), 0..4), pretty: bool) {
        let path: String = std::iter::once("$".to_owned()).chain(steps.iter().map(Step::text)).collect();
        let text = if pretty { serde_json::to_string_pretty(&body) } else { serde_json::to_string(&body) }.expect("JSON");
        let mut expected = vec![&body];
        for step in &steps {
            let mut next = Vec::new();
            expected.iter().for_each(|node| step.apply(node, &mut next));
            expected = next;
        }
        let mut matches = Vec::new();
        let parsed = JsonPath::parse(&path).expect("a path");
        parsed.find(text.as_bytes(), &mut matches).expect("JSON");
        if parsed.is_singular() {
            let one = parsed.find_one(text.as_bytes()).expect("JSON");
            prop_assert_eq!(one, matches.first().copied(), "{} on {}", path, text);
        }
        let found: Vec<Value> = matches.iter().map(|node| serde_json::from_slice(node).expect("a value")).collect();
        prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{} on {}", path, text);
    }

    #[test]
    fn nothing_panics(path in "[$@.\\[\\]'\"?*:,0-9a-c()<>=!&| -]{0,30}", body in "[{}\\[\\]\"\\\\:,a0-9tfn. -]{0,40}") {
        if let Ok(path) = JsonPath::parse(&format!("${path}")) {
            let _ = path.find(body.as_bytes(), &mut Vec::new());
            let _ = path.find_one(body.as_bytes());
        }
    }
}
