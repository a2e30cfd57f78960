//! Secrets, left out of what is printed.

/// What stands for a secret.
const MASK: &str = "***";
/// Headers whose values are left out.
const SECRET_HEADERS: [&str; 4] = ["authorization", "cookie", "set-cookie", "proxy-authorization"];

/// Values that are left out of what is printed; none if secrets are shown.
#[derive(Debug)]
pub(super) struct SecretMask {
    values: Vec<String>,
    is_on: bool,
}

impl SecretMask {
    /// Mask of these values; without effect if secrets are shown.
    pub(super) fn new(values: &[String], show_secrets: bool) -> Self {
        let mut mask = Self { values: Vec::new(), is_on: !show_secrets };
        values.iter().for_each(|value| mask.add(value));
        mask
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
        let is_secret = SECRET_HEADERS.iter().any(|secret| secret.eq_ignore_ascii_case(name.trim()));
        if self.is_on && is_secret { MASK.to_owned() } else { self.text(value) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_unless_they_are_shown() {
        let secrets = ["pw".to_owned(), "pw-long".to_owned()];
        let mask = SecretMask::new(&secrets, false);
        assert_eq!(mask.text("a pw-long b pw"), "a *** b ***");
        assert_eq!((mask.header("cookie", "x"), mask.header("X-Id", "pw")), ("***".to_owned(), "***".to_owned()));
        let shown = SecretMask::new(&secrets, true);
        assert_eq!((shown.text("pw"), shown.header("Cookie", "x")), ("pw".to_owned(), "x".to_owned()));
    }
}
