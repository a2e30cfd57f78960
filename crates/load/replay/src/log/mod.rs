//! Edge: access logs as they are read, from files and stdin.
//!
//! - `LogReader`: requests of a log in the order of their starts; `LogRequest`: a log as it is asked for
//! - [`LogLines`], `log_end`: lines of files; [`LogMoment`]: bounds of a part; `LogTally`: counts
//! - [`log_factor`]: factors of speeds and rates

mod log_end;
mod log_lines;
mod log_moment;
mod log_reader;
mod log_tally;

use std::path::PathBuf;

pub use self::log_lines::{LogLine, LogLines};
pub use self::log_moment::LogMoment;
pub(crate) use self::log_reader::{LogReader, LogRequest};
pub(crate) use self::log_tally::LogTally;
use crate::AccessFormat;

/// Factors that are possible.
const FACTORS: std::ops::RangeInclusive<f64> = 1e-3..=1e6;

/// Factor of a speed or a rate: `2x`, `0.5`.
///
/// # Errors
/// What to write instead.
pub fn log_factor(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix(['x', 'X']).unwrap_or(text).parse::<f64>().ok();
    let number = number.filter(|number| FACTORS.contains(number));
    number.ok_or_else(|| "write a factor from 0.001, e.g. 2x or 0.5".to_owned())
}

/// Format that `--log-pattern` names.
///
/// # Errors
/// One line with the mistake.
pub(crate) fn log_format(text: Option<&str>) -> Result<Option<(String, AccessFormat)>, String> {
    let read = |text: &str| {
        let format = text.parse::<AccessFormat>().map_err(|why| format!("--log-pattern: {why}"))?;
        Ok((text.to_owned(), format))
    };
    text.map(read).transpose()
}

/// Checks that stdin is read once.
///
/// # Errors
/// One line, if it is named twice.
pub(crate) fn check_files(files: &[PathBuf]) -> Result<(), String> {
    match files.iter().filter(|file| file.as_os_str() == "-").count() {
        0 | 1 => Ok(()),
        _ => Err("stdin (-) can be read once".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::log_factor;

    #[test]
    fn a_factor_is_a_number_with_or_without_an_x() {
        assert_eq!((log_factor("2x"), log_factor("0.5")), (Ok(2.0), Ok(0.5)));
        for wrong in ["0", "-1x", "x", "inf", "nan", "1e9"] {
            assert!(log_factor(wrong).is_err(), "{wrong}");
        }
    }
}
