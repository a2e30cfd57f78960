//! How people write times, shares, stages and kinds of arrivals; the same words on the command line and in Python.

use std::time::Duration;

use super::Nanos;
use super::schedule::{Arrivals, Stage};

/// Reads `300ms`, `1.5s`, `2m`, `1h`, `50us`.
///
/// # Errors
/// What is expected, in words.
pub fn time(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a time; write e.g. 300ms, 1.5s, 2m or 1h");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let per_unit = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let value: f64 = digits.parse().map_err(|_| wrong())?;
    // A century is beyond any run, and within every clock.
    if !(0.0..=3e9).contains(&(value * per_unit)) {
        return Err(wrong());
    }
    Ok(Duration::from_secs_f64(value * per_unit))
}

/// Reads `0-200/30s,200/1m`: from 0 to 200 per second within 30 s, then 200 per second for a minute.
///
/// # Errors
/// Which stage is wrong and what is expected, in words.
pub fn stages(text: &str) -> Result<Vec<Stage>, String> {
    text.split(',').map(|part| stage(part.trim())).collect()
}

fn stage(text: &str) -> Result<Stage, String> {
    let wrong = || format!("'{text}' is not a stage; write RATE/TIME or FROM-TO/TIME, e.g. 0-200/30s,200/1m");
    let (rates, length) = text.split_once('/').ok_or_else(wrong)?;
    let (from, to) = rates.split_once('-').unwrap_or((rates, rates));
    let rate = |text: &str| text.parse::<f64>().ok().filter(|r| r.is_finite() && *r >= 0.0 && !text.starts_with('+'));
    let length = Nanos::from(time(length)?);
    match (rate(from), rate(to)) {
        (Some(from_per_s), Some(to_per_s)) if length > Nanos::ZERO => Ok(Stage { from_per_s, to_per_s, length }),
        _ => Err(wrong()),
    }
}

/// Reads `constant` or `poisson`.
///
/// # Errors
/// What is expected, in words.
pub fn arrivals(text: &str) -> Result<Arrivals, String> {
    match text {
        "constant" => Ok(Arrivals::Constant),
        "poisson" => Ok(Arrivals::Poisson),
        _ => Err(format!("'{text}' is no kind of arrivals; choose constant or poisson")),
    }
}

/// Reads `3%` or `0.03`, as 0.03.
///
/// # Errors
/// What is expected, in words.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    let share = number.trim().parse::<f64>().ok().map(|number| number / scale);
    share.filter(|share| (0.0..=100.0).contains(share)).ok_or_else(|| format!("'{text}' is no share; write e.g. 3%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_write_them() {
        assert_eq!(time("300ms"), Ok(Duration::from_millis(300)));
        assert_eq!(time("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("2m"), Ok(Duration::from_secs(120)));
        for wrong in ["", "10", "s", "-1s", "1d", "1 s", "infs", "nans", "1e99h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shares_as_people_write_them() {
        assert_eq!((share("3%"), share("0.03"), share("2.5 %")), (Ok(0.03), Ok(0.03), Ok(0.025)));
        for wrong in ["", "%", "-1%", "a", "nan", "inf", "1e9%%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn stages_as_people_write_them() {
        let read = stages("0-200/30s, 200/1m").expect("valid");
        assert_eq!(read[0], Stage { from_per_s: 0.0, to_per_s: 200.0, length: Nanos::from_secs(30) });
        assert_eq!(read[1], Stage { from_per_s: 200.0, to_per_s: 200.0, length: Nanos::from_secs(60) });
        for wrong in ["", "200", "200/", "/30s", "a/1s", "1-/1s", "-1/1s", "1/0s", "1/1s,"] {
            assert!(stages(wrong).is_err(), "{wrong}");
        }
    }
}
