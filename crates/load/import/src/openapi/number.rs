//! Numbers that a schema allows.

use super::description::ApiDescription;
use crate::tree::SourceNode;

/// Bounds of a number in a schema, inclusive or exclusive.
struct NumberRange {
    least: Option<f64>,
    most: Option<f64>,
    excludes_least: bool,
    excludes_most: bool,
}

impl NumberRange {
    fn read(schema: &SourceNode<'_>) -> Self {
        let bound = |name: &str| schema.get(name).and_then(SourceNode::number);
        // In OpenAPI 3.0 the exclusive bound is a boolean beside the other.
        let (above, below) = (bound("exclusiveMinimum"), bound("exclusiveMaximum"));
        let least = bound("minimum").into_iter().chain(above).reduce(f64::max);
        let most = bound("maximum").into_iter().chain(below).reduce(f64::min);
        Self {
            excludes_least: schema.is_true("exclusiveMinimum") || (above.is_some() && above == least),
            excludes_most: schema.is_true("exclusiveMaximum") || (below.is_some() && below == most),
            least,
            most,
        }
    }

    fn contains(&self, value: f64) -> bool {
        let is_above = self.least.is_none_or(|least| if self.excludes_least { value > least } else { value >= least });
        let is_below = self.most.is_none_or(|most| if self.excludes_most { value < most } else { value <= most });
        is_above && is_below
    }
}

/// Number of a schema; `None` if none was found.
pub(super) fn made(schema: &SourceNode<'_>, is_integer: bool, description: &ApiDescription<'_>) -> Option<String> {
    let mut range = NumberRange::read(schema);
    if is_integer && schema.text_of("format").as_deref() == Some("int32") {
        let (least, most) = (f64::from(i32::MIN), f64::from(i32::MAX));
        range.least = Some(range.least.map_or(least, |own| own.max(least)));
        range.most = Some(range.most.map_or(most, |own| own.min(most)));
    }
    // Small positive numbers where nothing else is said.
    let given = schema.get("minimum").or_else(|| schema.get("exclusiveMinimum")).is_some();
    let usual = if given { range.least.unwrap_or(1.0) } else { range.most.map_or(1.0, |most| most.min(1.0)) };
    let step_text = schema.text_of("multipleOf");
    let step = step_text.as_deref().and_then(|step| step.parse::<f64>().ok()).filter(|step| *step > 0.0);
    let grid = step.unwrap_or(1.0);
    let decimals = step_text.as_deref().map_or(0, decimals);
    let first = if given { (usual / grid).ceil() } else { (usual / grid).floor() };
    let shown = |count: f64| format!("{:.decimals$}", count * grid);
    let is_allowed = |text: &String| {
        let value = text.parse::<f64>().ok();
        value.is_some_and(|value| range.contains(value) && (!is_integer || value.fract() == 0.0))
    };
    // One of many, then the nearest ones in both directions.
    let random = (description.random() % 100) as f64;
    let half = (!is_integer && step.is_none()).then(|| format!("{:.1}", first + random + 0.5));
    let nearby = [first + random, first, first + 1.0, first - 1.0, first + 2.0, first - 2.0].map(shown);
    let middle = range.least.zip(range.most).filter(|_| !is_integer && step.is_none());
    let middle = middle.map(|(least, most)| format!("{}", least + (most - least) / 2.0));
    half.into_iter()
        .chain(nearby)
        .chain(middle)
        .find(is_allowed)
        .map(|text| if text == "-0" { "0".to_owned() } else { text })
}

/// Digits behind the point.
fn decimals(text: &str) -> usize {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let behind = digits.split_once('.').map_or(0, |(_, behind)| behind.len() as i64);
    usize::try_from((behind - exponent.parse::<i64>().unwrap_or(0)).clamp(0, 300)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::parse_json;

    #[test]
    fn numbers_are_within_their_schemas() {
        for (schema, least, most, step) in [
            ("{\"minimum\": 0, \"maximum\": 1}", 0.0, 1.0, 0.0),
            ("{\"maximum\": -5}", f64::MIN, -5.0, 0.0),
            ("{\"minimum\": 1e20}", 1e20, f64::MAX, 0.0),
            ("{\"minimum\": 0, \"exclusiveMinimum\": true, \"maximum\": 0.5}", 1e-9, 0.5, 0.0),
            ("{\"exclusiveMinimum\": 0, \"exclusiveMaximum\": 0.2}", 1e-9, 0.199, 0.0),
            ("{\"minimum\": 3, \"multipleOf\": 0.01}", 3.0, f64::MAX, 0.01),
            ("{\"minimum\": 2147483647, \"format\": \"int32\"}", 2_147_483_647.0, 2_147_483_647.0, 1.0),
            ("{\"multipleOf\": 7, \"maximum\": 10}", f64::MIN, 10.0, 7.0),
            ("{\"maximum\": 0}", f64::MIN, 0.0, 1.0),
            ("{}", 1.0, 101.0, 0.0),
        ] {
            let node = parse_json(schema).unwrap();
            let description = ApiDescription::new(&node, 7);
            let is_whole = schema.contains("int32");
            for is_integer in [is_whole, step >= 1.0] {
                let text = made(&node, is_integer, &description).unwrap();
                let value: f64 = text.parse().unwrap();
                assert!((least..=most).contains(&value), "{schema}: {text}");
                let steps = if step > 0.0 && is_integer || step == 0.01 { value / step } else { 0.0 };
                assert!((steps - steps.round()).abs() < 1e-6, "{schema}: {text}");
                assert!(!is_integer || !text.contains('.'), "{schema}: {text}");
            }
        }
        let node = parse_json("{\"minimum\": 0.2, \"maximum\": 0.8}").unwrap();
        assert_eq!(made(&node, true, &ApiDescription::new(&node, 0)), None);
    }
}
