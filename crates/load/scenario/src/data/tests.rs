//! Tests of data and think time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_pace::shard::Shard;
use weir_pace::source::RequestSource;

use super::*;
use crate::value::Value;

fn rows(name: &str, text: &str) -> DataRows {
    DataRows::parse(name, text.as_bytes()).unwrap()
}

fn mistake(name: &str, content: &[u8]) -> String {
    DataRows::parse(name, content).unwrap_err().to_string()
}

fn row(rows: &DataRows, index: usize) -> Vec<Value> {
    rows.row(index).collect()
}

#[test]
fn columns_of_csv_are_text_with_quotes_and_line_breaks() {
    let text = "\u{feff}user, password\r\nada,\"a,\"\"b\"\"\"\r\n\r\n007,\"two\nlines\"\n";
    let csv = rows("users.csv", text);
    assert_eq!((csv.columns(), csv.len()), (&["user".to_owned(), "password".to_owned()][..], 2));
    assert_eq!(row(&csv, 0), [Value::text("ada"), Value::text("a,\"b\"")]);
    assert_eq!(row(&csv, 1), [Value::text("007"), Value::text("two\nlines")]);
    assert_eq!(row(&csv, 2), []);
    assert_eq!(row(&rows("users.tsv", "a\tb\n1,2\t3\n"), 0), [Value::text("1,2"), Value::text("3")]);
}

#[test]
fn values_of_json_keep_their_types() {
    let array = r#"[{"id": 18446744073709551616, "ok": true, "tags": ["a", 1], "at": {"x": 1.5}, "name": "\u00e9"}]"#;
    let lines = array.trim_matches(['[', ']']).replace("{\"id\"", "\n{\"id\"");
    for rows in [rows("a.json", array), rows("a.jsonl", &lines), rows("data", array), rows("data", &lines)] {
        assert_eq!(rows.columns(), ["id", "ok", "tags", "at", "name"]);
        let tags = Value::List(vec![Value::text("a"), Value::Integer(1)]);
        let at = Value::Object("{\"x\": 1.5}".into());
        let expected =
            [Value::Number("18446744073709551616".into()), Value::Bool(true), tags, at, Value::text("\u{e9}")];
        assert_eq!(row(&rows, 0), expected);
    }
}

#[test]
fn rows_of_json_have_the_columns_of_the_first_one_in_any_order() {
    let json = rows("a.jsonl", "{\"a\": 1, \"b\": 2}\n\n{\"c\": 0, \"b\": 4, \"a\": 3}\n");
    assert_eq!(row(&json, 1), [Value::Integer(3), Value::Integer(4)]);
}

#[test]
fn a_bad_file_is_one_line_with_its_place() {
    for (name, content, expected) in [
        ("u.csv", &b"a,b\n1,2\n3\n"[..], "u.csv:3: 1 field for 2 columns"),
        ("u.csv", b"a,b\n1,2,3\n", "u.csv:2: 3 fields for 2 columns"),
        ("u.csv", b"a,b,a\n1,2,3\n", "u.csv:1: two columns have the name 'a'"),
        ("u.csv", b"a,,c\n1,2,3\n", "u.csv:1: invalid name of a column ''"),
        ("u.csv", b"a b\n1\n", "u.csv:1: invalid name of a column 'a b'"),
        ("u.csv", b"", "u.csv:1: the file is empty"),
        ("u.csv", b"\xef\xbb\xbf \n", "u.csv:1: the file is empty"),
        ("u.csv", b"a,b\n", "u.csv:1: no rows"),
        ("u.csv", b"a\nx\n\xff\n", "u.csv:3: invalid UTF-8"),
        ("u.json", b"{\"a\": 1}", "u.json:1: not an array of objects"),
        ("u.json", b"[]", "u.json:1: no rows"),
        ("u.json", b"[{\"a\": 1},\n 2]", "u.json:2: not an object"),
        ("u.json", b"[{\"a\": 1},\n {\"b\": 2}]", "u.json:2: no 'a', which the first row has"),
        ("u.json", b"[{\"a\": 1}\n {\"b\": 2}]", "u.json:2: invalid JSON: "),
        ("u.json", b"[{\"a\": 1, \"a\": 2}]", "u.json:1: invalid JSON: two members have the name 'a'"),
        ("u.json", b"[{}]", "u.json:1: an object without members"),
        ("u.jsonl", b"{\"a\": 1}\n\n{\"a\": }\n", "u.jsonl:3: invalid JSON: "),
        ("u.jsonl", b"[1]\n", "u.jsonl:1: not an object"),
    ] {
        let found = mistake(name, content);
        assert!(found.starts_with(expected), "{found}, not {expected}");
        assert!(!found.contains('\n'), "{found}");
    }
}

#[test]
fn think_times_are_parsed() {
    let (s, ms) = (Nanos::from_secs, Nanos::from_millis);
    assert_eq!(ThinkTime::parse("1s"), Ok(ThinkTime::Constant(s(1))));
    assert_eq!(ThinkTime::parse("constant 250ms"), Ok(ThinkTime::Constant(ms(250))));
    assert_eq!(ThinkTime::parse("0"), Ok(ThinkTime::None));
    assert_eq!(ThinkTime::parse("1s..3s"), Ok(ThinkTime::Uniform { min: s(1), max: s(3) }));
    assert_eq!(ThinkTime::parse("0.5 .. 1m"), Ok(ThinkTime::Uniform { min: ms(500), max: s(60) }));
    assert_eq!(ThinkTime::parse("exponential 2s"), Ok(ThinkTime::Exponential { mean: s(2) }));
    for (text, reason) in [
        ("", "it is empty"),
        ("often", "'often' is not a time"),
        ("3s..1s", "the second time is below the first"),
        ("1s..", "'' is not a time"),
        ("gamma 2s", "unknown distribution 'gamma'; choose constant, exponential or lognormal"),
        ("exponential", "exponential has one time"),
        ("lognormal 2s", "lognormal has two times"),
        ("lognormal 2s 1s", "the 95th percentile is below the median"),
        ("lognormal 0s 1s", "the median is 0"),
        ("-1s", "'-1s' is not a time"),
    ] {
        let found = ThinkTime::parse(text).unwrap_err();
        assert!(found.starts_with(&format!("invalid think time '{text}': {reason}")), "{found}");
        assert!(found.contains("write e.g. 1s, 1s..3s, exponential 2s or lognormal 2s 8s"), "{found}");
    }
}

/// Fraction of draws that are at most each of these times.
fn fractions(think: &ThinkTime, seed: u64, times: &[Nanos]) -> Vec<f64> {
    const DRAWS: usize = 20_000;
    let mut rng = SeededRng::new(seed, 1);
    let draws: Vec<Nanos> = (0..DRAWS).map(|_| think.sample(&mut rng)).collect();
    times.iter().map(|at| draws.iter().filter(|time| *time <= at).count() as f64 / DRAWS as f64).collect()
}

/// Six standard deviations of a fraction of 20,000 draws.
const TOLERANCE: f64 = 0.022;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn quantiles_of_think_times_are_those_of_their_distributions(
        seed: u64, base_ms in 1..10_000_u64, factor in 1.0..50.0_f64, quantile in 0.02..0.98_f64
    ) {
        let base = Nanos::from_millis(base_ms);
        let scaled = |by: f64| Nanos((base.0 as f64 * by) as u64);
        let name = |time: Nanos| format!("{}us", time.0 / 1000);
        let uniform = ThinkTime::parse(&format!("{}..{}", name(base), name(scaled(1.0 + factor)))).unwrap();
        let exponential = ThinkTime::parse(&format!("exponential {}", name(base))).unwrap();
        let lognormal = ThinkTime::parse(&format!("lognormal {} {}", name(base), name(scaled(factor)))).unwrap();
        let found = fractions(&uniform, seed, &[scaled(1.0 + factor * quantile), base - Nanos(1), scaled(1.0 + factor)]);
        prop_assert!((found[0] - quantile).abs() < TOLERANCE && found[1] == 0.0 && found[2] > 0.99, "{found:?}");
        let found = fractions(&exponential, seed, &[scaled(-(1.0 - quantile).ln())]);
        prop_assert!((found[0] - quantile).abs() < TOLERANCE, "{found:?}");
        if factor > 1.05 {
            let found = fractions(&lognormal, seed, &[base, scaled(factor)]);
            prop_assert!((found[0] - 0.5).abs() < TOLERANCE && (found[1] - 0.95).abs() < TOLERANCE, "{found:?}");
        }
    }

    /// Iterations by any split into agents and threads take each row once, and in a mix too.
    #[test]
    fn unique_rows_are_dealt_once_over_any_agents_and_threads(
        rows in 1..300_u64, more in 0..100_u64, agents in 1..6_u64, threads in 1..4_u64, seed: u64,
        weights in prop::collection::vec(1.0..9.0_f64, 1..4)
    ) {
        let choice = RequestSource::new(&weights, seed);
        let total = (rows + more) * weights.len() as u64;
        let mut taken: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        for agent in 0..agents {
            for thread in 0..threads {
                let shard = Shard::WHOLE.split(agent, agents).split(thread, threads);
                let mut ordinals = ScenarioOrdinals::default();
                for number in (0..shard.count(total)).map(|nth| shard.nth(nth)) {
                    let scenario = choice.pick(number);
                    let ordinal = ordinals.of(|number| Some(choice.pick(number)), number);
                    if let Some(row) = RowOrder::Unique.row(ordinal, 0, seed, rows) {
                        *taken.entry((scenario, row)).or_insert(0) += 1;
                    }
                }
            }
        }
        let mut expected = BTreeMap::new();
        for scenario in 0..weights.len() {
            let iterations = (0..total).filter(|number| choice.pick(*number) == scenario).count() as u64;
            expected.extend((0..rows.min(iterations)).map(|row| ((scenario, row), 1)));
        }
        prop_assert_eq!(taken, expected);
    }

    #[test]
    fn rows_are_a_function_of_the_number_and_within_the_file(number: u64, user: u64, seed: u64, rows in 1..1000_u64) {
        for order in RowOrder::ALL {
            let row = order.row(number, user, seed, rows);
            prop_assert_eq!(row, order.row(number, user, seed, rows));
            prop_assert!(row.is_none_or(|row| row < rows));
            prop_assert_eq!(order.to_string().parse(), Ok(order));
        }
        prop_assert_eq!(RowOrder::Circular.row(number, user, seed, rows), Some(number % rows));
        prop_assert_eq!(RowOrder::Once.row(number, number % rows, seed, rows), Some(number % rows));
        prop_assert_eq!(RowOrder::Circular.row(number, user, seed, 0), None);
    }

    #[test]
    fn any_bytes_are_rows_or_one_line(content in prop::collection::vec(any::<u8>(), 0..200), kind in 0..4_usize) {
        let name = ["u.csv", "u.json", "u.jsonl", "u"][kind];
        match DataRows::parse(name, &content) {
            Ok(rows) => prop_assert!(!rows.is_empty() && row(&rows, 0).len() == rows.columns().len()),
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{}", error),
        }
    }
}

#[test]
fn random_rows_are_equally_likely() {
    let mut counts = [0_u32; 10];
    for number in 0..100_000 {
        let row = RowOrder::Random.row(number, 0, 7, 10).unwrap();
        counts[usize::try_from(row).unwrap()] += 1;
    }
    assert!(counts.iter().all(|count| count.abs_diff(10_000) < 600), "{counts:?}");
}

#[test]
fn an_unknown_order_has_the_known_ones() {
    let found = "shuffle".parse::<RowOrder>().unwrap_err();
    assert_eq!(found, "unknown order 'shuffle'; choose circular, unique, random or once");
}
