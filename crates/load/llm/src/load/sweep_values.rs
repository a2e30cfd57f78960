//! Values of a sweep.

use std::str::FromStr;

use weir_base::units;
use weir_load::Options;

/// Maximum number of values of a sweep.
const MAX_VALUES: usize = 100;

/// Flag whose values are swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SweepFlag {
    Rate,
    Concurrency,
}

/// Values of a flag, in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepValues {
    flag: SweepFlag,
    /// Values, in ascending order.
    pub values: Vec<f64>,
}

impl FromStr for SweepValues {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("invalid sweep '{text}'; write e.g. rate=1,2,4,8 or concurrency=1,4,16");
        let (flag, values) = text.split_once('=').ok_or_else(wrong)?;
        let flag = match flag.trim() {
            "rate" => SweepFlag::Rate,
            "concurrency" => SweepFlag::Concurrency,
            _ => return Err(wrong()),
        };
        let value = |text: &str| match flag {
            SweepFlag::Rate => units::rate(text.trim()),
            SweepFlag::Concurrency => units::count(text.trim()).map(|count| count as f64),
        };
        let mut values = values
            .split(',')
            .map(value)
            .collect::<Result<Vec<f64>, _>>()
            .map_err(|why| format!("{}: {why}", wrong()))?;
        values.sort_by(f64::total_cmp);
        values.dedup();
        if values.iter().any(|value| *value <= 0.0) || values.len() > MAX_VALUES {
            return Err(wrong());
        }
        Ok(Self { flag, values })
    }
}

impl SweepValues {
    /// Name of the flag.
    pub fn flag(&self) -> &'static str {
        match self.flag {
            SweepFlag::Rate => "rate",
            SweepFlag::Concurrency => "concurrency",
        }
    }

    /// Whether the values are rates.
    pub fn is_of_rate(&self) -> bool {
        self.flag == SweepFlag::Rate
    }

    /// Options of the load at each value.
    pub fn loads(&self, options: &Options) -> Vec<Options> {
        let load = |value: &f64| match self.flag {
            SweepFlag::Rate => Options { rate: Some(*value), ..options.clone() },
            SweepFlag::Concurrency if options.ramp_up.is_some() => {
                Options { users: Some(*value as u64), ..options.clone() }
            }
            SweepFlag::Concurrency => Options { connections: Some(*value as u64), ..options.clone() },
        };
        self.values.iter().map(load).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_sorted_once_each_and_others_are_errors() {
        let sweep: SweepValues = "rate=8,1,0.5,8,30/m".parse().expect("values");
        assert_eq!(sweep, SweepValues { flag: SweepFlag::Rate, values: vec![0.5, 1.0, 8.0] });
        let rates: Vec<_> = sweep.loads(&Options::default()).iter().map(|options| options.rate).collect();
        assert_eq!(rates, [Some(0.5), Some(1.0), Some(8.0)]);
        let users: SweepValues = "concurrency=2".parse().expect("values");
        assert_eq!(users.loads(&Options::default())[0].connections, Some(2));
        for wrong in ["", "rate", "rate=", "rate=0", "rate=a", "users=1", "concurrency=1.5"] {
            assert!(wrong.parse::<SweepValues>().is_err(), "{wrong}");
        }
    }
}
