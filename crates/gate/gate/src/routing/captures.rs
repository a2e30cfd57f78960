//! Captured parts of a request's path.

/// Captures that need no allocation; nearly all paths have fewer.
const INLINE_CAPTURES: usize = 6;

/// Values of a path's captures, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct CaptureValues<'p> {
    inline: [&'p str; INLINE_CAPTURES],
    further: Vec<&'p str>,
    length: usize,
}

impl<'p> CaptureValues<'p> {
    pub(super) fn push(&mut self, value: &'p str) {
        match self.inline.get_mut(self.length) {
            Some(slot) => *slot = value,
            None => self.further.push(value),
        }
        self.length += 1;
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.further.truncate(length.saturating_sub(INLINE_CAPTURES));
        self.length = length.min(self.length);
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    fn get(&self, index: usize) -> Option<&'p str> {
        if index >= self.length {
            return None;
        }
        self.inline.get(index).or_else(|| self.further.get(index - INLINE_CAPTURES)).copied()
    }
}

/// Captured parts of a request's path, by name.
#[derive(Debug)]
pub(crate) struct Captures<'a> {
    pub(super) names: &'a [String],
    pub(super) values: CaptureValues<'a>,
}

impl<'a> Captures<'a> {
    /// Value of a capture.
    pub(crate) fn get(&self, name: &str) -> Option<&'a str> {
        self.values.get(self.names.iter().position(|known| known == name)?)
    }

    /// Names and values.
    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.names.iter().filter_map(|name| Some((name.as_str(), self.get(name)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_the_inline_ones_are_kept_and_dropped() {
        let texts: Vec<String> = (0..10).map(|n| n.to_string()).collect();
        let mut values = CaptureValues::default();
        texts.iter().for_each(|text| values.push(text));
        assert!((0..10).all(|n| values.get(n) == Some(texts[n].as_str())));
        values.truncate(7);
        assert_eq!((values.get(6), values.get(7), values.len()), (Some("6"), None, 7));
        values.push("x");
        values.truncate(3);
        values.push("y");
        assert_eq!((values.get(3), values.get(4)), (Some("y"), None));
    }
}
