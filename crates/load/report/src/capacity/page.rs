//! HTML report of a capacity search.

use super::{bracket, confidence, fit_warning, has_search, law, load, model, recovery, recovery_page};
use crate::page::manifest::manifest_section;
use crate::page::{
    AxisScale, Block, Chart, ChartAxis, ChartLevel, ChartLine, KeyFigure, PageTable, PageVerdict, ReportPage, Section,
    TableCell, Tone, ValueUnit, VerdictPoint, date,
};
use weir_measure::LoadModel;
use weir_measure::capacity::report::{Bottleneck, CapacityReport, StepReport, StepResult, UslSummary};

/// Points at which the law is drawn.
const CURVE_POINTS: u32 = 120;

/// HTML report of a capacity search.
pub fn of_capacity(report: &CapacityReport) -> ReportPage {
    let mut about = vec![model(report).to_owned()];
    if has_search(report) {
        about.extend(report.objectives.iter().cloned());
    }
    about.extend(date(report.manifest.started_unix_s));
    let tested = report.recovery.as_ref().map(recovery_page::section).unwrap_or_default();
    let sections = [tested, plots(report), growth(report), steps(report), method(report)];
    let mut sections: Vec<Section> = sections.into_iter().filter(|section| !section.blocks.is_empty()).collect();
    sections.push(manifest_section(&report.weir, &report.manifest, &[]));
    let title = if has_search(report) { "Capacity" } else { "Recovery" };
    let title = format!("{title} of {}", report.url);
    ReportPage { title, about, verdict: verdict(report), key_figures: key_figures(report), sections }
}

fn verdict(report: &CapacityReport) -> PageVerdict {
    if let Some(tested) = report.recovery.as_ref().filter(|_| !has_search(report)) {
        let points = recovery_page::points(tested, false);
        let sentence = format!("Clients: {}.", recovery::clients(tested));
        let headline = capitalized(&recovery::headline(tested));
        return PageVerdict { tone: recovery_page::tone(tested.verdict), headline, sentence, points };
    }
    let tone = match (report.limited_by, report.passes) {
        (_, None) => Tone::Bad,
        _ if report.interrupted || report.lost_agent.is_some() => Tone::Doubt,
        (Bottleneck::Service, Some(_)) => Tone::Good,
        (Bottleneck::Generator | Bottleneck::None, Some(_)) => Tone::Doubt,
    };
    let words = capitalized(&bracket(report));
    let mut points = Vec::new();
    if report.interrupted {
        points.push(VerdictPoint::new(Tone::Doubt, "Interrupted: these are the bounds so far."));
    }
    if report.lost_agent.is_some() {
        points.push(VerdictPoint::new(Tone::Doubt, "An agent was lost: these are the bounds so far."));
    }
    let why = match report.limited_by {
        Bottleneck::Service => VerdictPoint::new(Tone::Plain, format!("Reason: {}", report.reason)),
        Bottleneck::Generator => VerdictPoint::new(Tone::Doubt, format!("Not the service's limit: {}", report.reason)),
        Bottleneck::None => VerdictPoint::new(Tone::Doubt, format!("No limit: {}", report.reason)),
    };
    points.push(why);
    points.push(VerdictPoint::new(Tone::Plain, format!("Stopped: {}", report.stop_reason)));
    points.extend(report.saturated.iter().map(|words| VerdictPoint::new(Tone::Plain, format!("Saturated: {words}"))));
    points.extend(report.recovery.iter().flat_map(|tested| recovery_page::points(tested, true)));
    let sentence = format!("Objectives: {}{}.", report.objectives.join(", "), confidence(report));
    PageVerdict { tone, headline: words, sentence, points }
}

fn capitalized(words: &str) -> String {
    words.chars().take(1).flat_map(char::to_uppercase).chain(words.chars().skip(1)).collect()
}

fn unit(model: LoadModel) -> ValueUnit {
    match model {
        LoadModel::Open => ValueUnit::PerSecond,
        LoadModel::Closed => ValueUnit::Count,
    }
}

fn key_figures(report: &CapacityReport) -> Vec<KeyFigure> {
    let bound = |name: &str, tone, bound: Option<f64>| {
        let users = if report.model == LoadModel::Closed { "users" } else { "" };
        bound.map(|bound| KeyFigure::new(name, bound, unit(report.model)).in_tone(tone).with_note(users))
    };
    let mut figures: Vec<KeyFigure> =
        [bound("passes", Tone::Good, report.passes), bound("fails", Tone::Bad, report.fails)]
            .into_iter()
            .flatten()
            .collect();
    let at_best = report.steps.iter().rev().find(|tried| tried.sustained.is_some() && tried.sustained == report.passes);
    if let Some(tried) = at_best {
        let times = [("p50", tried.p50_ms), ("p99", tried.p99_ms)];
        let beside = format!("at {}", load(report.model, tried.load));
        let times = times.into_iter().filter_map(|(name, ms)| Some((name, ms?)));
        figures.extend(
            times.map(|(name, ms)| KeyFigure::new(name, ms, ValueUnit::Milliseconds).with_note(beside.clone())),
        );
    }
    figures
}

/// Last step at each load, in order of load.
fn by_load(report: &CapacityReport) -> Vec<&StepReport> {
    let mut tried: Vec<&StepReport> = Vec::new();
    for step in &report.steps {
        tried.retain(|known| known.load != step.load);
        tried.push(step);
    }
    tried.sort_by(|a, b| a.load.total_cmp(&b.load));
    tried
}

fn plots(report: &CapacityReport) -> Section {
    let tried = by_load(report);
    if tried.len() < 2 {
        return Section::default();
    }
    let loads = || tried.iter().map(|tried| tried.load);
    let x = || {
        let name = if report.model == LoadModel::Open { "offered" } else { "users" };
        ChartAxis::new(name, unit(report.model)).scaled(AxisScale::fitting(loads())).marking(loads().map(three_digits))
    };
    // Inconclusive steps, and those that were limited by weir itself.
    let untrusted: Vec<usize> = tried
        .iter()
        .enumerate()
        .filter(|(_, tried)| matches!(tried.outcome, StepResult::Inconclusive | StepResult::Generator))
        .map(|(i, _)| i)
        .collect();
    let line = |name: &str, of: &dyn Fn(&StepReport) -> Option<f64>| {
        ChartLine::new(name, tried.iter().map(|tried| (tried.load, of(tried)))).doubting(untrusted.clone())
    };
    let times = [line("p50", &|tried| tried.p50_ms), line("p99", &|tried| tried.p99_ms)];
    let scale = AxisScale::fitting(tried.iter().flat_map(|tried| [tried.p50_ms, tried.p99_ms]).flatten());
    let mut response = Chart::new("Response time", x(), ChartAxis::new("time", ValueUnit::Milliseconds).scaled(scale));
    response.lines.extend(times);
    response
        .levels
        .extend(report.objectives.iter().filter_map(|text| ChartLevel::of_objective(text, &ValueUnit::Milliseconds)));
    let mut throughput = Chart::new("Throughput", x(), ChartAxis::new("requests per second", ValueUnit::PerSecond));
    throughput.lines.push(line("responses", &|tried| Some(tried.achieved_per_s)));
    if report.model == LoadModel::Open {
        throughput.lines.push(line("offered", &|tried| Some(tried.load)).doubting([]));
    }
    let mut cores =
        Chart::new("CPU of the service", x(), ChartAxis::new("cores busy", ValueUnit::Other("cores".into())));
    cores.lines.push(line("service", &|tried| tried.service_cores));
    for chart in [&mut response, &mut throughput, &mut cores] {
        chart.group = "load".into();
    }
    let words = "Each point is a load level. Hollow: inconclusive, or limited by weir itself.";
    let charts = [response, throughput, cores].into_iter().filter(|chart| !chart.is_empty()).map(Block::Chart);
    Section::new("Load levels", [Block::Text(words.into())].into_iter().chain(charts).collect())
}

/// A load to three digits, as a label of an axis.
fn three_digits(load: f64) -> f64 {
    let digit = 10_f64.powf(load.max(1.0).log10().floor() - 2.0);
    (load / digit).round() * digit
}

/// Curve of the scalability law up to twice the highest number of users.
fn growth(report: &CapacityReport) -> Section {
    let Some(growth @ UslSummary { law: curve, .. }) = &report.usl else { return Section::default() };
    let most = by_load(report).last().map_or(1.0, |tried| tried.load);
    let users = (0..=CURVE_POINTS).map(|i| 1.0 + (2.0 * most - 1.0) * f64::from(i) / f64::from(CURVE_POINTS));
    let measured = by_load(report).into_iter().map(|tried| (tried.load, Some(tried.achieved_per_s)));
    let x = ChartAxis::new("users", ValueUnit::Count);
    let chart = Chart::new("Scalability", x, ChartAxis::new("responses per second", ValueUnit::PerSecond))
        .line(ChartLine::new("measured", measured))
        .line(ChartLine::new("fitted law", users.map(|users| (users, curve.at(users)))));
    let mut words = law(growth);
    if let Some(more) = fit_warning(growth) {
        words = format!("{words}. {more}");
    }
    Section::new("Scalability", vec![Block::Text(words), Block::Chart(chart)])
}

fn steps(report: &CapacityReport) -> Section {
    let columns = [
        if report.model == LoadModel::Open { "load" } else { "users" },
        "responses",
        "p50",
        "p99",
        "errors",
        "in flight",
        "cores",
        "time",
        "outcome",
        "reason",
    ];
    let row = |tried: &StepReport| {
        let time = |ms: Option<f64>| ms.map_or(TableCell::Empty, TableCell::ms);
        let (tone, end) = match tried.outcome {
            StepResult::Passes => (Tone::Good, "passes"),
            StepResult::Inconclusive => (Tone::Doubt, "inconclusive"),
            StepResult::Fails => (Tone::Bad, "fails"),
            StepResult::Generator => (Tone::Doubt, "weir's limit"),
        };
        vec![
            TableCell::Number(tried.load, unit(report.model)),
            TableCell::Number(tried.achieved_per_s, ValueUnit::PerSecond),
            time(tried.p50_ms),
            time(tried.p99_ms),
            TableCell::Number(tried.errors, ValueUnit::Fraction),
            TableCell::Number(tried.in_flight, ValueUnit::Other(String::new())),
            tried
                .service_cores
                .map_or(TableCell::Empty, |cores| TableCell::Number(cores, ValueUnit::Other(String::new()))),
            TableCell::Number(tried.duration_s, ValueUnit::Seconds),
            TableCell::Toned(tone, end.to_owned()),
            tried.reason.as_deref().map_or(TableCell::Empty, TableCell::text),
        ]
    };
    let rows: Vec<Vec<TableCell>> = report.steps.iter().map(row).collect();
    let table = PageTable { rows, ..PageTable::new("Every load level, in order", &columns) };
    Section::new("Details", if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] })
}

fn method(report: &CapacityReport) -> Section {
    let loads = match report.model {
        LoadModel::Open => "Open loop: requests start at times that a schedule sets, independent of responses.",
        LoadModel::Closed => "Closed loop: each user waits for a response before sending again.",
    };
    let search = "Loads were doubled until one failed, then the interval between the bounds was halved. A load passes \
                  when all objectives are met with statistical confidence and the backlog does not grow; it fails as \
                  soon as one is missed. The lower bound is the highest load that passed, less its margin of error.";
    let test = "The load was the same before and after the trigger, in one run, and its clients gave up and retried as real \
                ones do. A service has recovered at the first period in which calls are as good and as fast as before \
                the trigger; one second in five may be outside of the bounds.";
    let text = match (has_search(report), &report.recovery) {
        (true, None) => format!("{loads} {search}"),
        (true, Some(_)) => format!("{loads} {search} {test}"),
        (false, _) => format!("{loads} {test}"),
    };
    Section::new("Method", vec![Block::Text(text)])
}
