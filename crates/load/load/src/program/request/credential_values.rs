//! Values of credentials: a header that repeats one is a credential, too, whatever its name is.

use weir_request::secret_names::is_secret_name;

/// Length from which a value is looked for in others: shorter ones are words of other texts, too.
const MIN_VALUE_BYTES: usize = 8;

/// Values of a request's and its session's headers with a secret name.
#[derive(Debug, Default)]
pub(super) struct CredentialValues<'a>(Vec<&'a str>);

impl<'a> CredentialValues<'a> {
    /// Values of header lines, each with its line break, and of headers.
    pub(super) fn of(head: &'a [u8], headers: &'a [(String, Option<String>)]) -> Self {
        let lines =
            head.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok()?.split_once(':'));
        let own = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_deref()?)));
        let secret = lines.chain(own).filter(|(name, _)| is_secret_name(name));
        // `Bearer TOKEN`, `a=VALUE; b=VALUE`.
        let parts = secret.flat_map(|(_, value)| value.split([' ', ';', ',', '=', '\r']));
        Self(parts.filter(|part| part.len() >= MIN_VALUE_BYTES).collect())
    }

    /// Whether a value has one of them.
    pub(super) fn are_in(&self, value: &[u8]) -> bool {
        let Ok(value) = std::str::from_utf8(value) else { return false };
        self.0.iter().any(|secret| value.contains(secret))
    }
}
