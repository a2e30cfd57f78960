//! Places, inks and marks of a drawing.

/// A place: to the right, and down.
pub(super) type Position = (f64, f64);

/// Which end of words is where they are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Purpose of texts and lines, which decides their colour and size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Title,
    Note,
    Label,
    Tick,
    Grid,
    Axis,
}

impl Ink {
    /// Colour, as in CSS.
    pub(super) const fn colour(self) -> &'static str {
        match self {
            Self::Title | Self::Label | Self::Tick => "#222222",
            Self::Note => "#666666",
            Self::Grid => "#e4e4e4",
            Self::Axis => "#444444",
        }
    }

    /// The size of its letters.
    pub(super) const fn size(self) -> f64 {
        match self {
            Self::Title => 17.0,
            Self::Label => 13.0,
            Self::Note | Self::Tick | Self::Grid | Self::Axis => 12.0,
        }
    }
}

/// Corners of the mark of a series; none of a round one.
pub(super) fn corners(series: usize, (x, y): Position) -> Option<Vec<Position>> {
    match series % 3 {
        0 => None,
        1 => Some(vec![(x - 4.0, y - 4.0), (x + 4.0, y - 4.0), (x + 4.0, y + 4.0), (x - 4.0, y + 4.0)]),
        _ => Some(vec![(x, y - 5.0), (x + 5.0, y + 4.0), (x - 5.0, y + 4.0)]),
    }
}
