//! Dates of Expires.

use proptest::prelude::*;

use super::super::cookie_date::parse;

#[test]
fn dates_of_all_styles_are_read() {
    for text in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Sun, 06-Nov-1994 08:49:37 GMT",
        "1994 6 november 8:49:37",
        "08:49:37 6Nov94",
        "08:49:37 6th Nov 1994",
        "(06)/nOv/[94] 08:49:37z",
        "Sun, 06 Nov 1994 08:49:37 +0200",
    ] {
        let expected = (text != "08:49:37 6Nov94").then_some(784_111_777);
        assert_eq!(parse(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn two_digits_of_a_year_are_from_1970_to_2069() {
    let year = |year: &str| parse(format!("1 Jan {year} 00:00:00").as_bytes());
    assert_eq!((year("70"), year("1970")), (Some(0), Some(0)));
    assert_eq!((year("69"), year("2069")), (Some(3_124_224_000), Some(3_124_224_000)));
    assert_eq!((year("00"), year("100"), year("1600")), (Some(946_684_800), None, None));
    assert_eq!(year("1601"), Some(-11_644_473_600));
    assert_eq!(year("9999"), Some(253_370_764_800));
}

#[test]
fn dates_that_do_not_exist_are_none() {
    for text in [
        "",
        "Sun, 06 Nov 1994",
        "06 Nov 08:49:37",
        "06 1994 08:49:37",
        "0 Nov 1994 08:49:37",
        "32 Nov 1994 08:49:37",
        "31 Nov 1994 08:49:37",
        "29 Feb 2023 08:49:37",
        "29 Feb 1900 08:49:37",
        "6 Nov 1994 24:00:00",
        "6 Nov 1994 08:60:00",
        "6 Nov 1994 08:00:60",
        "6 Nov 1994 08:00",
        "6 Nov 1994 008:00:00",
        "6 Nov 19945 08:00:00",
    ] {
        assert_eq!(parse(text.as_bytes()), None, "{text}");
    }
    assert_eq!(parse(b"29 Feb 2024 00:00:00"), Some(1_709_164_800));
    assert_eq!(parse(b"29 Feb 2000 00:00:00"), Some(951_782_400));
}

/// Days from 1970, counted one year and one month at a time.
fn counted_days(year: i64, month: i64, day: i64) -> i64 {
    let is_leap = |year: i64| year % 400 == 0 || (year % 4 == 0 && year % 100 != 0);
    let year_days = |year: i64| if is_leap(year) { 366 } else { 365 };
    let month_days = |month: i64| match month {
        1 if is_leap(year) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    };
    let years: i64 = (1970..year).map(year_days).sum::<i64>() - (year..1970).map(year_days).sum::<i64>();
    years + (0..month).map(month_days).sum::<i64>() + day - 1
}

proptest! {
    #[test]
    fn a_date_is_the_seconds_counted_by_day(
        year in 1601_i64..3000, month in 0_i64..12, day in 1_i64..=28, second in 0_i64..86_400, style in 0..4,
    ) {
        let name = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
            [usize::try_from(month).expect("small")];
        let clock = format!("{:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60);
        let text = match style {
            0 => format!("Xyz, {day:02} {name} {year} {clock} GMT"),
            1 => format!("Xyz, {day:02}-{name}-{year} {clock} GMT"),
            2 => format!("Xyz {name} {day} {clock} {year}"),
            _ => format!("{clock};{year};{day:02};{}", name.to_uppercase()),
        };
        // Four digits are not a day, so the year may be before it.
        prop_assert_eq!(parse(text.as_bytes()), Some(counted_days(year, month, day) * 86_400 + second), "{}", text);
    }

    #[test]
    fn any_text_is_a_date_or_none(text in "[0-9a-zA-Z:;, -]{0,40}", bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        for found in [parse(text.as_bytes()), parse(&bytes)].into_iter().flatten() {
            prop_assert!((-11_644_473_600..253_402_300_800).contains(&found));
        }
    }
}
