//! Head and foot of the screen: subject, progress, figures, keys.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::run_view::{RunView, ViewLoad};
use weir_base::Nanos;
use weir_base::number_text::count;
use weir_pace::live_load::LevelKind;

/// Keys, on the last line.
const KEYS: &str = " + - load   space pause   q stop   ↑ ↓ steps   c copy as text";
/// Keys of a load with recorded times.
const KEYS_OF_A_LOG: &str = " q stop   ↑ ↓ steps   c copy as text";

/// Style of what is less important.
pub(crate) fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// Style of what matters.
pub(crate) fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// Subject, and the load as it is set.
pub(crate) fn title(view: &RunView, width: u16) -> Line<'static> {
    let load = view.load.map_or_else(String::new, |load| load_text(load, view.subject.has_connections));
    let free = usize::from(width).saturating_sub(load.chars().count() + 3);
    let subject = cut(&view.subject.title, free);
    let gap = free - subject.chars().count();
    Line::from(vec![Span::raw(" "), Span::styled(subject, bold()), Span::raw(" ".repeat(gap + 1)), Span::raw(load)])
}

fn load_text(load: ViewLoad, has_connections: bool) -> String {
    let Some(level) = load.level else { return "times of a log".to_owned() };
    match (load.is_paused, load.kind) {
        (true, _) => "PAUSED".to_owned(),
        (false, LevelKind::Rate) => format!("{}/s set", three_digits(level)),
        (false, LevelKind::Users) if has_connections => format!("{} connections", level.ceil()),
        (false, LevelKind::Users) => format!("{} users", level.ceil()),
    }
}

/// Bar of the progress, and the time.
pub(crate) fn progress(view: &RunView, width: u16) -> Line<'static> {
    let seconds = |time: Nanos| format!("{}s", time.0 / 1_000_000_000);
    let until = view.load.map_or(Nanos::NEVER, |load| load.until);
    let mut text = match (until, view.subject.requests) {
        (Nanos::NEVER, Some(requests)) => {
            format!("{}  {} of {}", seconds(view.elapsed), count(view.ended), count(requests))
        }
        (Nanos::NEVER, None) => seconds(view.elapsed),
        (until, _) => format!("{} of {}s", seconds(view.elapsed), three_digits(until.as_secs_f64())),
    };
    if view.elapsed < view.subject.warmup {
        text.push_str("  warm-up");
    } else if view.progress().is_some_and(|fraction| fraction >= 1.0) {
        text.push_str("  waiting for the last responses");
    }
    let columns = usize::from(width).saturating_sub(text.chars().count() + 4);
    let Some(fraction) = view.progress().filter(|_| columns >= 8) else {
        return Line::from(format!(" {text}"));
    };
    let done = (fraction * columns as f64).round() as usize;
    Line::from(vec![
        Span::raw(format!(" {}", "━".repeat(done))),
        Span::styled("─".repeat(columns.saturating_sub(done)), dim()),
        Span::raw(format!("  {text}")),
    ])
}

/// Figures of the run so far, and of the last interval.
pub(crate) fn figures(view: &RunView) -> [Line<'static>; 2] {
    let all = view.ok + view.failed;
    let percent = if all == 0 { 0.0 } else { 100.0 * view.failed as f64 / all as f64 };
    let latest = &view.latest;
    let width_s = view.subject.interval.as_secs_f64().max(1e-9);
    let rate = (latest.ok + latest.failed) as f64 / width_s;
    let mut counts = vec![
        Span::styled(format!(" {}", count(all)), bold()),
        Span::raw(" requests  "),
        Span::styled(format!("{} failed ({percent:.1}%)", count(view.failed)), failed_style(view.failed)),
        Span::raw(format!("  {}/s  {} in flight", three_digits(rate), count(latest.in_flight))),
    ];
    if latest.backlog > 0 {
        counts.push(Span::styled(format!("  {} waiting", count(latest.backlog)), bold()));
    }
    if !view.steps.is_empty() {
        counts.push(Span::raw(format!("  {} iterations/s", three_digits(latest.iterations as f64 / width_s))));
    }
    counts.push(Span::raw(format!("  {}/s", bytes(latest.bytes_in as f64 / width_s))));
    let times = &latest.response;
    let mut now = vec![Span::styled(" now", dim())];
    let quantile = |(name, q)| times.quantile(q).map(|time| Span::raw(format!("  {name} {time}")));
    now.extend([("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)].into_iter().filter_map(quantile));
    if let Some(point) = &latest.websocket {
        let upgraded = three_digits(point.upgraded as f64 / width_s);
        now.push(Span::raw(format!("  {} held, {upgraded} upgraded/s", count(point.held))));
    }
    if !view.subject.objectives.is_empty() {
        now.push(Span::styled(format!("  objectives {}", view.subject.objectives.join(", ")), dim()));
    }
    [Line::from(counts), Line::from(now)]
}

/// Style of a number of failures.
pub(crate) fn failed_style(failed: u64) -> Style {
    if failed > 0 { bold().red() } else { Style::new() }
}

/// Keys, or the latest note.
pub(crate) fn foot(view: &RunView) -> Line<'static> {
    match &view.note {
        Some(note) => Line::styled(format!(" {note}"), bold()),
        None if view.load.is_some_and(|load| load.level.is_none()) => Line::styled(KEYS_OF_A_LOG, dim()),
        None => Line::styled(KEYS, dim()),
    }
}

/// Text within a number of columns.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    match text.chars().count() <= columns {
        true => text.to_owned(),
        false => text.chars().take(columns.saturating_sub(1)).chain(['…']).take(columns).collect(),
    }
}

/// Number with three digits, or all those before the point.
pub(crate) fn three_digits(number: f64) -> String {
    let decimals = if number >= 99.95 || number.fract() == 0.0 {
        0
    } else if number >= 9.995 {
        1
    } else {
        2
    };
    let text = format!("{number:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn bytes(number: f64) -> String {
    let units = ["B", "kB", "MB", "GB"];
    let mut value = number;
    let mut unit = units[0];
    for next in &units[1..] {
        if value < 1000.0 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    format!("{} {unit}", three_digits(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([count(0), count(999), count(1_234_567)], ["0", "999", "1,234,567"]);
        let written = [0.0, 0.123_45, 12.34, 123.4, 99.99, 200.0].map(three_digits);
        assert_eq!(written, ["0", "0.12", "12.3", "123", "100", "200"]);
        assert_eq!([bytes(12.0), bytes(1_230_000.0), bytes(5e12)], ["12 B", "1.23 MB", "5000 GB"]);
    }

    #[test]
    fn a_text_that_does_not_fit_ends_with_an_ellipsis() {
        assert_eq!([cut("abc", 3), cut("abcd", 3), cut("abcd", 1), cut("abcd", 0)], ["abc", "ab…", "…", ""]);
    }
}
