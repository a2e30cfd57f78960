//! Durations as text, as reports of all commands print them.

use crate::nanos::Nanos;

/// Duration with three digits or so: `12.3ms`, `4.50s`, `1m57s`, `2h05m`, `3d04h`.
pub fn duration_text(time: Nanos) -> String {
    let s = (time.0 + Nanos::SECOND.0 / 2) / Nanos::SECOND.0;
    match s {
        0..60 => time.to_string(),
        60..3_600 => format!("{}m{:02}s", s / 60, s % 60),
        3_600..86_400 => format!("{}h{:02}m", s / 3_600, s / 60 % 60),
        _ => format!("{}d{:02}h", s / 86_400, s / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_at_most_two_units() {
        let shown = |ms| duration_text(Nanos::from_millis(ms));
        assert_eq!([shown(12), shown(4_500), shown(59_400)], ["12ms", "4.50s", "59.4s"]);
        assert_eq!([shown(116_799), shown(60_000), shown(3_599_600)], ["1m57s", "1m00s", "1h00m"]);
        assert_eq!([shown(7_500_000), shown(273_600_000)], ["2h05m", "3d04h"]);
    }
}
