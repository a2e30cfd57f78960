//! How much a service can take, for a terminal: the bracket first, then why, then every load that was tried.
//!
//! - [`page`](mod@page): the same as a page

pub mod page;

use super::figure::{WIDTH, cut, ms, rate, share, wrap};
use super::paint::Paint;
use crate::measure::capacity::answer::{Answer, Ended, Growth, Limit, Tried};
use crate::measure::run::Model;

/// The answer, with ANSI colours if asked.
pub fn render(answer: &Answer, color: bool) -> String {
    let paint = Paint { on: color };
    let blocks = [headline(answer, paint), reasons(answer, paint), steps(answer, paint), growth(answer, paint)];
    let blocks: Vec<String> = blocks.iter().filter(|lines| !lines.is_empty()).map(|lines| lines.join("\n")).collect();
    blocks.join("\n\n") + "\n"
}

/// A load with its unit: `480/s`, `12 users`.
pub fn load(model: Model, load: f64) -> String {
    match model {
        Model::Open => format!("{}/s", rate(load)),
        Model::Closed if load == 1.0 => "1 user".into(),
        Model::Closed => format!("{load:.0} users"),
    }
}

/// What came of a load in a line: `480/s holds (p50 12ms, p99 30ms; 5 s)`.
pub fn step(model: Model, tried: &Tried) -> String {
    let end = match tried.end {
        Ended::Holds => "holds",
        Ended::Unclear => "is too near to tell",
        Ended::Fails => "fails",
        Ended::Generator => "is more than weir itself can do",
    };
    let times = format!("p50 {}, p99 {}; {:.0} s", time(tried.p50_ms), time(tried.p99_ms), tried.seconds);
    format!("{} {end} ({times})", load(model, tried.load))
}

fn time(time_ms: Option<f64>) -> String {
    time_ms.map_or_else(|| "-".into(), ms)
}

/// The bracket in words: `holds 497/s, fails at 508/s`.
fn bracket(answer: &Answer) -> String {
    let said = |bound: Option<f64>| bound.map(|bound| load(answer.model, bound));
    match (said(answer.holds), said(answer.fails)) {
        (Some(holds), Some(fails)) => format!("holds {holds}, fails at {fails}"),
        (Some(holds), None) => format!("holds {holds}; no load that was tried failed"),
        (None, Some(fails)) => format!("fails at {fails}; no load that was tried held"),
        (None, None) => "nothing is known".into(),
    }
}

fn sure(answer: &Answer) -> String {
    match answer.sure {
        s if s > 0.999 => ", >99.9 % sure".into(),
        s if s > 0.0 => format!(", {:.1} % sure", s * 100.0),
        _ => String::new(),
    }
}

fn model(answer: &Answer) -> &'static str {
    match answer.model {
        Model::Open => "open loop",
        Model::Closed => "closed loop",
    }
}

fn headline(answer: &Answer, paint: Paint) -> Vec<String> {
    let (words, sure) = (bracket(answer), sure(answer));
    let asked = format!("{} · {} · {}", answer.url, model(answer), answer.objectives.join(", "));
    let mut lines = vec![cut(&asked, WIDTH), paint.bold(&cut(&format!("{words}{sure}"), WIDTH))];
    if answer.interrupted {
        lines.push(paint.red("interrupted: the bounds are what was known by then"));
    }
    if answer.lost.is_some() {
        lines.push(paint.red("not to be trusted: an agent was lost; the bounds are what was known by then"));
    }
    lines
}

fn reasons(answer: &Answer, paint: Paint) -> Vec<String> {
    let whose = match answer.limit {
        Limit::Service => "why it fails  ",
        Limit::Generator => "not the service's limit  ",
        Limit::None => "no limit      ",
    };
    let mut lines = wrap(whose, &answer.why);
    if answer.limit == Limit::Generator {
        lines = lines.iter().map(|line| paint.red(line)).collect();
    }
    lines.extend(wrap("ended         ", &answer.ended));
    lines.extend(answer.saturated.iter().flat_map(|words| wrap("used up       ", words)));
    lines
}

fn steps(answer: &Answer, paint: Paint) -> Vec<String> {
    if answer.steps.is_empty() {
        return Vec::new();
    }
    let heading = format!(
        "{:>12}{:>12}{:>10}{:>10}{:>10}{:>10}{:>8}{:>7}  end",
        "load", "answered", "p50", "p99", "errors", "inside", "cores", "time"
    );
    let mut lines = vec![paint.dim(&heading)];
    lines.extend(answer.steps.iter().map(|tried| {
        let end = match tried.end {
            Ended::Holds => paint.green("holds"),
            Ended::Unclear => "unclear".into(),
            Ended::Fails => paint.red("fails"),
            Ended::Generator => paint.red("weir's limit"),
        };
        let cores = tried.service_cores.map_or_else(|| "-".into(), |cores| format!("{cores:.2}"));
        format!(
            "{:>12}{:>12}{:>10}{:>10}{:>10}{:>10}{cores:>8}{:>7}  {end}",
            load(answer.model, tried.load),
            format!("{}/s", rate(tried.achieved_per_s)),
            time(tried.p50_ms),
            time(tried.p99_ms),
            share(tried.errors),
            rate(tried.in_flight),
            format!("{:.0}s", tried.seconds),
        )
    }));
    lines
}

/// How throughput grows with users, in a sentence.
fn law(growth: &Growth) -> String {
    let Growth { law, knee_users, peak_users, peak_per_s } = growth;
    let peak = match (peak_users, peak_per_s) {
        (Some(users), Some(per_s)) => format!("highest throughput at {users:.0} users: {}/s", rate(*per_s)),
        _ => "no peak within twice the users that were tried".into(),
    };
    format!(
        "one user gets {}/s; contention {}, coherency {:.6}; beyond {knee_users:.0} users most of them wait; {peak}; \
         the measurements are {} from the curve",
        rate(law.per_user),
        share(law.contention),
        law.coherency,
        share(law.misfit),
    )
}

/// What to say of a law that the measurements do not follow.
fn misfit(growth: &Growth) -> Option<&'static str> {
    (growth.law.misfit > 0.1).then_some("That is no good fit: read the table, not the curve.")
}

fn growth(answer: &Answer, paint: Paint) -> Vec<String> {
    let Some(growth) = &answer.usl else { return Vec::new() };
    let mut lines = wrap("scalability   ", &law(growth));
    if let Some(words) = misfit(growth) {
        lines.extend(wrap("              ", words).iter().map(|line| paint.red(line)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::capacity::answer::SCHEMA;
    use crate::measure::capacity::usl::{Measured, Usl};
    use crate::measure::run::Manifest;
    use crate::report::sample;

    fn tried(load: f64, end: Ended, p99_ms: f64) -> Tried {
        Tried {
            load,
            surely: (end == Ended::Holds).then_some(load),
            end,
            why: None,
            sure: 0.991,
            seconds: 12.0,
            achieved_per_s: load * 0.99,
            p50_ms: Some(20.4),
            p99_ms: (end != Ended::Generator).then_some(p99_ms),
            errors: 0.0,
            in_flight: load / 49.0,
            lateness_p99_ms: 0.1,
            generator_share: 0.05,
            service_cores: Some(0.11),
            machine_share: Some(0.2),
        }
    }

    fn open() -> Answer {
        Answer {
            weir: "0.0.0".into(),
            schema: SCHEMA,
            model: Model::Open,
            url: "http://127.0.0.1:9001/api/work\u{1b}[2J".into(),
            objectives: vec!["p99<200ms".into(), "errors<1%".into()],
            holds: Some(497.0),
            fails: Some(508.0),
            sure: 0.983,
            limit: Limit::Service,
            why: "p99<200ms: p99 response time 253ms".into(),
            saturated: Some("no CPU: the service used 0.11 of 2 cores, so it waited for something else".into()),
            steps: vec![
                tried(400.0, Ended::Holds, 35.8),
                tried(800.0, Ended::Fails, 1490.0),
                tried(566.0, Ended::Unclear, 245.0),
                tried(508.0, Ended::Generator, 253.0),
            ],
            usl: None,
            ended: "the bounds are within 3 %".into(),
            interrupted: false,
            lost: None,
            manifest: Manifest::default(),
        }
    }

    fn closed() -> Answer {
        let points =
            [1.0, 2.0, 4.0, 8.0, 16.0].map(|users: f64| Measured { users, rate_per_s: 50.0 * users.min(10.0) });
        let tried = |users: f64| Tried { service_cores: None, ..tried(users, Ended::Holds, 30.0) };
        Answer {
            model: Model::Closed,
            holds: Some(16.0),
            fails: None,
            limit: Limit::None,
            why: "interrupted before a load failed".into(),
            saturated: None,
            steps: points.map(|point| tried(point.users)).to_vec(),
            usl: Usl::fit(&points).map(Growth::of),
            ended: "interrupted".into(),
            interrupted: true,
            ..open()
        }
    }

    #[test]
    fn the_report_is_readable_at_a_glance() {
        let shown = [open(), closed()].map(|answer| render(&answer, false)).join("\n=====\n\n");
        sample::same(&shown, include_str!("../golden/capacity.text.txt"), "capacity.text.txt");
        assert!(!shown.contains('\u{1b}'));
        for line in shown.lines() {
            assert!(line.chars().count() <= WIDTH && !line.ends_with(' '), "{line:?}");
        }
    }

    #[test]
    fn the_page_says_the_bracket_and_marks_what_is_in_doubt() {
        use crate::report::page::{Block, Tone, render};
        let page = page::of_answer(&open());
        assert_eq!((page.verdict.tone, page.verdict.words.as_str()), (Tone::Good, "Holds 497/s, fails at 508/s"));
        let charts = page.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
            Block::Chart(chart) => Some(chart),
            _ => None,
        });
        let response = charts.clone().next().expect("response times");
        assert_eq!(response.lines[0].x, [400.0, 508.0, 566.0, 800.0]);
        assert_eq!(response.lines[0].doubtful, [1, 2], "weir's limit, and what is too near to tell");
        assert_eq!((response.levels[0].at, response.levels.len()), (200.0, 1));
        let cut_short = page::of_answer(&closed());
        assert_eq!(cut_short.verdict.tone, Tone::Doubt);
        assert!(cut_short.sections.iter().any(|section| section.title == "How it scales"));
        for page in [page, cut_short] {
            assert!(render(&page).ends_with("</html>\n"));
        }
    }

    #[test]
    fn the_published_schema_describes_an_answer() {
        let schema = serde_json::from_str(include_str!("../../../docs/capacity.schema.json")).expect("JSON");
        let validator = jsonschema::validator_for(&schema).expect("a schema");
        let lost = Answer { lost: Some("agent 1 on n1 was lost".into()), ..open() };
        for answer in [open(), closed(), lost] {
            let value = serde_json::from_str(&answer.to_json()).expect("own JSON");
            let wrong: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
            assert!(wrong.is_empty(), "{wrong:?}");
        }
    }
}
