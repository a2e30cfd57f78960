//! Latest values as a row of bars, one column each.

use std::collections::VecDeque;

/// Latest values, in order.
#[derive(Clone, Debug, Default)]
pub struct Sparkline {
    values: VecDeque<Option<f64>>,
}

/// Bars from the lowest to the highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

impl Sparkline {
    /// Maximum number of columns.
    pub const MAX_COLUMNS: usize = 16;

    /// Adds a value, which is not negative; None leaves its column blank.
    pub fn push(&mut self, value: Option<f64>) {
        if self.values.len() == Self::MAX_COLUMNS {
            self.values.pop_front();
        }
        self.values.push_back(value);
    }

    /// The last values in `columns` columns or fewer; a full bar is the highest of them.
    pub fn text(&self, columns: usize) -> String {
        let shown = self.values.iter().skip(self.values.len().saturating_sub(columns));
        let top = shown.clone().copied().flatten().fold(0.0, f64::max);
        let bar = |value: &Option<f64>| {
            let Some(value) = value else { return ' ' };
            let eighths = if top > 0.0 { (value / top * BARS.len() as f64).ceil() } else { 0.0 };
            BARS[(eighths as usize).clamp(1, BARS.len()) - 1]
        };
        shown.map(bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_of_the_last_values_is_a_full_bar() {
        let mut line = Sparkline::default();
        assert_eq!(line.text(8), "");
        line.push(Some(0.0));
        assert_eq!(line.text(8), "▁");
        [1.0, 4.0, 8.0].into_iter().for_each(|value| line.push(Some(value)));
        assert_eq!([line.text(8), line.text(2), line.text(0)], ["▁▁▄█", "▄█", ""]);
        (0..100).for_each(|_| line.push(Some(1.0)));
        assert_eq!(line.text(100), "█".repeat(Sparkline::MAX_COLUMNS));
        line.push(None);
        assert_eq!(line.text(2), "█ ");
        line.push(Some(f64::NAN));
        assert_eq!(line.text(2).chars().count(), 2);
    }
}
