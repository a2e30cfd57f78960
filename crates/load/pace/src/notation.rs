//! Notation of open loops: stages of a rate, and arrival processes.

use crate::live_load::{LevelKind, MAX_USERS};
use crate::schedule::{Arrivals, Burstiness, LoadStage};
use weir_base::Nanos;
use weir_base::units;

/// Parses `0-200/30s,200/1m`: from 0 to 200 per second within 30 s, then 200 per second for a minute. Rates are those of
/// [`units::rate`]: `10k/30s`, `200rps/30s`, `6000/m/30s`.
///
/// # Errors
/// The invalid stage, and what to write instead.
pub fn stages(text: &str) -> Result<Vec<LoadStage>, String> {
    text.split(',').map(|part| stage(part.trim(), |rate| units::rate(rate).ok())).collect()
}

/// Parses stages as [`stages`] does, or stages of users: `0-50u/30s,50u/1m`, from 0 to 50 users within 30 s, then 50
/// users for a minute.
///
/// # Errors
/// The invalid stage, and what to write instead.
pub fn stages_of_load(text: &str) -> Result<(LevelKind, Vec<LoadStage>), String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let without_unit = |part: &&str| part.split_once('/').and_then(|(levels, _)| levels.strip_suffix('u')).is_none();
    if parts.iter().all(without_unit) {
        return stages(text).map(|stages| (LevelKind::Rate, stages));
    }
    if let Some(rate) = parts.iter().find(|part| without_unit(part)) {
        return Err(format!("invalid stage '{rate}'; the others are of users: write e.g. 0-50u/30s,50u/1m"));
    }
    let of_users = parts.iter().map(|part| {
        let wrong = || format!("invalid stage '{part}'; write USERS/TIME or FROM-TO/TIME, e.g. 0-50u/30s,50u/1m");
        let parsed = stage(&part.replacen("u/", "/", 1), |text| text.parse().ok()).map_err(|_| wrong())?;
        let is_whole = |level: f64| level <= MAX_USERS as f64;
        if is_whole(parsed.from_per_s) && is_whole(parsed.to_per_s) { Ok(parsed) } else { Err(wrong()) }
    });
    of_users.collect::<Result<_, _>>().map(|stages| (LevelKind::Users, stages))
}

/// Stages in the notation that [`stages_of_load`] parses, to the nanosecond.
pub fn written(stages: &[LoadStage], kind: LevelKind) -> String {
    let unit = match kind {
        LevelKind::Rate => "",
        LevelKind::Users => "u",
    };
    let part = |stage: &LoadStage| {
        let LoadStage { from_per_s: from, to_per_s: to, length } = stage;
        let ramp = if from == to { String::new() } else { format!("{from}-") };
        format!("{ramp}{to}{unit}/{}", exact_time(*length))
    };
    stages.iter().map(part).collect::<Vec<_>>().join(",")
}

/// Time in seconds or milliseconds with all its digits.
fn exact_time(time: Nanos) -> String {
    let digits = |whole: u64, part: u64, places: usize, unit: &str| {
        let part = format!("{part:0places$}");
        let part = part.trim_end_matches('0');
        if part.is_empty() { format!("{whole}{unit}") } else { format!("{whole}.{part}{unit}") }
    };
    match time < Nanos::SECOND {
        true => digits(time.0 / 1_000_000, time.0 % 1_000_000, 6, "ms"),
        false => digits(time.0 / 1_000_000_000, time.0 % 1_000_000_000, 9, "s"),
    }
}

fn stage(text: &str, level: fn(&str) -> Option<f64>) -> Result<LoadStage, String> {
    let wrong = || format!("invalid stage '{text}'; write RATE/TIME or FROM-TO/TIME, e.g. 0-200/30s,200/1m");
    let (rates, length) = text.rsplit_once('/').ok_or_else(wrong)?;
    let (from, to) = rates.split_once('-').unwrap_or((rates, rates));
    // `-0` is at least 0 as well.
    let is_signed = |text: &str| text.starts_with(['+', '-']);
    let rate = |text: &str| level(text).filter(|r| r.is_finite() && *r >= 0.0 && !is_signed(text));
    let length = Nanos::from(units::time(length)?);
    match (rate(from), rate(to)) {
        (Some(from_per_s), Some(to_per_s)) if length > Nanos::ZERO => Ok(LoadStage { from_per_s, to_per_s, length }),
        _ => Err(wrong()),
    }
}

/// Parses `constant`, `poisson` or `gamma:BURSTINESS`.
///
/// # Errors
/// Names to choose from, or the range of the burstiness.
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
        let read = stages("0-1.2k/30s,90rps/1m,6000/m/1s").expect("valid");
        assert_eq!(read.iter().map(|stage| stage.to_per_s).collect::<Vec<_>>(), [1200.0, 90.0, 100.0]);
        for wrong in ["", "200", "200/", "/30s", "a/1s", "1-/1s", "0--0/1s", "-0/1s", "-1/1s", "1/0s", "1/1s,"] {
            assert!(stages(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn stages_of_users_have_a_unit_and_are_not_mixed_with_rates() {
        let users = vec![
            LoadStage { from_per_s: 0.0, to_per_s: 50.0, length: Nanos::from_secs(30) },
            LoadStage { from_per_s: 50.0, to_per_s: 50.0, length: Nanos::from_secs(60) },
        ];
        assert_eq!(stages_of_load("0-50u/30s,50u/1m"), Ok((LevelKind::Users, users)));
        assert_eq!(stages_of_load("5/1s").map(|(kind, _)| kind), Ok(LevelKind::Rate));
        for wrong in
            ["5u/1s,5/1s", "u/1s", "5u", "5u/", "0u-5u/1s", "-5u/1s", "9999999u/1s", "5uu/1s", "5rpsu/1s", "5/su/1s"]
        {
            let why = stages_of_load(wrong).expect_err(wrong);
            assert!(why.contains("invalid"), "{why}");
        }
    }

    proptest::proptest! {
        #[test]
        fn written_stages_are_read_as_they_were(
            stages in proptest::collection::vec((0.0..1e6_f64, 0.0..1e6_f64, 1..10_000_000_000_u64), 1..5), users: bool
        ) {
            let kind = if users { LevelKind::Users } else { LevelKind::Rate };
            let stage = |(from_per_s, to_per_s, ns)| LoadStage { from_per_s, to_per_s, length: Nanos(ns) };
            let stages: Vec<LoadStage> = stages.into_iter().map(stage).collect();
            proptest::prop_assert_eq!(stages_of_load(&written(&stages, kind)), Ok((kind, stages)));
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_stages_or_an_error(text in "[0-9]{0,3}[-0-9eu.+/,smh ]{0,24}(u/[0-9]{1,2}s)?") {
            if let Ok((kind, stages)) = stages_of_load(&text) {
                let again = stages_of_load(&written(&stages, kind));
                proptest::prop_assert!(again.is_ok_and(|(same, again)| (same, again.len()) == (kind, stages.len())), "{}", text);
            }
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
