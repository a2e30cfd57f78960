//! How much a service can take, as a page.

use super::{bracket, law, load, misfit, model, sure};
use crate::measure::capacity::answer::{Answer, Ended, Growth, Limit, Tried};
use crate::measure::run::Model;
use crate::report::page::manifest::of_manifest;
use crate::report::page::{
    Axis, Block, Cell, Chart, Figure, Level, Line, Page, Point, Scale, Section, Table, Tone, Unit, Verdict, date,
};

/// Points at which the law is drawn.
const CURVE: u32 = 120;

/// The page of an answer.
pub fn of_answer(answer: &Answer) -> Page {
    let mut about = vec![model(answer).to_owned()];
    about.extend(answer.objectives.iter().cloned());
    about.extend(date(answer.manifest.started_unix_s));
    let sections = [plots(answer), growth(answer), steps(answer), method(answer)];
    let mut sections: Vec<Section> = sections.into_iter().filter(|section| !section.blocks.is_empty()).collect();
    sections.push(of_manifest(&answer.weir, &answer.manifest, &[]));
    let title = format!("How much can {} take?", answer.url);
    Page { title, about, verdict: verdict(answer), figures: figures(answer), sections }
}

fn verdict(answer: &Answer) -> Verdict {
    let tone = match (answer.limit, answer.holds) {
        (_, None) => Tone::Bad,
        _ if answer.interrupted || answer.lost.is_some() => Tone::Doubt,
        (Limit::Service, Some(_)) => Tone::Good,
        (Limit::Generator | Limit::None, Some(_)) => Tone::Doubt,
    };
    let words = bracket(answer);
    let words = words.chars().take(1).flat_map(char::to_uppercase).chain(words.chars().skip(1)).collect();
    let mut points = Vec::new();
    if answer.interrupted {
        points.push(Point::new(Tone::Doubt, "Interrupted: the bounds are what was known by then."));
    }
    if answer.lost.is_some() {
        points.push(Point::new(Tone::Doubt, "An agent was lost: the bounds are what was known by then."));
    }
    let why = match answer.limit {
        Limit::Service => Point::new(Tone::Plain, format!("Why it fails: {}", answer.why)),
        Limit::Generator => Point::new(Tone::Doubt, format!("Not the service's limit: {}", answer.why)),
        Limit::None => Point::new(Tone::Doubt, format!("No limit: {}", answer.why)),
    };
    points.push(why);
    points.push(Point::new(Tone::Plain, format!("The search ended: {}", answer.ended)));
    points.extend(answer.saturated.iter().map(|words| Point::new(Tone::Plain, format!("Used up: {words}"))));
    let sentence = format!("{} had to hold{}.", answer.objectives.join(", "), sure(answer));
    Verdict { tone, words, sentence, points }
}

fn unit(model: Model) -> Unit {
    match model {
        Model::Open => Unit::PerSecond,
        Model::Closed => Unit::Count,
    }
}

fn figures(answer: &Answer) -> Vec<Figure> {
    let bound = |name: &str, tone, bound: Option<f64>| {
        let users = if answer.model == Model::Closed { "users" } else { "" };
        bound.map(|bound| Figure::new(name, bound, unit(answer.model)).in_tone(tone).beside(users))
    };
    let mut figures: Vec<Figure> = [bound("holds", Tone::Good, answer.holds), bound("fails", Tone::Bad, answer.fails)]
        .into_iter()
        .flatten()
        .collect();
    let at_best = answer.steps.iter().rev().find(|tried| tried.surely.is_some() && tried.surely == answer.holds);
    if let Some(tried) = at_best {
        let times = [("p50", tried.p50_ms), ("p99", tried.p99_ms)];
        let beside = format!("at {}", load(answer.model, tried.load));
        let times = times.into_iter().filter_map(|(name, ms)| Some((name, ms?)));
        figures.extend(times.map(|(name, ms)| Figure::new(name, ms, Unit::Milliseconds).beside(beside.clone())));
    }
    figures
}

/// The last try of each load, from the least to the highest.
fn by_load(answer: &Answer) -> Vec<&Tried> {
    let mut tried: Vec<&Tried> = Vec::new();
    for step in &answer.steps {
        tried.retain(|known| known.load != step.load);
        tried.push(step);
    }
    tried.sort_by(|a, b| a.load.total_cmp(&b.load));
    tried
}

fn plots(answer: &Answer) -> Section {
    let tried = by_load(answer);
    if tried.len() < 2 {
        return Section::default();
    }
    let loads = || tried.iter().map(|tried| tried.load);
    let x = || {
        let name = if answer.model == Model::Open { "offered" } else { "users" };
        Axis::new(name, unit(answer.model)).scaled(Scale::fitting(loads()))
    };
    // What is too near to tell, and what weir itself could not do.
    let doubtful: Vec<usize> = tried
        .iter()
        .enumerate()
        .filter(|(_, tried)| matches!(tried.end, Ended::Unclear | Ended::Generator))
        .map(|(i, _)| i)
        .collect();
    let line = |name: &str, of: &dyn Fn(&Tried) -> Option<f64>| {
        Line::new(name, tried.iter().map(|tried| (tried.load, of(tried)))).doubting(doubtful.clone())
    };
    let times = [line("p50", &|tried| tried.p50_ms), line("p99", &|tried| tried.p99_ms)];
    let scale = Scale::fitting(tried.iter().flat_map(|tried| [tried.p50_ms, tried.p99_ms]).flatten());
    let mut response = Chart::new("Response time", x(), Axis::new("time", Unit::Milliseconds).scaled(scale));
    response.lines.extend(times);
    response.levels.extend(answer.objectives.iter().filter_map(|text| Level::of_objective(text, &Unit::Milliseconds)));
    let mut answered = Chart::new("Answers", x(), Axis::new("requests per second", Unit::PerSecond));
    answered.lines.push(line("answered", &|tried| Some(tried.achieved_per_s)));
    if answer.model == Model::Open {
        answered.lines.push(line("offered", &|tried| Some(tried.load)).doubting([]));
    }
    let mut cores = Chart::new("CPU of the service", x(), Axis::new("cores busy", Unit::Of("cores".into())));
    cores.lines.push(line("service", &|tried| tried.service_cores));
    for chart in [&mut response, &mut answered, &mut cores] {
        chart.group = "load".into();
    }
    let words = "Each point is a load that was tried. Hollow: too near to the limit to tell, or more than weir itself \
                 can do.";
    let charts = [response, answered, cores].into_iter().filter(|chart| !chart.is_empty()).map(Block::Chart);
    Section::new("Load by load", [Block::Text(words.into())].into_iter().chain(charts).collect())
}

/// The curve of the scalability law, as far as twice the users that were tried.
fn growth(answer: &Answer) -> Section {
    let Some(growth @ Growth { law: curve, .. }) = &answer.usl else { return Section::default() };
    let most = by_load(answer).last().map_or(1.0, |tried| tried.load);
    let users = (0..=CURVE).map(|i| 1.0 + (2.0 * most - 1.0) * f64::from(i) / f64::from(CURVE));
    let measured = by_load(answer).into_iter().map(|tried| (tried.load, Some(tried.achieved_per_s)));
    let x = Axis::new("users", Unit::Count);
    let chart = Chart::new("Scalability", x, Axis::new("answers per second", Unit::PerSecond))
        .line(Line::new("measured", measured))
        .line(Line::new("the law", users.map(|users| (users, curve.at(users)))));
    let mut words = law(growth);
    if let Some(more) = misfit(growth) {
        words = format!("{words}. {more}");
    }
    Section::new("How it scales", vec![Block::Text(words), Block::Chart(chart)])
}

fn steps(answer: &Answer) -> Section {
    let columns = [
        if answer.model == Model::Open { "load" } else { "users" },
        "answered",
        "p50",
        "p99",
        "errors",
        "inside",
        "cores",
        "time",
        "end",
        "why",
    ];
    let row = |tried: &Tried| {
        let time = |ms: Option<f64>| ms.map_or(Cell::Empty, Cell::ms);
        let (tone, end) = match tried.end {
            Ended::Holds => (Tone::Good, "holds"),
            Ended::Unclear => (Tone::Doubt, "unclear"),
            Ended::Fails => (Tone::Bad, "fails"),
            Ended::Generator => (Tone::Doubt, "weir's limit"),
        };
        vec![
            Cell::Number(tried.load, unit(answer.model)),
            Cell::Number(tried.achieved_per_s, Unit::PerSecond),
            time(tried.p50_ms),
            time(tried.p99_ms),
            Cell::Number(tried.errors, Unit::Share),
            Cell::Number(tried.in_flight, Unit::Of(String::new())),
            tried.service_cores.map_or(Cell::Empty, |cores| Cell::Number(cores, Unit::Of(String::new()))),
            Cell::Number(tried.seconds, Unit::Seconds),
            Cell::Judged(tone, end.to_owned()),
            tried.why.as_deref().map_or(Cell::Empty, Cell::text),
        ]
    };
    let rows: Vec<Vec<Cell>> = answer.steps.iter().map(row).collect();
    let table = Table { rows, ..Table::new("Every load that was tried, in order", &columns) };
    Section::new("In full", if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] })
}

fn method(answer: &Answer) -> Section {
    let loads = match answer.model {
        Model::Open => "Open loop: requests start at times that were fixed beforehand, whether or not answers come.",
        Model::Closed => "Closed loop: each user waits for its answer before asking again.",
    };
    let search = "Loads were doubled until one failed, then the bracket was halved. A load holds once all objectives \
                  surely do and the service has surely kept up; it fails as soon as one surely does not. The lower bound is the \
                  highest load that held, less what may have been chance.";
    Section::new("Method", vec![Block::Text(format!("{loads} {search}"))])
}
