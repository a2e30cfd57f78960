//! A drawing as SVG.

use super::ink::{Anchor, Ink, Position, corners};
use crate::number_format::sanitize;
use weir_base::markup;

/// A drawing in the making.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
}

/// Style for a dark colour scheme: inks, background, and colours that would be lost on it. Rules override attributes,
/// and a viewer without style rules shows a light drawing.
pub(super) const DARK_STYLE: &str = "@media (prefers-color-scheme:dark){.title,.label,.tick{fill:#e4e7ea}.note{fill:#a0a8b0}\
     .grid{stroke:#2e343a}.axis{stroke:#a0a8b0}[fill=\"#fff\"]{fill:#14171a}[fill=\"#0072b2\"]{fill:#4aa3df}\
     [stroke=\"#0072b2\"]{stroke:#4aa3df}[fill=\"#000000\"]{fill:#f1f3f5}[stroke=\"#000000\"]{stroke:#f1f3f5}\
     [fill=\"#8c6d31\"]{fill:#c9a65c}[stroke=\"#8c6d31\"]{stroke:#c9a65c}[fill=\"#882255\"]{fill:#d9739f}\
     [stroke=\"#882255\"]{stroke:#d9739f}}";

const INKS: [Ink; 6] = [Ink::Title, Ink::Note, Ink::Label, Ink::Tick, Ink::Grid, Ink::Axis];

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        let inks = INKS.map(|ink| match ink {
            Ink::Grid | Ink::Axis => format!(".{}{{stroke:{}}}", class(ink), ink.colour()),
            Ink::Title => format!(".title{{fill:{};font-size:{}px;font-weight:600}}", ink.colour(), ink.size()),
            _ => format!(".{}{{fill:{};font-size:{}px}}", class(ink), ink.colour(), ink.size()),
        });
        let fonts = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif";
        let head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<style>text{{font-family:{fonts}}}{}{DARK_STYLE}</style>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n",
            inks.concat()
        );
        Self { text: head }
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    fn push(&mut self, element: &str) {
        self.text.push_str(element);
        self.text.push('\n');
    }

    /// Words on a line.
    pub(super) fn text(&mut self, (x, y): Position, anchor: Anchor, ink: Ink, words: &str) {
        if !words.is_empty() {
            let anchor = match anchor {
                Anchor::Start => "start",
                Anchor::Middle => "middle",
                Anchor::End => "end",
            };
            let (words, class) = (escaped(words), class(ink));
            self.push(&format!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{words}</text>"
            ));
        }
    }

    /// Words that run upwards, with their middle at a place.
    pub(super) fn upright(&mut self, (x, y): Position, ink: Ink, words: &str) {
        let (words, turn, class) = (escaped(words), format!("rotate(-90 {x:.1} {y:.1})"), class(ink));
        let place = format!("x=\"{x:.1}\" y=\"{y:.1}\" transform=\"{turn}\"");
        self.push(&format!("<text {place} text-anchor=\"middle\" class=\"{class}\">{words}</text>"));
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: Position, to: Position, ink: Ink) {
        self.push(&format!("<line {} class=\"{}\"/>", ends(from, to), class(ink)));
    }

    /// The range of a point: a thin line from its lowest to its highest value.
    pub(super) fn whisker(&mut self, from: Position, to: Position, colour: &str) {
        self.push(&format!("<line {} stroke=\"{colour}\" stroke-width=\"1.5\"/>", ends(from, to)));
    }

    /// A line through points.
    pub(super) fn path(&mut self, points: &[Position], colour: &str) {
        let points = joined(points);
        self.push(&format!("<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"));
    }

    /// A pale area.
    pub(super) fn band(&mut self, outline: &[Position], colour: &str) {
        // With its outline, a band can be told from another that lies on it.
        let edge = format!("stroke=\"{colour}\" stroke-opacity=\"0.45\" stroke-width=\"0.75\"");
        let outline = joined(outline);
        self.push(&format!("<polygon points=\"{outline}\" fill=\"{colour}\" fill-opacity=\"0.12\" {edge}/>"));
    }

    /// The mark of a series, by its number; hollow for an untrusted point.
    pub(super) fn mark(&mut self, series: usize, (x, y): Position, colour: &str, solid: bool) {
        let style =
            format!("fill=\"{}\" stroke=\"{colour}\" stroke-width=\"1.5\"", if solid { colour } else { "#fff" });
        self.push(&match corners(series, (x, y)) {
            None => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" {style}/>"),
            Some(corners) => format!("<polygon points=\"{}\" {style}/>", joined(&corners)),
        });
    }
}

const fn class(ink: Ink) -> &'static str {
    match ink {
        Ink::Title => "title",
        Ink::Note => "note",
        Ink::Label => "label",
        Ink::Tick => "tick",
        Ink::Grid => "grid",
        Ink::Axis => "axis",
    }
}

fn ends(from: Position, to: Position) -> String {
    format!("x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"", from.0, from.1, to.0, to.1)
}

fn joined(points: &[Position]) -> String {
    points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

/// Words as they may stand in XML; control characters, which may not, become `?`.
fn escaped(words: &str) -> String {
    markup::escaped(&sanitize(words))
}
