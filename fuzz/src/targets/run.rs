//! Saved runs: parsing any text, and reporting it in any format, never panics.
//!
//! Input: arbitrary text; or, if it begins with `~`, edits of a real run: two bytes choose a value in it, one chooses
//! its replacement. Random bytes are hardly ever the JSON of a run, but a real one with a few wrong values is parsed.

use std::sync::LazyLock;

use clap::ValueEnum;
use serde_json::{Value, json};
use weir_measure::Run;
use weir_measure::slo::Slo;
use weir_report::{ReportFormat, csv, page, render};

static REAL: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../seeds/run/open.json")).expect("a saved run"));

static OBJECTIVES: LazyLock<Vec<Slo>> = LazyLock::new(|| {
    let texts = ["p99<1s", "service.p50<=0us", "mean<1ms", "max<2m", "errors<1%", "rate>10", "p100>1s"];
    texts.iter().map(|text| text.parse().expect("an objective")).collect()
});

crate::target!(|data: &[u8]| {
    let text = match data.strip_prefix(b"~") {
        Some(edits) => edited(edits),
        None => String::from_utf8_lossy(data).into_owned(),
    };
    let run = match Run::from_json(&text) {
        Ok(run) => run,
        Err(error) => {
            assert!(!error.contains('\n'), "one line: {error}");
            return;
        }
    };
    for format in ReportFormat::value_variants() {
        for color in [false, true] {
            let shown = render(&run, *format, color);
            assert!(shown.ends_with('\n'), "{format}");
            assert!(color || !shown.contains('\u{1b}'), "{format}");
        }
    }
    let _ = csv::series(&run);
    let html = page::render(&page::of_run(&run));
    assert!(html.ends_with("</html>\n") && !html.contains('\u{1b}'), "the page");
    for objective in OBJECTIVES.iter() {
        let _ = objective.check(&run);
    }
    assert_eq!(Run::from_json(&run.to_json()).as_ref(), Ok(&run), "written and read again");
});

fn edited(edits: &[u8]) -> String {
    let mut run = REAL.clone();
    for edit in edits.chunks_exact(3).take(16) {
        let mut values = Vec::new();
        leaves(&mut run, &mut values);
        let index = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % values.len();
        *values[index] = other(values[index], edit[2]);
    }
    run.to_string()
}

fn leaves<'a>(value: &'a mut Value, found: &mut Vec<&'a mut Value>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| leaves(item, found)),
        Value::Object(fields) => fields.values_mut().for_each(|field| leaves(field, found)),
        leaf => found.push(leaf),
    }
}

/// Another value, mostly of the same type.
fn other(value: &Value, choice: u8) -> Value {
    let numbers = [
        json!(0),
        json!(1),
        json!(-1),
        json!(u64::MAX),
        json!(u64::MAX - 1),
        json!(i64::MAX),
        json!(1e-300),
        json!(-0.0),
        json!(f64::MAX),
        json!(f64::MIN),
        json!(0.1),
        json!(1e15),
    ];
    let texts = ["", "\u{1b}[2J\r\n", "ä𝄞\u{202e}", "a\tb", "9", &"x".repeat(300), "/", "HISTFAAAAAA="];
    match value {
        Value::Number(_) if choice < 240 => numbers[usize::from(choice) % numbers.len()].clone(),
        Value::String(text) if choice < 200 => match choice % 16 {
            // A damaged histogram, version or URL.
            at @ 8.. => {
                let cut: String = text.chars().take(usize::from(at) * text.chars().count() / 16).collect();
                json!(cut)
            }
            index => json!(texts[usize::from(index)]),
        },
        Value::Bool(is) => json!(!is),
        _ => [json!(null), json!([]), json!({}), json!({ "200": 1, "": u64::MAX }), json!({ "x": "y" }), json!(["a"])]
            [usize::from(choice) % 6]
            .clone(),
    }
}
