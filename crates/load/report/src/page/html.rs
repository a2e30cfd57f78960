//! Text that is HTML.
//!
//! Pages contain text that services sent and users typed. Only [`Html::text`] admits such text, and it escapes it;
//! [`Html::raw`] admits only text that is written in the source.

use crate::number_format::sanitize;
use weir_base::markup::reference;

/// Text that is HTML already.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Appends markup that is written in the source.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Words from anywhere, in an element or between the quotes of an attribute.
    pub(super) fn text(&mut self, words: &str) -> &mut Self {
        for c in sanitize(words).chars() {
            if let Some(reference) = reference(c) {
                self.0.push_str(reference);
                continue;
            }
            match c {
                '\'' => self.0.push_str("&#39;"),
                // Marks that turn the direction of what follows could make one address look like another.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => self.0.push('?'),
                c => self.0.push(c),
            }
        }
        self
    }

    /// A number: a coordinate, or a value as it is.
    pub(super) fn number(&mut self, value: f64) -> &mut Self {
        self.0.push_str(&value.to_string());
        self
    }

    /// All that was written.
    pub(super) fn into_string(self) -> String {
        self.0
    }

    /// JSON inside an element `script`, where only `</script` and `<!--` have a meaning.
    pub(super) fn json(&mut self, value: &serde_json::Value) -> &mut Self {
        self.0.push_str(&value.to_string().replace('<', "\\u003c"));
        self
    }
}
