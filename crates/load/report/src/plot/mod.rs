//! A plot as SVG, and the same figures as CSV: a line per series, with what it varied between.
//!
//! Needs no script, font or other file. Colours are those of Okabe and Ito ("Color
//! universal design", 2008), which people with colour blindness can tell apart, and two more; shapes of points differ
//! as well.

mod ink;
mod svg;

use self::ink::{Anchor, Ink};
use self::svg::Svg;
use super::axis::{AxisRange, AxisScale, ChartAxis};

/// Drawing of series over one axis, for SVG files.
#[derive(Clone, Debug, Default)]
pub struct Plot {
    /// Subject of the plot.
    pub title: String,
    /// Remark in a line below the title.
    pub note: String,
    /// Axis from left to right; its scale and ticks follow from the points ([`Self::with_fitted_axes`]).
    pub x: ChartAxis,
    /// Axis from the bottom to the top; its scale follows from the points ([`Self::with_fitted_axes`]).
    pub y: ChartAxis,
    /// Names of what stands from left to right at 0, 1, 2, ...; empty if x are numbers.
    pub categories: Vec<String>,
    /// Kind of the x axis.
    pub x_kind: XAxisKind,
    /// The lines.
    pub series: Vec<PlotSeries>,
}

/// Meaning of a plot's x axis, from left to right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XAxisKind {
    /// Varied values: each of them is marked.
    #[default]
    Values,
    /// Shares of requests, drawn so that each nine of a percentile has as much room.
    Percentiles,
    /// A course in time.
    Time,
}

/// A line.
#[derive(Clone, Debug, Default)]
pub struct PlotSeries {
    /// Name in the legend.
    pub name: String,
    /// In order of x.
    pub points: Vec<PlotPoint>,
    /// Number of the colour and the shape of points.
    pub colour: usize,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlotPoint {
    /// Position on the x axis, or index of a category.
    pub x: f64,
    /// Position on the y axis.
    pub y: f64,
    /// Lowest value of the runs.
    pub low: f64,
    /// Highest value of the runs.
    pub high: f64,
    /// Number of runs.
    pub runs: usize,
    /// Whether some of the runs are untrusted.
    pub untrusted: bool,
}

const COLOURS: [&str; 10] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8c6d31", "#882255", "#8a8a8a"];

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
/// Minimum margin; long labels of the y axis need more.
const LEFT_MARGIN: f64 = 72.0;
const RIGHT_MARGIN: f64 = 24.0;
const BOTTOM_MARGIN: f64 = 56.0;
/// Height of a row of the legend.
const LEGEND_ROW_HEIGHT: f64 = 20.0;
/// Height of a row of names below.
const NAME_ROW_HEIGHT: f64 = 14.0;
/// Average width of a character of ticks and legend.
const CHARACTER_WIDTH: f64 = 6.8;
/// Approximate number of ticks of an axis with round values.
const TICK_COUNT: f64 = 6.0;

/// Positions of values in the drawing.
struct PlotFrame<'a> {
    x: AxisRange<'a>,
    y: AxisRange<'a>,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    /// Distance of the outermost values from the ends of the x axis.
    inset: f64,
    /// Number of names along the x axis; 0 if x are numbers.
    names: usize,
}

impl PlotFrame<'_> {
    fn x(&self, value: f64) -> f64 {
        match self.names {
            0 => self.left_to_right(self.x.at(value)),
            names => self.left + (value + 0.5) / names as f64 * (self.right - self.left),
        }
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom_to_top(self.y.at(value))
    }

    /// Position of a place in [0, 1] of the x axis.
    fn left_to_right(&self, at: f64) -> f64 {
        self.left + self.inset + at * (self.right - self.left - 2.0 * self.inset)
    }

    /// Position of a place in [0, 1] of the y axis.
    fn bottom_to_top(&self, at: f64) -> f64 {
        self.bottom + at * (self.top - self.bottom)
    }
}

impl Plot {
    /// Whether there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.points().next().is_none()
    }

    fn points(&self) -> impl Iterator<Item = &PlotPoint> {
        self.series.iter().flat_map(|series| &series.points)
    }

    /// Sets the scales, and the ticks at the values of a parameter, as the points need them.
    #[must_use]
    pub fn with_fitted_axes(mut self) -> Self {
        let axis = match self.x_kind {
            XAxisKind::Values if self.categories.is_empty() => {
                ChartAxis::of_parameter(&self.x.name, self.points().map(|point| point.x))
            }
            XAxisKind::Percentiles => ChartAxis::of_quantiles(&self.x.name),
            XAxisKind::Values | XAxisKind::Time => self.x.clone(),
        };
        self.y.scale = AxisScale::fitting(self.values());
        self.x = axis;
        self
    }

    /// Values of the y axis.
    fn values(&self) -> impl Iterator<Item = f64> {
        self.points().flat_map(|point| [point.low, point.y, point.high])
    }

    /// A header, then a line per point.
    pub fn csv(&self) -> String {
        let mut text = String::from("series,x,y,low,high,runs,untrusted\n");
        for series in &self.series {
            for point in &series.points {
                let category = self.categories.get(point.x as usize);
                let x = category.map_or_else(|| point.x.to_string(), |name| quoted(name));
                let PlotPoint { y, low, high, runs, untrusted, .. } = point;
                text.push_str(&format!("{},{x},{y},{low},{high},{runs},{untrusted}\n", quoted(&series.name)));
            }
        }
        text
    }

    /// The drawing.
    pub fn svg(&self) -> String {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        self.draw_on(&mut svg);
        svg.finish()
    }

    fn draw_on(&self, svg: &mut Svg) {
        svg.text((LEFT_MARGIN, 26.0), Anchor::Start, Ink::Title, &self.title);
        svg.text((LEFT_MARGIN, 44.0), Anchor::Start, Ink::Note, &self.note);
        let top = if self.names_stand_below() { 64.0 } else { self.legend(svg, 64.0) };
        let x = AxisRange::across(&self.x, self.points().map(|point| point.x));
        let y = AxisRange::upwards(&self.y, self.values());
        let (right, y_ticks) = (WIDTH - RIGHT_MARGIN, y.ticks(TICK_COUNT));
        let longest = y_ticks.iter().map(|tick| tick.label.chars().count()).max().unwrap_or(0);
        let left = LEFT_MARGIN.max(36.0 + longest as f64 * CHARACTER_WIDTH);
        let space = (right - left) / self.categories.len().max(1) as f64;
        let crowded = self.categories.iter().any(|name| CHARACTER_WIDTH * name.chars().count() as f64 > space);
        // Names without space side by side are in two rows.
        let second_row = if crowded { NAME_ROW_HEIGHT } else { 0.0 };
        let bottom = HEIGHT - BOTTOM_MARGIN - second_row;
        // Marked points are not drawn on the edge.
        let inset = if self.x_kind == XAxisKind::Values { (right - left) * 0.04 } else { 0.0 };
        let frame = PlotFrame { x, y, left, right, top, bottom, inset, names: self.categories.len() };
        for tick in y_ticks {
            let height = frame.bottom_to_top(tick.at);
            svg.line((left, height), (right, height), Ink::Grid);
            svg.text((left - 8.0, height + 4.0), Anchor::End, Ink::Tick, &tick.label);
        }
        svg.line((left, bottom), (right, bottom), Ink::Axis);
        let names = self.categories.iter().enumerate().map(|(index, name)| (frame.x(index as f64), name.clone()));
        let labels: Vec<(f64, String)> = if self.categories.is_empty() {
            let ticks = frame.x.ticks_across(TICK_COUNT, (right - left - 2.0 * inset) / CHARACTER_WIDTH);
            ticks.into_iter().map(|tick| (frame.left_to_right(tick.at), tick.label)).collect()
        } else {
            names.collect()
        };
        for (index, (at, label)) in labels.into_iter().enumerate() {
            let lower = if index % 2 == 1 { second_row } else { 0.0 };
            svg.line((at, bottom), (at, bottom + 5.0 + lower), Ink::Axis);
            svg.text((at, bottom + 18.0 + lower), Anchor::Middle, Ink::Tick, &label);
        }
        svg.text(((left + right) / 2.0, HEIGHT - 12.0), Anchor::Middle, Ink::Label, &self.x.title());
        svg.upright((20.0, (top + bottom) / 2.0), Ink::Label, &self.y.title());
        for (index, series) in self.series.iter().enumerate() {
            self.draw(svg, index, series, &frame);
        }
    }

    /// Whether each series is a point above its own name.
    fn names_stand_below(&self) -> bool {
        let above_its_name = |series: &PlotSeries| match series.points.as_slice() {
            [point] => self.categories.get(point.x as usize) == Some(&series.name),
            _ => false,
        };
        self.series.iter().all(above_its_name)
    }

    /// The names of the lines, and where they end.
    fn legend(&self, svg: &mut Svg, top: f64) -> f64 {
        let (mut x, mut y) = (LEFT_MARGIN, top);
        for series in &self.series {
            let colour = COLOURS[series.colour % COLOURS.len()];
            let width = 46.0 + CHARACTER_WIDTH * series.name.chars().count() as f64;
            if x > LEFT_MARGIN && x + width > WIDTH - RIGHT_MARGIN {
                (x, y) = (LEFT_MARGIN, y + LEGEND_ROW_HEIGHT);
            }
            svg.path(&[(x, y - 4.0), (x + 20.0, y - 4.0)], colour);
            if self.x_kind == XAxisKind::Values {
                svg.mark(series.colour, (x + 10.0, y - 4.0), colour, true);
            }
            svg.text((x + 26.0, y), Anchor::Start, Ink::Tick, &series.name);
            x += width;
        }
        y + 16.0
    }

    fn draw(&self, svg: &mut Svg, index: usize, series: &PlotSeries, frame: &PlotFrame<'_>) {
        let colour = COLOURS[series.colour % COLOURS.len()];
        // Categories are not joined by a line; several points of one category are drawn side by side.
        let alone = self.categories.is_empty() || self.series.iter().all(|series| series.points.len() == 1);
        let apart = if alone { 0.0 } else { 14.0 };
        let aside = apart * (index as f64 - (self.series.len() as f64 - 1.0) / 2.0);
        let at = |point: &PlotPoint, height: f64| (frame.x(point.x) + aside, frame.y(height));
        if self.categories.is_empty() && series.points.len() > 1 {
            let up = series.points.iter().map(|point| at(point, point.high));
            let down = series.points.iter().rev().map(|point| at(point, point.low));
            svg.band(&up.chain(down).collect::<Vec<_>>(), colour);
            svg.path(&series.points.iter().map(|point| at(point, point.y)).collect::<Vec<_>>(), colour);
        }
        // Marks at every point are drawn over values only; any other curve has a mark only if it is a single point.
        if self.x_kind != XAxisKind::Values && series.points.len() > 1 {
            return;
        }
        for point in &series.points {
            svg.whisker(at(point, point.low), at(point, point.high), colour);
            svg.mark(series.colour, at(point, point.y), colour, !point.untrusted);
        }
    }
}

/// For a cell of a table.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::unit::ValueUnit;

    fn plot(values: &[(f64, f64)]) -> Plot {
        let point =
            |(x, y): &(f64, f64)| PlotPoint { x: *x, y: *y, low: y * 0.9, high: y * 1.1, runs: 3, untrusted: false };
        Plot {
            title: "Throughput".into(),
            x: ChartAxis::new("connections", ValueUnit::Count),
            y: ChartAxis::new("responses", ValueUnit::PerSecond),
            series: vec![PlotSeries {
                name: "a <b> & \"c\"".into(),
                points: values.iter().map(point).collect(),
                colour: 0,
            }],
            ..Plot::default()
        }
        .with_fitted_axes()
    }

    /// Numbers after `name="`.
    fn coordinates(svg: &str, name: &str) -> Vec<f64> {
        let begin = format!(" {name}=\"");
        let starts = svg.match_indices(&begin).map(|(at, found)| at + found.len());
        starts.filter_map(|at| svg[at..].split('"').next()?.parse().ok()).collect()
    }

    #[test]
    fn names_cannot_break_the_drawing() {
        let svg = plot(&[(1.0, 2.0)]).svg();
        assert!(svg.contains("a &lt;b&gt; &amp; &quot;c&quot;") && !svg.contains("<b>"), "{svg}");
    }

    #[test]
    fn names_in_two_rows_leave_room_for_what_stands_below_them() {
        let plot = |length: usize| {
            let categories = (0..5).map(|index| format!("{index}").repeat(length)).collect();
            Plot { categories, ..plot(&[(0.0, 2.0), (1.0, 3.0), (2.0, 8.0), (3.0, 5.0), (4.0, 1.0)]) }
        };
        for (length, rows) in [(3, 1), (30, 2)] {
            let svg = plot(length).svg();
            let mut below: Vec<f64> = coordinates(&svg, "y").into_iter().filter(|y| *y > HEIGHT - 80.0).collect();
            below.sort_by(f64::total_cmp);
            below.dedup();
            let label = below.pop().expect("the label");
            assert!(below.last().is_some_and(|name| label - name >= 24.0), "{label} below {below:?}");
            // And a figure at the other axis.
            assert_eq!(below.len(), 1 + rows, "{below:?}");
        }
    }

    #[test]
    fn the_table_has_what_the_drawing_shows() {
        let csv = plot(&[(1.0, 2.0), (4.0, 8.0)]).csv();
        assert_eq!(csv.lines().count(), 3);
        assert_eq!(csv.lines().nth(1), Some("\"a <b> & \"\"c\"\"\",1,2,1.8,2.2,3,false"));
    }

    proptest! {
        #[test]
        fn everything_is_drawn_within_the_picture(
            mut values in prop::collection::vec((0.0..1e6_f64, 0.0..1e9_f64), 1..12),
            across in prop::sample::select(vec![XAxisKind::Values, XAxisKind::Percentiles, XAxisKind::Time]),
        ) {
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            let svg = Plot { x_kind: across, ..plot(&values) }.with_fitted_axes().svg();
            for (names, most) in [(["x1", "x2", "cx"], WIDTH), (["y1", "y2", "cy"], HEIGHT)] {
                for name in names {
                    let all = coordinates(&svg, name);
                    prop_assert!(all.iter().all(|at| (0.0..=most).contains(at)), "{name}: {all:?}");
                }
            }
            prop_assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
