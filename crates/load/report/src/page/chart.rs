//! Lines over an axis: a course in time, a distribution, a sweep.

use serde_json::{Value, json};

use super::{ChartAxis, ChartCells, Tone, ValueInterval, ValueUnit};
use weir_measure::slo::{Slo, SloCriterion, TimeKind};

/// Line chart of a page, with its axes, marked periods and levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Subject of the chart.
    pub title: String,
    /// Remark for the reader; may be empty.
    pub note: String,
    /// From left to right.
    pub x: ChartAxis,
    /// From the bottom to the top.
    pub y: ChartAxis,
    /// Lines; the first ones stand out most.
    pub lines: Vec<ChartLine>,
    /// Heat map behind the lines.
    pub cells: Option<Box<ChartCells>>,
    /// Stretches of the x axis that mean something, such as a warm-up.
    pub spans: Vec<ChartSpan>,
    /// Values of the y axis that mean something, such as a deadline.
    pub levels: Vec<ChartLevel>,
    /// Charts of a page that name the same group zoom together; may be empty.
    pub group: String,
    /// Charts of a group that name the same choice have the same lines, which are shown and hidden together; may be
    /// empty.
    pub choice: String,
}

/// A line of points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChartLine {
    /// Name in the legend.
    pub name: String,
    /// Failures are [`Tone::Bad`]; all others take their own colour, or the next one.
    pub tone: Tone,
    /// The number of its colour, if it is to have the same one in several charts.
    pub hue: Option<usize>,
    /// Whether it is broad and pale, for others to lie on it.
    pub beneath: bool,
    /// In ascending order.
    pub x: Vec<f64>,
    /// Values, as many as `x`; None is a gap.
    pub y: Vec<Option<f64>>,
    /// The interval round each point, e.g. of 95%: as many as `x`, or none at all.
    pub band: Vec<Option<ValueInterval>>,
    /// Points that are not to be relied on, by index; they are drawn hollow.
    pub untrusted: Vec<usize>,
    /// Whether it is drawn only once a reader chooses it; such a line has a colour of its own.
    pub hidden: bool,
    /// Names of its points, as many as `x`, or none at all; those without room are left out.
    pub labels: Vec<String>,
}

/// Marked period of the x axis.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartSpan {
    /// Start on the x axis.
    pub from: f64,
    /// End on the x axis.
    pub to: f64,
    /// Name of the period, for its label.
    pub name: String,
}

/// A value of the y axis.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartLevel {
    /// Value on the y axis.
    pub at: f64,
    /// Name of the level, beside its line.
    pub name: String,
}

impl ChartLevel {
    /// Level of an objective on response times or on the rate of successes, on an axis of the unit.
    pub fn of_objective(objective: &str, unit: &ValueUnit) -> Option<Self> {
        let at = match unit {
            ValueUnit::Milliseconds => return Self::of_times(objective, TimeKind::Response),
            ValueUnit::PerSecond => objective.parse::<Slo>().ok()?.min_rate()?,
            _ => return None,
        };
        (at > 0.0).then(|| Self { at, name: objective.to_owned() })
    }

    /// Level of an objective on times of a kind, on an axis of milliseconds.
    pub fn of_times(objective: &str, kind: TimeKind) -> Option<Self> {
        let limit = match objective.parse::<Slo>().ok()?.criterion()? {
            SloCriterion::InTime { kind: judged, limit, .. } | SloCriterion::Mean { kind: judged, limit } => {
                (judged == kind).then(|| limit.as_millis_f64())?
            }
            _ => return None,
        };
        (limit > 0.0).then(|| Self { at: limit, name: objective.to_owned() })
    }
}

impl ChartLine {
    /// A line through points, in ascending order of x.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = (f64, Option<f64>)>) -> Self {
        let (x, y) = points.into_iter().unzip();
        Self { name: name.into(), x, y, ..Self::default() }
    }

    /// With an interval round each point.
    #[must_use]
    pub fn within(mut self, band: impl IntoIterator<Item = Option<ValueInterval>>) -> Self {
        self.band = band.into_iter().collect();
        self
    }

    /// In a tone.
    #[must_use]
    pub fn in_tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// Sets the number of the line's colour, independent of its place in a chart.
    #[must_use]
    pub fn in_hue(mut self, hue: usize) -> Self {
        self.hue = Some(hue);
        self
    }

    /// Broad and pale, below the others.
    #[must_use]
    pub fn beneath(mut self) -> Self {
        self.beneath = true;
        self
    }

    /// With these points, by index, not to be relied on.
    #[must_use]
    pub fn doubting(mut self, points: impl IntoIterator<Item = usize>) -> Self {
        self.untrusted = points.into_iter().collect();
        self
    }

    /// With a name at each point.
    #[must_use]
    pub fn labelled(mut self, labels: impl IntoIterator<Item = String>) -> Self {
        self.labels = labels.into_iter().collect();
        self
    }

    /// Not drawn until a reader chooses it.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// All values that it shows, its band's too.
    pub(super) fn values(&self) -> impl Iterator<Item = f64> + '_ {
        let band = self.band.iter().flatten().flat_map(|of| [of.low, of.high]);
        self.y.iter().flatten().copied().chain(band)
    }
}

impl Chart {
    /// A chart without lines yet.
    pub fn new(title: &str, x: ChartAxis, y: ChartAxis) -> Self {
        Self {
            title: title.to_owned(),
            note: String::new(),
            x,
            y,
            lines: Vec::new(),
            cells: None,
            spans: Vec::new(),
            levels: Vec::new(),
            group: String::new(),
            choice: String::new(),
        }
    }

    /// Chart without the lines that are drawn only when they are chosen.
    pub(super) fn visible(&self) -> Self {
        let lines = self.lines.iter().filter(|line| !line.hidden).cloned().collect();
        Self { lines, ..self.clone() }
    }

    /// With one more line.
    #[must_use]
    pub fn line(mut self, line: ChartLine) -> Self {
        self.lines.push(line);
        self
    }

    /// Whether there is anything to draw.
    pub fn is_empty(&self) -> bool {
        self.cells.is_none() && self.lines.iter().all(|line| line.values().next().is_none())
    }

    /// Colour of each line: a number, or that of failures.
    pub(super) fn hues(&self) -> Vec<String> {
        let mut next = 0;
        let mut hue = |line: &ChartLine| match (line.tone, line.hue) {
            (Tone::Bad, _) => "bad".to_owned(),
            (_, Some(own)) => self::hue(own),
            (_, None) => {
                next += 1;
                self::hue(next - 1)
            }
        };
        self.lines.iter().map(|line| hue(line) + if line.beneath { " under" } else { "" }).collect()
    }
}

/// How many colours the style has, and how many ways to dash a line beside the solid one.
const HUE_COUNT: usize = 12;
const DASH_COUNT: usize = 2;

/// The class of a colour by its number, without the `h`; from the thirteenth on, colours come back dashed.
pub(super) fn hue(number: usize) -> String {
    match number / HUE_COUNT % (DASH_COUNT + 1) {
        0 => (number % HUE_COUNT).to_string(),
        dash => format!("{} d{dash}", number % HUE_COUNT),
    }
}

/// The charts of a page as the script reads them: values of x that several lines share stand there once.
pub(super) fn to_json(charts: &[&Chart]) -> Value {
    let mut shared: Vec<&[f64]> = Vec::new();
    let mut index = |x| {
        shared.iter().position(|known| *known == x).unwrap_or_else(|| {
            shared.push(x);
            shared.len() - 1
        })
    };
    let mut all = Vec::new();
    for chart in charts {
        let lines = chart.lines.iter().zip(chart.hues()).map(|(line, hue)| {
            let mut fields = json!({
                "name": line.name,
                "hue": hue,
                "x": index(line.x.as_slice()),
                "y": line.y.iter().map(|y| y.map_or(Value::Null, number)).collect::<Vec<_>>(),
            });
            if !line.band.is_empty() {
                let side = |side: fn(&ValueInterval) -> f64| -> Value {
                    line.band.iter().map(|b| b.as_ref().map_or(Value::Null, |b| number(side(b)))).collect()
                };
                fields["low"] = side(|of| of.low);
                fields["high"] = side(|of| of.high);
            }
            if !line.untrusted.is_empty() {
                fields["untrusted"] = json!(line.untrusted);
            }
            if line.hidden {
                fields["hidden"] = json!(true);
            }
            if !line.labels.is_empty() {
                fields["labels"] = json!(line.labels);
            }
            fields
        });
        let lines: Value = lines.collect();
        let axes = [&chart.x, &chart.y].map(|axis| {
            let unit = axis.unit.script_name();
            let mut fields =
                json!({ "name": axis.name, "unit": unit, "of": axis.unit.name(), "scale": axis.scale.script_name() });
            if !axis.marked.is_empty() {
                fields["marked"] = axis.marked.iter().copied().map(number).collect();
            }
            fields
        });
        let spans: Value = chart.spans.iter().map(|s| json!([number(s.from), number(s.to), s.name])).collect();
        let levels: Value = chart.levels.iter().map(|l| json!([number(l.at), l.name])).collect();
        let (title, group) = (&chart.title, &chart.group);
        let mut fields = json!({
            "title": title, "group": group, "lines": lines, "axes": axes, "spans": spans, "levels": levels,
        });
        if !chart.choice.is_empty() {
            fields["choice"] = json!(chart.choice);
        }
        if let Some(cells) = &chart.cells {
            fields["cells"] = cells.to_json(number);
        }
        all.push(fields);
    }
    let shared: Vec<Vec<Value>> = shared.iter().map(|x| x.iter().copied().map(number).collect()).collect();
    json!({ "x": shared, "charts": all })
}

/// To seven digits, which is more than can be seen, and half the size.
fn number(value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return Value::from(value as i64);
    }
    let rounded: f64 = format!("{value:.6e}").parse().unwrap_or(value);
    if rounded.fract() == 0.0 { Value::from(rounded as i64) } else { Value::from(rounded) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let axis = |name| ChartAxis::new(name, ValueUnit::Count);
        let x = [1.0, 2.0, 3.0];
        Chart::new("t", axis("x"), axis("y"))
            .line(
                ChartLine::new("a", x.map(|x| (x, Some(x * 1.0 / 3.0))))
                    .within(x.map(|x| Some(ValueInterval { low: 0.0, high: x }))),
            )
            .line(ChartLine::new("b", x.map(|x| (x, None))).in_tone(Tone::Bad))
            .line(ChartLine::new("c", [(1.0, Some(f64::NAN))]))
    }

    #[test]
    fn what_lines_share_stands_there_once_and_numbers_are_short() {
        let json = to_json(&[&chart(), &chart()]);
        assert_eq!(json["x"], json!([[1, 2, 3], [1]]));
        let line = &json["charts"][1]["lines"][0];
        assert_eq!(line["y"], json!([0.3333333, 0.6666667, 1]));
        assert_eq!((&line["low"], &line["high"]), (&json!([0, 0, 0]), &json!([1, 2, 3])));
        assert_eq!(json["charts"][0]["lines"][2]["y"], json!([null]), "not a number is a gap");
        let doubted = chart().line(ChartLine::new("d", [(1.0, Some(2.0)), (2.0, Some(3.0))]).doubting([1]));
        assert_eq!(to_json(&[&doubted])["charts"][0]["lines"][3]["untrusted"], json!([1]));
        assert_eq!(line["untrusted"], Value::Null, "nothing is said where there is no doubt");
    }

    #[test]
    fn failures_have_the_colour_of_failures_and_the_others_take_turns() {
        assert_eq!(chart().hues(), ["0", "bad", "1"]);
        assert_eq!(chart().line(ChartLine::default().in_hue(5)).hues(), ["0", "bad", "1", "5"]);
    }

    #[test]
    fn a_ninth_line_has_a_colour_of_its_own_and_so_has_a_thirtieth() {
        let style = weir_page::CHART_STYLE;
        let hues: std::collections::BTreeSet<String> = (0..36).map(hue).collect();
        assert_eq!(hues.len(), 36);
        for n in 0..HUE_COUNT {
            assert!(style.contains(&format!(".h{n} {{ --hue")), "{n}");
        }
        for dash in 1..=DASH_COUNT {
            assert!(style.contains(&format!(".line.d{dash} {{")), "{dash}");
        }
        assert_eq!([hue(8), hue(12), hue(25)], ["8", "0 d1", "1 d2"]);
    }

    #[test]
    fn objectives_lie_where_their_unit_is() {
        let at = |text, unit: ValueUnit| ChartLevel::of_objective(text, &unit).map(|level| level.at);
        assert_eq!(at("p99<200ms", ValueUnit::Milliseconds), Some(200.0));
        assert_eq!(at("mean<0.5s", ValueUnit::Milliseconds), Some(500.0));
        assert_eq!(at("rate>1000", ValueUnit::PerSecond), Some(1000.0));
        assert_eq!([at("errors<1%", ValueUnit::Milliseconds), at("rate>1000", ValueUnit::Milliseconds)], [None, None]);
        assert_eq!([at("p99<200ms", ValueUnit::PerSecond), at("soon", ValueUnit::Milliseconds)], [None, None]);
    }
}
