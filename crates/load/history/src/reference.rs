//! Names of runs in a store.

use std::fmt;
use std::str::FromStr;

/// Run of a store: `last`, `last~2` (two before the last), or `#12`, its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunReference {
    /// The run before which this number of later ones is left out; 0 is the last one.
    Last(u64),
    /// The run of this number.
    Id(i64),
}

impl FromStr for RunReference {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = match text.strip_prefix("last") {
            Some("") => Some(Self::Last(0)),
            Some(back) => back.strip_prefix('~').and_then(|back| back.parse().ok()).map(Self::Last),
            None => text.strip_prefix('#').and_then(|id| id.parse().ok()).map(Self::Id),
        };
        parsed.ok_or_else(|| format!("invalid run '{text}'; write last, last~1, or #12 for the run of that number"))
    }
}

impl fmt::Display for RunReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Last(0) => f.write_str("last"),
            Self::Last(back) => write!(f, "last~{back}"),
            Self::Id(id) => write!(f, "#{id}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_read_as_they_are_written() {
        for reference in [RunReference::Last(0), RunReference::Last(12), RunReference::Id(7)] {
            assert_eq!(reference.to_string().parse(), Ok(reference));
        }
        for wrong in ["", "las", "last~", "last~-1", "last~x", "lastly", "#", "#x", "12", "run.json"] {
            let why = wrong.parse::<RunReference>().expect_err("not a reference");
            assert!(why.starts_with(&format!("invalid run '{wrong}'; write last,")), "{why}");
        }
    }
}
