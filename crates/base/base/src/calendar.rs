//! Dates of the Gregorian calendar, and their days since 1970.

/// Short names of the months, in English.
pub const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Seconds of a day.
pub const DAY_S: i64 = 86_400;

/// Days from 1 March of the year 0 to 1 January 1970.
const DAYS_BEFORE_1970: i64 = 719_468;
/// Days of 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;

/// A date that exists, in the years 0 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilDate {
    year: i64,
    month: i64,
    day: i64,
}

impl CivilDate {
    /// Date of a year, a month (1 to 12) and a day (from 1 on); `None` if there is none.
    pub fn new(year: i64, month: i64, day: i64) -> Option<Self> {
        let is_date =
            (0..=9999).contains(&year) && (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
        is_date.then_some(Self { year, month, day })
    }

    /// Date of a number of days since 1970; the first or last one beyond the years 0 to 9999.
    pub fn of_days(days: i64) -> Self {
        let days =
            days.clamp(Self { year: 0, month: 1, day: 1 }.days(), Self { year: 9999, month: 12, day: 31 }.days());
        let days = days + DAYS_BEFORE_1970;
        let (era, of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        Self { year: era * 400 + year_of_era + i64::from(month <= 2), month, day }
    }

    /// Days since 1970.
    pub fn days(self) -> i64 {
        // Years begin with March, so that a leap day is the last of its year (H. Hinnant, chrono-Compatible Low-Level Date
        // Algorithms).
        let (year, from_march) =
            if self.month > 2 { (self.year, self.month - 3) } else { (self.year - 1, self.month + 9) };
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        365 * year + leap_days + (153 * from_march + 2) / 5 + self.day - 1 - DAYS_BEFORE_1970
    }

    /// Year, 0 to 9999.
    pub fn year(self) -> i64 {
        self.year
    }

    /// Month, 1 to 12.
    pub fn month(self) -> i64 {
        self.month
    }

    /// Short name of the month.
    pub fn month_name(self) -> &'static str {
        usize::try_from(self.month - 1).ok().and_then(|index| MONTHS.get(index)).copied().unwrap_or_default()
    }

    /// Day of the month, 1 to 31.
    pub fn day(self) -> i64 {
        self.day
    }
}

/// Number of the month, 1 to 12, of a short name in any case.
pub fn month_number(name: &[u8]) -> Option<i64> {
    (1..).zip(MONTHS).find(|(_, month)| name.eq_ignore_ascii_case(month.as_bytes())).map(|(number, _)| number)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(date: CivilDate) -> (i64, i64, i64) {
        (date.year(), date.month(), date.day())
    }

    /// Oracle: each day of ten thousand years, one after the other.
    #[test]
    fn days_and_dates_are_those_that_are_counted() {
        let mut days = -719_528;
        for year in 0..=9999 {
            for month in 1..=12 {
                for day in 1..=days_of_month(year, month) {
                    let date = CivilDate::new(year, month, day).unwrap();
                    assert_eq!((date.days(), CivilDate::of_days(days)), (days, date));
                    days += 1;
                }
            }
        }
        assert_eq!(CivilDate::new(1970, 1, 1).map(CivilDate::days), Some(0));
        assert_eq!(
            [CivilDate::of_days(i64::MIN), CivilDate::of_days(i64::MAX)].map(parts),
            [(0, 1, 1), (9999, 12, 31)]
        );
    }

    #[test]
    fn a_day_that_is_not_in_the_calendar_is_none() {
        for (year, month, day) in
            [(2023, 2, 29), (1900, 2, 29), (2024, 4, 31), (2024, 0, 1), (2024, 13, 1), (2024, 1, 0)]
        {
            assert_eq!(CivilDate::new(year, month, day), None);
        }
        assert_eq!(CivilDate::new(2000, 2, 29).map(CivilDate::month_name), Some("Feb"));
        assert_eq!([month_number(b"dec"), month_number(b"JAN"), month_number(b"x")], [Some(12), Some(1), None]);
    }

    proptest! {
        #[test]
        fn any_numbers_are_a_date_or_none(year: i64, month: i64, day: i64, days: i64) {
            let _ = CivilDate::new(year, month, day).map(CivilDate::days);
            let _ = CivilDate::of_days(days).days();
        }
    }
}
