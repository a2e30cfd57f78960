//! Secrets, left out of what is printed.

use weir_load::steps::{MASK, Redaction};

/// Values that are left out of what is printed; none if secrets are shown.
#[derive(Debug)]
pub(super) struct SecretMask {
    redaction: Redaction,
    values: Vec<String>,
    is_on: bool,
}

impl SecretMask {
    /// Mask of these values; without effect if secrets are shown.
    pub(super) fn new(redaction: Redaction, values: &[String], show_secrets: bool) -> Self {
        let mut mask = Self { redaction, values: Vec::new(), is_on: !show_secrets };
        values.iter().for_each(|value| mask.add(value));
        mask
    }

    /// Adds the value of a variable, if it is a secret by its name.
    pub(super) fn add_variable(&mut self, name: &str, json: &str) {
        if self.redaction.is_secret_variable(name) {
            self.add(json.trim_matches('"'));
        }
    }

    /// Adds the values of the fields of a body that are secrets by their names.
    pub(super) fn add_fields(&mut self, body: &[u8]) {
        self.redaction.field_values(body).iter().for_each(|value| self.add(value));
    }

    /// Adds a value that later text does not show.
    pub(super) fn add(&mut self, value: &str) {
        if !value.is_empty() && !self.values.iter().any(|known| known == value) {
            self.values.push(value.to_owned());
            // A secret that contains another one is replaced as a whole.
            self.values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        }
    }

    /// The text without secret values.
    pub(super) fn text(&self, text: &str) -> String {
        if !self.is_on {
            return text.to_owned();
        }
        self.values.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK))
    }

    /// Value of a header.
    pub(super) fn header(&self, name: &str, value: &str) -> String {
        if self.is_on && self.redaction.is_secret_header(name) { MASK.to_owned() } else { self.text(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_unless_they_are_shown() {
        let secrets = ["pw".to_owned(), "pw-long".to_owned()];
        let mask = SecretMask::new(Redaction::default(), &secrets, false);
        assert_eq!(mask.text("a pw-long b pw"), "a *** b ***");
        assert_eq!((mask.header("cookie", "x"), mask.header("X-Id", "pw")), ("***".to_owned(), "***".to_owned()));
        let shown = SecretMask::new(Redaction::default(), &secrets, true);
        assert_eq!((shown.text("pw"), shown.header("Cookie", "x")), ("pw".to_owned(), "x".to_owned()));
    }
}
