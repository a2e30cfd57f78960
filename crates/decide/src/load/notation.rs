//! Notation of open loops: stages of a rate, and arrival processes.

use super::schedule::{Arrivals, Burstiness, LoadStage};
use crate::Nanos;
use crate::base::units;

/// Parses `0-200/30s,200/1m`: from 0 to 200 per second within 30 s, then 200 per second for a minute.
///
/// # Errors
/// The invalid stage, and what to write instead.
pub fn stages(text: &str) -> Result<Vec<LoadStage>, String> {
    text.split(',').map(|part| stage(part.trim())).collect()
}

fn stage(text: &str) -> Result<LoadStage, String> {
    let wrong = || format!("invalid stage '{text}'; write RATE/TIME or FROM-TO/TIME, e.g. 0-200/30s,200/1m");
    let (rates, length) = text.split_once('/').ok_or_else(wrong)?;
    let (from, to) = rates.split_once('-').unwrap_or((rates, rates));
    let rate = |text: &str| text.parse::<f64>().ok().filter(|r| r.is_finite() && *r >= 0.0 && !text.starts_with('+'));
    let length = Nanos::from(units::time(length)?);
    match (rate(from), rate(to)) {
        (Some(from_per_s), Some(to_per_s)) if length > Nanos::ZERO => Ok(LoadStage { from_per_s, to_per_s, length }),
        _ => Err(wrong()),
    }
}

/// Parses `constant`, `poisson` or `gamma:BURSTINESS`.
///
/// # Errors
/// What to choose from, or the range of the burstiness.
pub fn arrivals(text: &str) -> Result<Arrivals, String> {
    match text {
        "constant" => Ok(Arrivals::Constant),
        "poisson" => Ok(Arrivals::Poisson),
        _ => match text.strip_prefix("gamma:") {
            Some(shape) => {
                let shape = shape.parse().map_err(|_| format!("invalid burstiness '{shape}'; write e.g. gamma:0.5"))?;
                Burstiness::new(shape).map(Arrivals::Gamma)
            }
            None => Err(format!("unknown arrival process '{text}'; choose constant, poisson or gamma:BURSTINESS")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_parsed() {
        let read = stages("0-200/30s, 200/1m").expect("valid");
        assert_eq!(read[0], LoadStage { from_per_s: 0.0, to_per_s: 200.0, length: Nanos::from_secs(30) });
        assert_eq!(read[1], LoadStage { from_per_s: 200.0, to_per_s: 200.0, length: Nanos::from_secs(60) });
        for wrong in ["", "200", "200/", "/30s", "a/1s", "1-/1s", "-1/1s", "1/0s", "1/1s,"] {
            assert!(stages(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arrival_processes_are_parsed() {
        assert_eq!(arrivals("constant"), Ok(Arrivals::Constant));
        assert_eq!(arrivals("gamma:0.5"), Burstiness::new(0.5).map(Arrivals::Gamma));
        for (text, error) in [
            ("uneven", "unknown arrival process 'uneven'; choose constant, poisson or gamma:BURSTINESS"),
            ("gamma", "unknown arrival process 'gamma'; choose constant, poisson or gamma:BURSTINESS"),
            ("gamma:soon", "invalid burstiness 'soon'; write e.g. gamma:0.5"),
            ("gamma:0", "invalid burstiness 0; write a number from 0.01 to 10000"),
        ] {
            assert_eq!(arrivals(text), Err(error.to_owned()));
        }
    }
}
