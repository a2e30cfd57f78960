//! Log of a replay in the text report: what was sent, what was left out, and responses that differ from the log.

use std::collections::BTreeMap;

use super::ansi::AnsiPaint;
use super::number_format::{count, wrap};
use super::page::date;
use weir_measure::Run;
use weir_measure::run_replay::RunReplay;

/// Methods and classes that are named.
const MAX_NAMED: usize = 6;
/// Columns of a label.
const LABEL_COLUMNS: usize = 13;

/// Lines on the log that a run has replayed.
pub(super) fn lines(run: &Run, paint: AnsiPaint) -> Vec<String> {
    let Some(replay) = &run.replay else { return Vec::new() };
    let mut lines = of_log(replay);
    if let Some(compared) = compared(replay) {
        let rows = rows("vs the log", &compared);
        lines.extend(if replay.other_class.is_empty() {
            rows
        } else {
            rows.iter().map(|row| paint.red(row)).collect()
        });
    }
    lines
}

/// Lines on a log alone: for a replay that sends nothing.
pub fn of_log(replay: &RunReplay) -> Vec<String> {
    facts_of(replay).iter().flat_map(|(label, text)| rows(label, text)).collect()
}

/// Facts of the log that a run has replayed, with their names.
pub(super) fn facts(run: &Run) -> Vec<(&'static str, String)> {
    let Some(replay) = &run.replay else { return Vec::new() };
    let compared = compared(replay).map(|text| ("vs the log", text));
    let named =
        |(label, text): (&'static str, String)| (if label.is_empty() { "first broken line" } else { label }, text);
    facts_of(replay).into_iter().map(named).chain(compared).collect()
}

/// Responses with the status class of the log, and others; none if no status could be compared.
fn compared(replay: &RunReplay) -> Option<String> {
    let others: u64 = replay.other_class.values().sum();
    let same = format!("{} in the same status class", count(replay.same_class));
    match (replay.same_class, others) {
        (0, 0) => None,
        (_, 0) => Some(same),
        _ => Some(format!("{same} · {} in another: {}", count(others), named(&replay.other_class, " x "))),
    }
}

fn facts_of(replay: &RunReplay) -> Vec<(&'static str, String)> {
    let speed = if replay.speed == 1.0 { String::new() } else { format!(" at {}x speed", replay.speed) };
    let dates = replay.first_unix_s.zip(replay.last_unix_s).and_then(|(first, last)| {
        // Without the day of the week and the zone.
        let of = |unix_s| Some(date(unix_s)?.get(5..25)?.to_owned());
        Some(format!(" · {} to {} UTC", of(first)?, of(last)?))
    });
    let log = format!(
        "{} of {} lines ({}){} · {}{speed}",
        plural(replay.requests, "request"),
        count(replay.lines),
        replay.format,
        dates.unwrap_or_default(),
        time(replay.log_s())
    );
    let mut facts = vec![("log", log)];
    if !replay.methods.is_empty() {
        facts.extend([("methods", named(&replay.methods, " ")), ("recorded", named(&replay.status, " x "))]);
    }
    if replay.left_out_lines() > 0 {
        let reasons = replay.left_out.iter().map(|(reason, lines)| format!("{} {}", count(*lines), described(reason)));
        facts.push(("left out", reasons.collect::<Vec<_>>().join(" · ")));
        facts.extend(replay.first_broken.iter().map(|first| ("", first.clone())));
    }
    facts
}

fn rows(label: &str, text: &str) -> Vec<String> {
    wrap(&format!("{label:<LABEL_COLUMNS$}"), text)
}

/// Reason why lines were left out, for a person.
fn described(reason: &str) -> &str {
    match reason {
        "broken" => "broken",
        "too_long" => "longer than 1 MiB",
        "no_request" => "without an HTTP request",
        "unsafe_method" => "with a method that may change data (--unsafe sends them)",
        "filtered" => "by --filter",
        "outside_time" => "outside --from and --to",
        "out_of_order" => "too far out of order",
        "unsendable" => "with a header that cannot be sent",
        other => other,
    }
}

/// The most frequent names with their numbers: `3 GET`, or `3 x 200` where a name is a number.
fn named(counts: &BTreeMap<String, u64>, between: &str) -> String {
    let mut counts: Vec<(&String, &u64)> = counts.iter().collect();
    counts.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let rest: u64 = counts.iter().skip(MAX_NAMED).map(|(_, n)| **n).sum();
    let named = counts.iter().take(MAX_NAMED).map(|(name, n)| format!("{}{between}{name}", count(**n)));
    let rest = (rest > 0).then(|| format!("{} others", count(rest)));
    named.chain(rest).collect::<Vec<_>>().join(" · ")
}

pub(super) fn plural(n: u64, word: &str) -> String {
    format!("{} {word}{}", count(n), if n == 1 { "" } else { "s" })
}

pub(super) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", s * 1e3),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_described_in_a_few_lines() {
        let counts = |pairs: &[(&str, u64)]| pairs.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let replay = RunReplay {
            format: "combined".into(),
            speed: 2.0,
            lines: 1_234,
            requests: 1_200,
            first_unix_s: Some(971_211_336.0),
            last_unix_s: Some(971_211_526.0),
            methods: counts(&[("GET", 1_100), ("HEAD", 100)]),
            status: counts(&[("200", 1_200)]),
            left_out: counts(&[("broken", 4), ("unsafe_method", 30)]),
            first_broken: Some("access.log:7: expected '\"'".into()),
            ..RunReplay::default()
        };
        let text = of_log(&replay).join("\n");
        assert_eq!(
            text,
            "log          1,200 requests of 1,234 lines (combined) · 10 Oct 2000 20:55:36 to\n\
             \x20            10 Oct 2000 20:58:46 UTC · 3.2 min at 2x speed\n\
             methods      1,100 GET · 100 HEAD\n\
             recorded     1,200 x 200\n\
             left out     4 broken · 30 with a method that may change data (--unsafe sends\n\
             \x20            them)\n\
             \x20            access.log:7: expected '\"'"
        );
    }
}
