//! A drawing in pixels.
//!
//! Letters are those of the Ubuntu font (Ubuntu Font Licence 1.0), which comes with the program: on many servers there
//! is no other.

use epaint_default_fonts::UBUNTU_LIGHT;
use tiny_skia::{Color, FillRule, Paint, Path, PathBuilder, Pixmap, Stroke, Transform};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::canvas::{Anchor, Canvas, Ink, Position, corners};
use crate::number_format::sanitize;

/// Pixels for a unit of the drawing.
const PIXELS_PER_UNIT: f32 = 2.0;
/// By how much letters are thickened, as a share of their size: the font is a light one.
const STROKE_WEIGHT_FRACTION: f32 = 0.025;
const BOLD_WEIGHT_FRACTION: f32 = 0.06;

/// A drawing in the making.
pub(super) struct Png {
    pixels: Pixmap,
    face: Face<'static>,
}

impl Png {
    /// An empty one.
    ///
    /// # Errors
    /// There is no memory for it, or no font.
    pub(super) fn new(width: f64, height: f64) -> Result<Self, String> {
        let [width, height] = [width, height].map(|length| (length as f32 * PIXELS_PER_UNIT).ceil() as u32);
        let mut pixels = Pixmap::new(width, height).ok_or("a picture of no size, or too large a one")?;
        pixels.fill(Color::WHITE);
        let face = Face::parse(UBUNTU_LIGHT, 0).map_err(|error| format!("the font cannot be read: {error}"))?;
        Ok(Self { pixels, face })
    }

    /// The file.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn finish(self) -> Result<Vec<u8>, String> {
        self.pixels.encode_png().map_err(|error| format!("the picture cannot be encoded: {error}"))
    }

    fn fill(&mut self, path: Option<Path>, colour: &str, opacity: f32, place: Transform) {
        if let Some(path) = path {
            self.pixels.fill_path(&path, &paint(colour, opacity), FillRule::Winding, place, None);
        }
    }

    fn stroke(&mut self, path: Option<Path>, colour: &str, width: f32, place: Transform) {
        if let Some(path) = path {
            let stroke = Stroke { width, ..Stroke::default() };
            self.pixels.stroke_path(&path, &paint(colour, 1.0), &stroke, place, None);
        }
    }

    /// Words that begin, end or have their middle at 0, moved to their place.
    fn draw_text(&mut self, words: &str, anchor: Anchor, ink: Ink, place: Transform) {
        let scale = ink.size() as f32 / f32::from(self.face.units_per_em());
        let glyph = |c: char| self.face.glyph_index(c).or_else(|| self.face.glyph_index('?')).unwrap_or(GlyphId(0));
        let glyphs: Vec<GlyphId> = sanitize(words).chars().map(glyph).collect();
        let advance = |glyph: &GlyphId| f32::from(self.face.glyph_hor_advance(*glyph).unwrap_or(0)) * scale;
        let width: f32 = glyphs.iter().map(advance).sum();
        let from = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -width / 2.0,
            Anchor::End => -width,
        };
        let mut letters = GlyphOutline { path: PathBuilder::new(), at: from, scale };
        for glyph in &glyphs {
            self.face.outline_glyph(*glyph, &mut letters);
            letters.at += advance(glyph);
        }
        let path = letters.path.finish();
        let weight = if ink == Ink::Title { BOLD_WEIGHT_FRACTION } else { STROKE_WEIGHT_FRACTION };
        self.fill(path.clone(), ink.colour(), 1.0, place);
        self.stroke(path, ink.colour(), weight * ink.size() as f32, place);
    }
}

impl Canvas for Png {
    fn text(&mut self, (x, y): Position, anchor: Anchor, ink: Ink, words: &str) {
        self.draw_text(words, anchor, ink, plane().pre_translate(x as f32, y as f32));
    }

    fn upright(&mut self, (x, y): Position, ink: Ink, words: &str) {
        let place = plane().pre_translate(x as f32, y as f32).pre_rotate(-90.0);
        self.draw_text(words, Anchor::Middle, ink, place);
    }

    fn line(&mut self, from: Position, to: Position, ink: Ink) {
        self.stroke(through(&[from, to], false), ink.colour(), 1.0, plane());
    }

    fn whisker(&mut self, from: Position, to: Position, colour: &str) {
        self.stroke(through(&[from, to], false), colour, 1.5, plane());
    }

    fn path(&mut self, points: &[Position], colour: &str) {
        self.stroke(through(points, false), colour, 2.0, plane());
    }

    fn band(&mut self, outline: &[Position], colour: &str) {
        self.fill(through(outline, true), colour, 0.15, plane());
    }

    fn mark(&mut self, series: usize, at: Position, colour: &str, solid: bool) {
        let shape = match corners(series, at) {
            Some(corners) => through(&corners, true),
            None => PathBuilder::from_circle(at.0 as f32, at.1 as f32, 4.0),
        };
        self.fill(shape.clone(), if solid { colour } else { "#ffffff" }, 1.0, plane());
        self.stroke(shape, colour, 1.5, plane());
    }
}

/// From the drawing's units to pixels.
fn plane() -> Transform {
    Transform::from_scale(PIXELS_PER_UNIT, PIXELS_PER_UNIT)
}

/// None of fewer than two points.
fn through(points: &[Position], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (i, (x, y)) in points.iter().map(|(x, y)| (*x as f32, *y as f32)).enumerate() {
        match i {
            0 => path.move_to(x, y),
            _ => path.line_to(x, y),
        }
    }
    if closed {
        path.close();
    }
    path.finish()
}

/// `#rrggbb`; black if it is anything else.
fn paint(colour: &str, opacity: f32) -> Paint<'static> {
    let part = |at: usize| colour.get(at..at + 2).and_then(|digits| u8::from_str_radix(digits, 16).ok()).unwrap_or(0);
    let mut paint = Paint::default();
    paint.set_color_rgba8(part(1), part(3), part(5), (opacity * 255.0).round() as u8);
    paint.anti_alias = true;
    paint
}

/// The outlines of letters, one after the other on a line.
struct GlyphOutline {
    path: PathBuilder,
    at: f32,
    scale: f32,
}

impl GlyphOutline {
    fn position(&self, x: f32, y: f32) -> (f32, f32) {
        (self.at + x * self.scale, -y * self.scale)
    }
}

impl OutlineBuilder for GlyphOutline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.position(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.position(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.position(x1, y1), self.position(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.position(x1, y1), self.position(x2, y2), self.position(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
