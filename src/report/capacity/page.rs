//! How much a service can take, as a page.

use super::{bracket, confidence, law, load, misfit_warning, model};
use crate::measure::capacity::answer::{Bottleneck, CapacityReport, StepReport, StepResult, UslSummary};
use crate::measure::run::LoadModel;
use crate::report::page::manifest::manifest_section;
use crate::report::page::{
    AxisScale, Block, Chart, ChartAxis, ChartLevel, ChartLine, KeyFigure, PageTable, PageVerdict, ReportPage, Section,
    TableCell, Tone, ValueUnit, VerdictPoint, date,
};

/// Points at which the law is drawn.
const CURVE_POINTS: u32 = 120;

/// The page of an answer.
pub fn of_capacity(answer: &CapacityReport) -> ReportPage {
    let mut about = vec![model(answer).to_owned()];
    about.extend(answer.objectives.iter().cloned());
    about.extend(date(answer.manifest.started_unix_s));
    let sections = [plots(answer), growth(answer), steps(answer), method(answer)];
    let mut sections: Vec<Section> = sections.into_iter().filter(|section| !section.blocks.is_empty()).collect();
    sections.push(manifest_section(&answer.weir, &answer.manifest, &[]));
    let title = format!("How much can {} take?", answer.url);
    ReportPage { title, about, verdict: verdict(answer), key_figures: key_figures(answer), sections }
}

fn verdict(answer: &CapacityReport) -> PageVerdict {
    let tone = match (answer.limit, answer.holds) {
        (_, None) => Tone::Bad,
        _ if answer.interrupted || answer.agent_failure.is_some() => Tone::Doubt,
        (Bottleneck::Service, Some(_)) => Tone::Good,
        (Bottleneck::Generator | Bottleneck::None, Some(_)) => Tone::Doubt,
    };
    let words = bracket(answer);
    let words = words.chars().take(1).flat_map(char::to_uppercase).chain(words.chars().skip(1)).collect();
    let mut points = Vec::new();
    if answer.interrupted {
        points.push(VerdictPoint::new(Tone::Doubt, "Interrupted: the bounds are what was known by then."));
    }
    if answer.agent_failure.is_some() {
        points.push(VerdictPoint::new(Tone::Doubt, "An agent was lost: the bounds are what was known by then."));
    }
    let why = match answer.limit {
        Bottleneck::Service => VerdictPoint::new(Tone::Plain, format!("Why it fails: {}", answer.reason)),
        Bottleneck::Generator => VerdictPoint::new(Tone::Doubt, format!("Not the service's limit: {}", answer.reason)),
        Bottleneck::None => VerdictPoint::new(Tone::Doubt, format!("No limit: {}", answer.reason)),
    };
    points.push(why);
    points.push(VerdictPoint::new(Tone::Plain, format!("The search ended: {}", answer.ended)));
    points.extend(answer.saturated.iter().map(|words| VerdictPoint::new(Tone::Plain, format!("Used up: {words}"))));
    let sentence = format!("{} had to hold{}.", answer.objectives.join(", "), confidence(answer));
    PageVerdict { tone, headline: words, sentence, points }
}

fn unit(model: LoadModel) -> ValueUnit {
    match model {
        LoadModel::Open => ValueUnit::PerSecond,
        LoadModel::Closed => ValueUnit::Count,
    }
}

fn key_figures(answer: &CapacityReport) -> Vec<KeyFigure> {
    let bound = |name: &str, tone, bound: Option<f64>| {
        let users = if answer.model == LoadModel::Closed { "users" } else { "" };
        bound.map(|bound| KeyFigure::new(name, bound, unit(answer.model)).in_tone(tone).with_note(users))
    };
    let mut figures: Vec<KeyFigure> =
        [bound("holds", Tone::Good, answer.holds), bound("fails", Tone::Bad, answer.fails)]
            .into_iter()
            .flatten()
            .collect();
    let at_best = answer.steps.iter().rev().find(|tried| tried.sustained.is_some() && tried.sustained == answer.holds);
    if let Some(tried) = at_best {
        let times = [("p50", tried.p50_ms), ("p99", tried.p99_ms)];
        let beside = format!("at {}", load(answer.model, tried.load));
        let times = times.into_iter().filter_map(|(name, ms)| Some((name, ms?)));
        figures.extend(
            times.map(|(name, ms)| KeyFigure::new(name, ms, ValueUnit::Milliseconds).with_note(beside.clone())),
        );
    }
    figures
}

/// The last try of each load, from the least to the highest.
fn by_load(answer: &CapacityReport) -> Vec<&StepReport> {
    let mut tried: Vec<&StepReport> = Vec::new();
    for step in &answer.steps {
        tried.retain(|known| known.load != step.load);
        tried.push(step);
    }
    tried.sort_by(|a, b| a.load.total_cmp(&b.load));
    tried
}

fn plots(answer: &CapacityReport) -> Section {
    let tried = by_load(answer);
    if tried.len() < 2 {
        return Section::default();
    }
    let loads = || tried.iter().map(|tried| tried.load);
    let x = || {
        let name = if answer.model == LoadModel::Open { "offered" } else { "users" };
        ChartAxis::new(name, unit(answer.model)).scaled(AxisScale::fitting(loads()))
    };
    // What is too near to tell, and what weir itself could not do.
    let doubtful: Vec<usize> = tried
        .iter()
        .enumerate()
        .filter(|(_, tried)| matches!(tried.end, StepResult::Unclear | StepResult::Generator))
        .map(|(i, _)| i)
        .collect();
    let line = |name: &str, of: &dyn Fn(&StepReport) -> Option<f64>| {
        ChartLine::new(name, tried.iter().map(|tried| (tried.load, of(tried)))).doubting(doubtful.clone())
    };
    let times = [line("p50", &|tried| tried.p50_ms), line("p99", &|tried| tried.p99_ms)];
    let scale = AxisScale::fitting(tried.iter().flat_map(|tried| [tried.p50_ms, tried.p99_ms]).flatten());
    let mut response = Chart::new("Response time", x(), ChartAxis::new("time", ValueUnit::Milliseconds).scaled(scale));
    response.lines.extend(times);
    response
        .levels
        .extend(answer.objectives.iter().filter_map(|text| ChartLevel::of_objective(text, &ValueUnit::Milliseconds)));
    let mut answered = Chart::new("Answers", x(), ChartAxis::new("requests per second", ValueUnit::PerSecond));
    answered.lines.push(line("answered", &|tried| Some(tried.achieved_per_s)));
    if answer.model == LoadModel::Open {
        answered.lines.push(line("offered", &|tried| Some(tried.load)).doubting([]));
    }
    let mut cores =
        Chart::new("CPU of the service", x(), ChartAxis::new("cores busy", ValueUnit::Other("cores".into())));
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
fn growth(answer: &CapacityReport) -> Section {
    let Some(growth @ UslSummary { law: curve, .. }) = &answer.usl else { return Section::default() };
    let most = by_load(answer).last().map_or(1.0, |tried| tried.load);
    let users = (0..=CURVE_POINTS).map(|i| 1.0 + (2.0 * most - 1.0) * f64::from(i) / f64::from(CURVE_POINTS));
    let measured = by_load(answer).into_iter().map(|tried| (tried.load, Some(tried.achieved_per_s)));
    let x = ChartAxis::new("users", ValueUnit::Count);
    let chart = Chart::new("Scalability", x, ChartAxis::new("answers per second", ValueUnit::PerSecond))
        .line(ChartLine::new("measured", measured))
        .line(ChartLine::new("the law", users.map(|users| (users, curve.at(users)))));
    let mut words = law(growth);
    if let Some(more) = misfit_warning(growth) {
        words = format!("{words}. {more}");
    }
    Section::new("How it scales", vec![Block::Text(words), Block::Chart(chart)])
}

fn steps(answer: &CapacityReport) -> Section {
    let columns = [
        if answer.model == LoadModel::Open { "load" } else { "users" },
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
    let row = |tried: &StepReport| {
        let time = |ms: Option<f64>| ms.map_or(TableCell::Empty, TableCell::ms);
        let (tone, end) = match tried.end {
            StepResult::Holds => (Tone::Good, "holds"),
            StepResult::Unclear => (Tone::Doubt, "unclear"),
            StepResult::Fails => (Tone::Bad, "fails"),
            StepResult::Generator => (Tone::Doubt, "weir's limit"),
        };
        vec![
            TableCell::Number(tried.load, unit(answer.model)),
            TableCell::Number(tried.achieved_per_s, ValueUnit::PerSecond),
            time(tried.p50_ms),
            time(tried.p99_ms),
            TableCell::Number(tried.errors, ValueUnit::Fraction),
            TableCell::Number(tried.in_flight, ValueUnit::Other(String::new())),
            tried
                .service_cores
                .map_or(TableCell::Empty, |cores| TableCell::Number(cores, ValueUnit::Other(String::new()))),
            TableCell::Number(tried.seconds, ValueUnit::Seconds),
            TableCell::Toned(tone, end.to_owned()),
            tried.reason.as_deref().map_or(TableCell::Empty, TableCell::text),
        ]
    };
    let rows: Vec<Vec<TableCell>> = answer.steps.iter().map(row).collect();
    let table = PageTable { rows, ..PageTable::new("Every load that was tried, in order", &columns) };
    Section::new("In full", if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] })
}

fn method(answer: &CapacityReport) -> Section {
    let loads = match answer.model {
        LoadModel::Open => {
            "Open loop: requests start at times that were fixed beforehand, whether or not answers come."
        }
        LoadModel::Closed => "Closed loop: each user waits for its answer before asking again.",
    };
    let search = "Loads were doubled until one failed, then the bracket was halved. A load holds once all objectives \
                  surely do and the service has surely kept up; it fails as soon as one surely does not. The lower bound is the \
                  highest load that held, less what may have been chance.";
    Section::new("Method", vec![Block::Text(format!("{loads} {search}"))])
}
