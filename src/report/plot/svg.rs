//! The pieces of a drawing.

/// A drawing in the making.
#[derive(Debug)]
pub(super) struct Svg {
    text: String,
}

const STYLE: &str = "text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#222}\
    .title{font-size:17px;font-weight:600}.note{font-size:12px;fill:#666}.label{font-size:13px}.tick{font-size:12px}\
    .grid{stroke:#e4e4e4}.axis{stroke:#444}";

impl Svg {
    pub(super) fn new(width: f64, height: f64) -> Self {
        let head = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<style>{STYLE}</style>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
        );
        Self { text: head }
    }

    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, words: &str) {
        if !words.is_empty() {
            let words = escaped(words);
            self.push(&format!(
                "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{words}</text>"
            ));
        }
    }

    /// Words that run upwards.
    pub(super) fn upright(&mut self, x: f64, y: f64, class: &str, words: &str) {
        let (words, turn) = (escaped(words), format!("rotate(-90 {x:.1} {y:.1})"));
        let place = format!("x=\"{x:.1}\" y=\"{y:.1}\" transform=\"{turn}\"");
        self.push(&format!("<text {place} text-anchor=\"middle\" class=\"{class}\">{words}</text>"));
    }

    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        self.push(&format!("<line {} class=\"{class}\"/>", ends(from, to)));
    }

    pub(super) fn whisker(&mut self, from: (f64, f64), to: (f64, f64), colour: &str) {
        self.push(&format!("<line {} stroke=\"{colour}\" stroke-width=\"1.5\"/>", ends(from, to)));
    }

    pub(super) fn path(&mut self, points: &[(f64, f64)], colour: &str) {
        let points = joined(points);
        self.push(&format!("<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>"));
    }

    pub(super) fn band(&mut self, points: &[(f64, f64)], colour: &str) {
        self.push(&format!("<polygon points=\"{}\" fill=\"{colour}\" fill-opacity=\"0.15\"/>", joined(points)));
    }

    /// The mark of a series; hollow for what is in doubt.
    pub(super) fn mark(&mut self, series: usize, (x, y): (f64, f64), colour: &str, solid: bool) {
        let style =
            format!("fill=\"{}\" stroke=\"{colour}\" stroke-width=\"1.5\"", if solid { colour } else { "#fff" });
        let shape = match series % 3 {
            0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" {style}/>"),
            1 => format!("<rect x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\" {style}/>", x - 4.0, y - 4.0),
            _ => {
                let corners = joined(&[(x, y - 5.0), (x + 5.0, y + 4.0), (x - 5.0, y + 4.0)]);
                format!("<polygon points=\"{corners}\" {style}/>")
            }
        };
        self.push(&shape);
    }

    fn push(&mut self, element: &str) {
        self.text.push_str(element);
        self.text.push('\n');
    }
}

fn ends(from: (f64, f64), to: (f64, f64)) -> String {
    format!("x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"", from.0, from.1, to.0, to.1)
}

fn joined(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}

/// Words as they may stand in XML; control characters, which may not, become `?`.
fn escaped(words: &str) -> String {
    let words = super::super::figure::plain(words);
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
