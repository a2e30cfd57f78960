//! A chart as a still picture: what is seen without the script, on paper, and in documents.

use super::cells::SHADES;
use super::html::Html;
use super::{BarRow, Chart, ChartCells, ChartLine, ValueInterval};
use crate::axis::AxisRange;
use weir_page::CHART_STYLE;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 260.0;
const TOP_MARGIN: f64 = 26.0;
const BOTTOM_MARGIN: f64 = 44.0;
const RIGHT_MARGIN: f64 = 18.0;
/// The width of a character of the labels, as a guess that is never too small.
const CHARACTER_WIDTH: f64 = 7.2;
/// Points of a line that are drawn apart; more of them would lie on one another.
const MAX_POINT_COLUMNS: f64 = 320.0;

/// More bands than these would become one: then each point has its interval.
const MAX_BANDS: usize = 3;
/// How far the intervals of lines are apart.
const INTERVAL_SPACING: f64 = 2.5;

/// Positions of values in the picture.
struct ChartFrame<'a> {
    x: AxisRange<'a>,
    y: AxisRange<'a>,
    left: f64,
}

impl ChartFrame<'_> {
    fn x(&self, value: f64) -> f64 {
        self.left_to_right(self.x.at(value))
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom_to_top(self.y.at(value))
    }

    /// Position of a place in [0, 1] of the x axis.
    fn left_to_right(&self, at: f64) -> f64 {
        round(self.left + at * self.width())
    }

    /// Position of a place in [0, 1] of the y axis.
    fn bottom_to_top(&self, at: f64) -> f64 {
        round(TOP_MARGIN + (1.0 - at) * (HEIGHT - BOTTOM_MARGIN - TOP_MARGIN))
    }

    fn width(&self) -> f64 {
        WIDTH - RIGHT_MARGIN - self.left
    }
}

/// A tenth of a point is less than can be seen.
fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// A chart as a file of its own, with its title and its legend, light or dark as its reader likes it.
pub fn file(chart: &Chart) -> String {
    const HEAD: f64 = 58.0;
    let mut html = Html::default();
    html.raw(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-12 -8 664 334\" font-family=\"system-ui, sans-serif\" ",
    );
    html.raw("role=\"img\" aria-label=\"").text(&chart.title).raw("\">\n<style>").raw(CHART_STYLE).raw("</style>\n");
    rectangle(&mut html, "card", [-12.0, -8.0, WIDTH + 24.0, HEIGHT + HEAD + 16.0]);
    html.raw("<text class=\"title\" y=\"18\">").text(&chart.title).raw("</text>");
    let mut x = 0.0;
    for (line, hue) in chart.lines.iter().zip(chart.hues()) {
        path(&mut html, "line h", &hue, &format!("M{x} 38h16"));
        label(&mut html, x + 22.0, 42.0, "start", &line.name);
        x = round(x + 40.0 + line.name.chars().count() as f64 * CHARACTER_WIDTH);
    }
    html.raw("\n<g transform=\"translate(0 58)\">\n");
    body(&mut html, chart);
    html.raw("</g>\n</svg>\n");
    html.into_string()
}

/// Draws it into a page, to be scaled to any width.
pub(super) fn draw(html: &mut Html, chart: &Chart) {
    html.raw("<svg viewBox=\"0 0 640 260\" role=\"img\" aria-label=\"").text(&chart.title).raw("\">");
    body(html, &chart.visible());
    html.raw("</svg>");
}

fn body(html: &mut Html, chart: &Chart) {
    let mut frame = frame(chart);
    let y_ticks = frame.y.ticks(5.0);
    let longest = y_ticks.iter().map(|tick| tick.label.chars().count()).max().unwrap_or(0);
    frame.left = 14.0 + longest as f64 * CHARACTER_WIDTH;
    let x_ticks = frame.x.ticks_across(7.0, frame.width() / CHARACTER_WIDTH);
    if let Some(cells) = &chart.cells {
        draw_cells(html, &frame, cells);
    }
    for span in &chart.spans {
        let (from, to) = (frame.x(span.from), frame.x(span.to));
        rectangle(html, "span", [from, TOP_MARGIN, (to - from).max(0.0), HEIGHT - BOTTOM_MARGIN - TOP_MARGIN]);
        label(html, from + 4.0, TOP_MARGIN + 13.0, "start", &span.name);
    }
    for tick in y_ticks {
        let y = frame.bottom_to_top(tick.at);
        path(html, "grid", "", &format!("M{} {y}H{}", frame.left, WIDTH - RIGHT_MARGIN));
        label(html, frame.left - 7.0, y + 4.0, "end", &tick.label);
    }
    for tick in x_ticks {
        label(html, frame.left_to_right(tick.at), HEIGHT - BOTTOM_MARGIN + 18.0, "middle", &tick.label);
    }
    label(html, 0.0, 12.0, "start", &chart.y.name);
    label(html, WIDTH - RIGHT_MARGIN, HEIGHT - 6.0, "end", &chart.x.name);
    for level in &chart.levels {
        let y = frame.y(level.at);
        path(html, "level", "", &format!("M{} {y}H{}", frame.left, WIDTH - RIGHT_MARGIN));
        label(html, WIDTH - RIGHT_MARGIN - 4.0, y - 5.0, "end", &level.name);
    }
    let banded = chart.lines.iter().filter(|line| !line.band.is_empty()).count();
    for (number, (line, hue)) in chart.lines.iter().zip(chart.hues()).enumerate().rev() {
        let (shape, outline) = (line_path(&frame, line), envelope(&frame, line));
        if banded > MAX_BANDS {
            path(html, "reach h", &hue, &interval_path(&frame, line, number as f64 - (banded as f64 - 1.0) / 2.0));
        } else if !outline.is_empty() {
            path(html, "band h", &hue, &outline);
        }
        path(html, "line h", &hue, &shape);
        dots(html, &frame, line, &hue);
    }
    point_names(html, &frame, &chart.lines);
}

/// Names of points, above them or below; those without room are left out.
fn point_names(html: &mut Html, frame: &ChartFrame<'_>, lines: &[ChartLine]) {
    let mut taken: Vec<(f64, f64, f64)> = Vec::new();
    for line in lines {
        for ((name, x), y) in line.labels.iter().zip(&line.x).zip(&line.y) {
            let Some(y) = y.filter(|y| frame.y.contains(*y)) else { continue };
            let half = name.chars().count() as f64 * CHARACTER_WIDTH / 2.0;
            let x = frame.x(*x).clamp(frame.left + half, (WIDTH - half).max(frame.left + half));
            let is_free = |at: &f64| {
                let apart = |(other, side, height): &(f64, f64, f64)| {
                    (other - x).abs() > side + half + 3.0 || (height - at).abs() > 13.0
                };
                (12.0..HEIGHT - BOTTOM_MARGIN).contains(at) && taken.iter().all(apart)
            };
            let Some(at) = [frame.y(y) - 8.0, frame.y(y) + 17.0].into_iter().find(is_free) else { continue };
            taken.push((x, half, at));
            label(html, x, at, "middle", name);
        }
    }
}

/// Cells of a heat map: a path for each shade.
fn draw_cells(html: &mut Html, frame: &ChartFrame<'_>, cells: &ChartCells) {
    for shade in 1..=SHADES {
        let shape = |[left, right, low, high]: [f64; 4]| {
            let [left, right, low, high] = [frame.x(left), frame.x(right), frame.y(low), frame.y(high)];
            format!("M{left} {low}H{right}V{high}H{left}Z")
        };
        let course: String = cells.of_shade(shade).map(shape).collect();
        if !course.is_empty() {
            path(html, "cells s", &shade.to_string(), &course);
        }
    }
}

/// Points of a line, if they are few enough to be drawn with marks.
fn dots(html: &mut Html, frame: &ChartFrame<'_>, line: &ChartLine, hue: &str) {
    const MAX_DOTS: usize = 40;
    if line.x.len() > MAX_DOTS {
        return;
    }
    for (i, (x, y)) in line.x.iter().zip(&line.y).enumerate() {
        let Some(y) = y.filter(|y| frame.y.contains(*y)) else { continue };
        html.raw(if line.untrusted.contains(&i) { "<circle class=\"dot hollow h" } else { "<circle class=\"dot h" });
        html.text(hue).raw("\" cx=\"").number(frame.x(*x)).raw("\" cy=\"").number(frame.y(y)).raw("\" r=\"2.5\"/>");
    }
}

/// A bar, and a whisker over its interval, each as a share of the longest.
pub(super) fn bar(html: &mut Html, bar: &BarRow, most: f64) {
    html.raw("<svg viewBox=\"0 0 100 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\" class=\"");
    html.raw(if bar.untrusted { "hollow h" } else { "h" }).text(&super::chart::hue(bar.hue)).raw("\">");
    let least = if bar.value > 0.0 { 0.4 } else { 0.0 };
    rectangle(html, "filled", [0.0, 0.0, round(bar.value / most * 100.0).max(least), 10.0]);
    if let Some(ValueInterval { low, high }) = bar.interval {
        let ends = [low, high].map(|end| round(end / most * 100.0));
        path(html, "whisker", "", &format!("M{} 5H{}M{0} 2V8M{1} 2V8", ends[0], ends[1]));
    }
    html.raw("</svg>");
}

fn frame(chart: &Chart) -> ChartFrame<'_> {
    let of_cells = chart.cells.iter().flat_map(|cells| cells.x_values());
    let xs = chart.lines.iter().flat_map(|line| line.x.iter().copied()).chain(of_cells);
    let levels = chart.levels.iter().map(|level| level.at);
    let bounds = chart.cells.iter().flat_map(|cells| [cells.bounds.first(), cells.bounds.last()]).flatten().copied();
    let ys = chart.lines.iter().flat_map(ChartLine::values).chain(levels).chain(bounds);
    ChartFrame { x: AxisRange::across(&chart.x, xs), y: AxisRange::upwards(&chart.y, ys), left: 0.0 }
}

/// The line. Of points that share a column the least and the greatest are kept, so that no peak is lost.
fn line_path(frame: &ChartFrame<'_>, line: &ChartLine) -> String {
    let mut text = String::new();
    let (mut joined, mut i) = (false, 0);
    while let (Some(x), Some(y)) = (line.x.get(i), line.y.get(i)) {
        let Some(y) = y.filter(|y| y.is_finite()) else {
            (joined, i) = (false, i + 1);
            continue;
        };
        let column = column(frame, *x);
        let (mut low, mut high) = ((*x, y), (*x, y));
        i += 1;
        while let (Some(x), Some(Some(y))) = (line.x.get(i), line.y.get(i)) {
            if column != self::column(frame, *x) || !y.is_finite() {
                break;
            }
            if *y < low.1 {
                low = (*x, *y);
            }
            if *y > high.1 {
                high = (*x, *y);
            }
            i += 1;
        }
        let ends = if low.0 <= high.0 { [low, high] } else { [high, low] };
        let ends = &ends[..if low == high { 1 } else { 2 }];
        let ends_here = !line.y.get(i).copied().flatten().is_some_and(f64::is_finite);
        let alone = !joined && ends_here && ends.len() == 1;
        for (x, y) in ends {
            text.push_str(&format!("{}{} {}", if joined { 'L' } else { 'M' }, frame.x(*x), frame.y(*y)));
            joined = true;
        }
        if alone {
            text.push_str("h.1"); // a single point would be invisible
        }
    }
    text
}

/// The interval of each point as a line, `place` steps beside it: there are others at the same place.
fn interval_path(frame: &ChartFrame<'_>, line: &ChartLine, place: f64) -> String {
    let points = line.x.iter().zip(&line.band).filter_map(|(x, band)| Some((*x, (*band)?)));
    let mut last = None;
    // Of points that share a column the first is enough.
    let apart = points.filter(|(x, _)| last.replace(column(frame, *x)) != Some(column(frame, *x)));
    apart
        .map(|(x, ValueInterval { low, high })| {
            format!("M{} {}V{}", round(frame.x(x) + place * INTERVAL_SPACING), frame.y(low), frame.y(high))
        })
        .collect()
}

fn column(frame: &ChartFrame<'_>, x: f64) -> i64 {
    (frame.x.at(x) * MAX_POINT_COLUMNS) as i64
}

/// The outline of the band: along its upper side, and back along the lower one.
fn envelope(frame: &ChartFrame<'_>, line: &ChartLine) -> String {
    let points: Vec<_> = line.x.iter().zip(&line.band).filter_map(|(x, band)| Some((*x, (*band)?))).collect();
    let step = points.len().div_ceil(MAX_POINT_COLUMNS as usize).max(1);
    let sides = points.chunks(step).filter_map(|chunk| {
        let low = chunk.iter().map(|p| p.1.low).fold(f64::INFINITY, f64::min);
        Some((chunk.first()?.0, low, chunk.iter().map(|p| p.1.high).fold(f64::NEG_INFINITY, f64::max)))
    });
    let sides: Vec<_> = sides.collect();
    let there = sides.iter().map(|(x, _, high)| (frame.x(*x), frame.y(*high)));
    let back = sides.iter().rev().map(|(x, low, _)| (frame.x(*x), frame.y(*low)));
    let outline: Vec<String> = there.chain(back).map(|(x, y)| format!("{x} {y}")).collect();
    if outline.is_empty() { String::new() } else { format!("M{}Z", outline.join("L")) }
}

fn path(html: &mut Html, class: &'static str, hue: &str, course: &str) {
    html.raw("<path class=\"").raw(class).text(hue).raw("\" d=\"").text(course).raw("\"/>");
}

fn rectangle(html: &mut Html, class: &'static str, [x, y, width, height]: [f64; 4]) {
    html.raw("<rect class=\"").raw(class).raw("\" x=\"").number(x).raw("\" y=\"").number(y);
    html.raw("\" width=\"").number(round(width)).raw("\" height=\"").number(height).raw("\"/>");
}

fn label(html: &mut Html, x: f64, y: f64, anchor: &'static str, words: &str) {
    html.raw("<text x=\"").number(round(x)).raw("\" y=\"").number(round(y)).raw("\" text-anchor=\"").raw(anchor);
    html.raw("\">").text(words).raw("</text>");
}

#[cfg(test)]
mod tests {
    use super::super::{AxisScale, ChartAxis, ValueUnit};
    use super::*;

    fn chart(points: impl IntoIterator<Item = (f64, Option<f64>)>) -> Chart {
        let axis = |name| ChartAxis::new(name, ValueUnit::Count);
        Chart::new("t", axis("x"), axis("y")).line(ChartLine::new("l", points))
    }

    fn drawn(chart: &Chart) -> String {
        line_path(&frame(chart), &chart.lines[0])
    }

    #[test]
    fn names_of_points_are_drawn_where_there_is_room() {
        let names = |points: &[(f64, f64)], names: &[&str]| {
            let line = ChartLine::new("l", points.iter().map(|(x, y)| (*x, Some(*y))));
            let chart = Chart { lines: vec![line.labelled(names.iter().map(|name| (*name).into()))], ..chart([]) };
            let drawn = file(&chart);
            names.iter().map(|name| drawn.contains(&format!(">{name}</text>"))).collect::<Vec<_>>()
        };
        assert_eq!(names(&[(0.0, 50.0), (100.0, 50.0)], &["one", "two"]), [true, true]);
        // Two share a place: above it and below it; the third has none.
        assert_eq!(
            names(&[(0.0, 50.0), (50.0, 50.0), (50.1, 50.0), (50.2, 50.0)], &["a", "b", "c", "d"]),
            [true, true, true, false]
        );
        // At the upper edge there is room below.
        assert_eq!(names(&[(0.0, 0.0), (50.0, 100.0)], &["low", "high"]), [true, true]);
    }

    #[test]
    fn of_many_points_the_peaks_stay() {
        let points = (0..100_000).map(|i| (f64::from(i), Some(if i == 54_321 { 1000.0 } else { f64::from(i % 7) })));
        let chart = chart(points);
        let course = drawn(&chart);
        assert!(course.len() < 20_000, "{}", course.len());
        let peak = format!(" {}", frame(&chart).y(1000.0));
        assert!(course.split(['M', 'L']).any(|point| point.ends_with(&peak)), "{course}");
    }

    #[test]
    fn a_gap_parts_the_line_and_a_single_point_is_seen() {
        let course =
            drawn(&chart([(0.0, Some(1.0)), (1.0, None), (2.0, Some(1.0)), (3.0, Some(f64::NAN)), (4.0, Some(2.0))]));
        assert_eq!(
            (course.matches('M').count(), course.matches("h.1").count(), course.matches('L').count()),
            (3, 3, 0)
        );
    }

    #[test]
    fn charts_with_nothing_or_absurd_values_in_them_are_drawn_all_the_same() {
        let absurd = [0.0, -1e300, 1e300, f64::INFINITY, f64::NAN, f64::MIN_POSITIVE];
        for scale in [AxisScale::Linear, AxisScale::Log, AxisScale::Tail] {
            for x in absurd {
                for y in absurd {
                    let mut chart = chart([(x, Some(y)), (x + 1.0, None)]);
                    (chart.x.scale, chart.y.scale) = (scale, scale);
                    assert!(file(&chart).contains("</svg>"));
                }
            }
            let mut empty = chart([]);
            (empty.x.scale, empty.y.scale) = (scale, scale);
            assert!(!file(&empty).contains("NaN"));
        }
    }
}
