//! One limit as a service states it, and its text form.

use std::fmt;

use serde::{Deserialize, Serialize};
use weir_base::Nanos;
use weir_base::units;

/// Counting model of a window; [the module](super) compares them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitModel {
    /// A log of all accepted requests: exact.
    #[default]
    SlidingLog,
    /// Two counts of aligned windows, the older weighted by its overlap.
    SlidingCounter,
    /// A count that restarts at each multiple of the window's length.
    AlignedWindow,
    /// Tokens that refill evenly (GCRA); the bucket holds the limit.
    TokenBucket,
    /// Requests in progress.
    Concurrency,
}

/// A limit per time, and its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct LimitWindow {
    model: LimitModel,
    limit: u64,
    per: Nanos,
}

impl LimitModel {
    /// All models.
    pub const ALL: [Self; 5] =
        [Self::SlidingLog, Self::SlidingCounter, Self::AlignedWindow, Self::TokenBucket, Self::Concurrency];

    /// Name in texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SlidingLog => "log",
            Self::SlidingCounter => "counter",
            Self::AlignedWindow => "aligned",
            Self::TokenBucket => "bucket",
            Self::Concurrency => "concurrency",
        }
    }

    /// Parses `log`, `counter`, `aligned`, `bucket` or `concurrency`.
    ///
    /// # Errors
    /// The expected form.
    pub fn read(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("unknown rate-limit algorithm '{text}'; choose log, counter, aligned, bucket or concurrency");
        Self::ALL.into_iter().find(|model| model.name() == text).ok_or_else(wrong)
    }
}

impl LimitWindow {
    /// Maximum limit: what fits the integers of HTTP's structured fields (RFC 9651).
    pub const MAX_LIMIT: u64 = 999_999_999_999_999;

    /// A window; for [`LimitModel::Concurrency`] the length is ignored.
    ///
    /// # Errors
    /// A limit of 0 or over [`Self::MAX_LIMIT`], or a window without length.
    pub fn new(model: LimitModel, limit: u64, per: Nanos) -> Result<Self, String> {
        if !(1..=Self::MAX_LIMIT).contains(&limit) {
            return Err(format!(
                "a limit of {limit} is not possible; it is at least 1 and at most {}",
                Self::MAX_LIMIT
            ));
        }
        match (model, per) {
            (LimitModel::Concurrency, _) => Ok(Self { model, limit, per: Nanos::ZERO }),
            (_, Nanos::ZERO) => Err("a limit needs a length of time, e.g. 20/1s".into()),
            _ => Ok(Self { model, limit, per }),
        }
    }

    /// Parses `20/1s`, `MODEL:20/1s` and `concurrency:5`; `default` is the model of a text without one.
    ///
    /// # Errors
    /// The expected form.
    pub fn read(text: &str, default: LimitModel) -> Result<Self, String> {
        let (model, rest) = match text.split_once(':') {
            Some((word, rest)) => (LimitModel::read(word)?, rest),
            None => (default, text),
        };
        let wrong = |how: &str| format!("invalid limit '{text}'; write {how}");
        let count = |digits: &str| {
            let plain = !digits.starts_with('+');
            digits.parse().ok().filter(|limit| plain && (1..=Self::MAX_LIMIT).contains(limit))
        };
        if model == LimitModel::Concurrency {
            let limit = count(rest).ok_or_else(|| wrong("how many at a time, e.g. concurrency:5"))?;
            return Self::new(model, limit, Nanos::ZERO);
        }
        let how = "COUNT/TIME, e.g. 20/1s or bucket:100/1m";
        let (limit, per) = rest.split_once('/').ok_or_else(|| wrong(how))?;
        let limit = count(limit).ok_or_else(|| wrong(how))?;
        match Nanos::from(units::time(per)?) {
            Nanos::ZERO => Err(wrong(how)),
            per => Self::new(model, limit, per),
        }
    }

    /// Counting model.
    pub const fn model(&self) -> LimitModel {
        self.model
    }

    /// The limit; at least 1.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// Length; 0 for [`LimitModel::Concurrency`] only.
    pub const fn per(&self) -> Nanos {
        self.per
    }
}

impl From<LimitWindow> for String {
    fn from(window: LimitWindow) -> Self {
        window.to_string()
    }
}

impl TryFrom<String> for LimitWindow {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::read(&text, LimitModel::SlidingLog)
    }
}

/// The text form, with the model's name except for a sliding log: `20/1s`, `bucket:100/1m`, `concurrency:5`.
impl fmt::Display for LimitWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, limit, per } = self;
        if *model == LimitModel::Concurrency {
            return write!(f, "{}:{limit}", model.name());
        }
        if *model != LimitModel::SlidingLog {
            write!(f, "{}:", model.name())?;
        }
        let units = [(3_600_000_000_000, "h"), (60_000_000_000, "m"), (1_000_000_000, "s"), (1_000_000, "ms")];
        match units.into_iter().find(|(ns, _)| per.0.is_multiple_of(*ns)) {
            Some((ns, unit)) => write!(f, "{limit}/{}{unit}", per.0 / ns),
            None => write!(f, "{limit}/{}us", per.0 as f64 / 1e3),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_written_as_it_is_read() {
        for text in
            ["20/1s", "counter:100/1m", "aligned:5000/24h", "bucket:7/250ms", "concurrency:5", "3/1.5us", "1/90s"]
        {
            let window = LimitWindow::read(text, LimitModel::SlidingLog).expect(text);
            assert_eq!(window.to_string(), text);
        }
    }

    #[test]
    fn a_limit_without_a_model_is_of_the_one_that_was_chosen() {
        let read =
            |text, model| LimitWindow::read(text, model).map(|window| (window.model(), window.limit(), window.per()));
        assert_eq!(read("20/1s", LimitModel::SlidingLog), Ok((LimitModel::SlidingLog, 20, Nanos::SECOND)));
        assert_eq!(read("20/1s", LimitModel::TokenBucket), Ok((LimitModel::TokenBucket, 20, Nanos::SECOND)));
        assert_eq!(read("log:20/1s", LimitModel::TokenBucket), Ok((LimitModel::SlidingLog, 20, Nanos::SECOND)));
        assert_eq!(read("5", LimitModel::Concurrency), Ok((LimitModel::Concurrency, 5, Nanos::ZERO)));
    }

    #[test]
    fn the_error_of_an_invalid_limit_has_a_valid_one() {
        let wrong =
            ["", "20", "20/", "/1s", "0/1s", "-1/1s", "+1/1s", "1.5/1s", "20/0s", "1000000000000000/1s", "log:20"];
        for text in wrong {
            let error = LimitWindow::read(text, LimitModel::SlidingLog).expect_err(text);
            assert!(error.contains("write"), "{text}: {error}");
        }
        for text in ["concurrency:", "concurrency:0", "concurrency:5/1s", "concurrency:x"] {
            let error = LimitWindow::read(text, LimitModel::SlidingLog).expect_err(text);
            assert!(error.contains("concurrency:5"), "{text}: {error}");
        }
        let error = LimitWindow::read("leaky:20/1s", LimitModel::SlidingLog).expect_err("no such model");
        assert!(error.contains("'leaky'") && error.contains("bucket"), "{error}");
        assert!(LimitWindow::new(LimitModel::SlidingLog, 0, Nanos::SECOND).is_err());
        assert!(LimitWindow::new(LimitModel::SlidingLog, 1, Nanos::ZERO).is_err());
    }
}
