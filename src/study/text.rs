//! A study's findings in words: sentences for a terminal, a report in Markdown, and plain data.

use serde_json::{Value, json};

use super::cell::Measurement;
use super::figures::StudyPlot;
use super::findings::{Findings, PairVerdict};
use super::folder::point_name;
use crate::machine;
use crate::measure::compare::Finding;
use crate::report::comparison::words::{change, figure, finding, interval, sentence};
use crate::report::plot::XAxisKind;
use crate::report::{sanitize, wrap};

/// The version of the object's form; it grows when a field changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// A sentence of the findings.
#[derive(Clone, Debug)]
pub(super) struct FindingSentence {
    /// What was found; none if it is that something fails.
    pub(super) finding: Option<Finding>,
    /// The sentence.
    pub(super) text: String,
}

/// The verdicts, a sentence each, and what else has to be known first.
pub fn sentences(findings: &Findings<'_>) -> Vec<String> {
    finding_sentences(findings).into_iter().map(|said| said.text).collect()
}

/// The same, with what each of them is about.
pub(super) fn finding_sentences(findings: &Findings<'_>) -> Vec<FindingSentence> {
    let fails = |(variant, words, _): (String, String, &Measurement)| format!("{variant} fails {words}");
    let failing = failing(findings).into_iter().map(fails);
    let mut sentences: Vec<FindingSentence> =
        failing.map(|words| FindingSentence { finding: None, text: words }).collect();
    for pair in findings.pairs() {
        for (at, measure) in findings.metrics.iter().enumerate() {
            let tells = |it: &&PairVerdict| matches!(it.verdict.finding, Finding::Better | Finding::Worse);
            let judged = findings.verdicts_of_pair(at, pair);
            // Whoever fails more is worse at what the study is about, however fast.
            let judged: Vec<&PairVerdict> = match (measure.is_main, measure.is_failure_rate()) {
                (true, _) => judged.collect(),
                (false, true) => judged.filter(tells).collect(),
                (false, false) => Vec::new(),
            };
            sentences.extend(pair_sentences(findings, pair, &judged));
        }
    }
    sentences
}

/// A sentence per finding: at which points, and how it is at the one where it is greatest.
fn pair_sentences(
    findings: &Findings<'_>,
    (base, other): (usize, usize),
    judged: &[&PairVerdict],
) -> Vec<FindingSentence> {
    let order = |finding: Finding| match finding {
        Finding::Better => 0,
        Finding::Worse => 1,
        Finding::Same => 2,
        Finding::Unclear(_) => 3,
    };
    let mut sentences = Vec::new();
    for kind in 0..4 {
        let alike: Vec<&&PairVerdict> = judged.iter().filter(|it| order(it.verdict.finding) == kind).collect();
        let size =
            |it: &PairVerdict| it.verdict.effect.filter(|effect| *effect > 0.0).map_or(0.0, |effect| effect.ln().abs());
        let Some(most) = alike.iter().max_by(|a, b| size(a).total_cmp(&size(b))) else { continue };
        let metric = &findings.metrics[most.metric].metric;
        let named = findings.metrics.iter().filter(|measure| measure.is_main).count() > 1;
        let of = findings.metrics[most.metric].load.as_deref().filter(|_| named);
        let said = sentence(findings.variant(base), findings.variant(other), metric, &most.verdict);
        let points = findings.points_of(most.metric).count();
        let at = match (points, alike.len()) {
            (1, _) => String::new(),
            (_, 1) => format!(" (at {})", point_name(&findings.points[most.point])),
            (_, count) => {
                let places: Vec<String> = alike.iter().map(|it| point_name(&findings.points[it.point])).collect();
                let where_ = if count == points { "all points".to_owned() } else { places.join("; ") };
                format!(" (at {where_}; this is {})", point_name(&findings.points[most.point]))
            }
        };
        let words = format!("{}{said}{at}.", of.map_or_else(String::new, |load| format!("{load}: ")));
        sentences.push(FindingSentence { finding: Some(most.verdict.finding), text: words });
    }
    sentences
}

/// Variants that failed somewhere: which, in words, and the first failure.
pub(super) fn failing<'a>(findings: &Findings<'a>) -> Vec<(String, String, &'a Measurement)> {
    let mut failing = Vec::new();
    for variant in 0..findings.definition.variants.len() {
        let name = findings.variant(variant);
        let all: Vec<&Measurement> = findings.outcome.measurements.iter().filter(|cell| cell.variant == name).collect();
        let failed: Vec<&Measurement> = all.iter().copied().filter(|cell| !cell.is_measured()).collect();
        let Some(first) = failed.first() else { continue };
        let mut places: Vec<String> = failed.iter().map(|cell| point_name(&cell.point)).collect();
        places.dedup();
        let at = match places.len() {
            count if count == findings.points.len() || findings.points.len() == 1 => String::new(),
            _ => format!(" (at {})", places.join("; ")),
        };
        let why = first.failure.as_ref().map_or("", |failure| failure.reason.as_str());
        let words = format!("in {} of {} measurements{at}: {why}", failed.len(), all.len());
        failing.push((name.to_owned(), words, *first));
    }
    failing
}

/// What keeps the study from being the last word.
pub(super) fn cautions(findings: &Findings<'_>) -> Vec<String> {
    let outcome = findings.outcome;
    let mut cautions = Vec::new();
    if findings.definition.quick {
        cautions
            .push("This was a quick run, to see whether everything works: too short and too few for an answer.".into());
    }
    if outcome.missing > 0 {
        let why = if outcome.out_of_time { "the time was over" } else { "it was interrupted" };
        cautions.push(format!("{} measurements are missing: {why}. The same command goes on.", outcome.missing));
    }
    if !outcome.disjoint_cpus && !findings.definition.loads.is_empty() {
        cautions.push("Services and load shared their cores: what one takes, the other has not.".into());
    }
    let doubtful = outcome.measurements.iter().filter(|cell| cell.is_measured() && !cell.is_trusted()).count();
    if doubtful > 0 {
        cautions.push(format!(
            "{doubtful} of {} measurements are not to be trusted; see below.",
            outcome.measurements.len()
        ));
    }
    cautions
}

/// For a terminal.
pub fn render(findings: &Findings<'_>, report: &str) -> String {
    let mut text = format!("{}\n\n", question(findings));
    for line in cautions(findings).iter().chain(&sentences(findings)).flat_map(|words| wrap("  - ", words)) {
        text.push_str(&format!("{line}\n"));
    }
    text.push_str(&format!("\n{report}\n"));
    text
}

/// The report.
pub fn markdown(findings: &Findings<'_>, figures: &[StudyPlot]) -> String {
    let mut text = format!("# {}\n\n", cell(&question(findings)));
    let mut list = |lines: Vec<String>| {
        for line in &lines {
            text.push_str(&format!("- {}\n", cell(line)));
        }
        text.push_str(if lines.is_empty() { "" } else { "\n" });
    };
    list(cautions(findings));
    list(sentences(findings));
    for measure in 0..findings.metrics.len() {
        text.push_str(&tables(findings, measure));
        for figure in figures.iter().filter(|figure| figure.metric == Some(measure)) {
            text.push_str(&image(figure));
        }
    }
    for (heading, across) in [("Response times by percentile", XAxisKind::Percentiles), ("Over time", XAxisKind::Time)]
    {
        let alike = figures.iter().filter(|figure| figure.metric.is_none() && figure.plot.x_kind == across);
        let mut alike = alike.peekable();
        if alike.peek().is_some() {
            text.push_str(&format!("## {heading}\n\n"));
            alike.for_each(|figure| text.push_str(&image(figure)));
        }
    }
    text.push_str(&failures(findings));
    text.push_str(&method(findings));
    text
}

pub(super) fn question(findings: &Findings<'_>) -> String {
    let question = &findings.definition.question;
    if question.is_empty() { "A study".to_owned() } else { question.clone() }
}

fn image(figure: &StudyPlot) -> String {
    format!("![{}](plots/{}.svg)\n\n", cell(&figure.plot.title), figure.name)
}

/// The figures of a measure, and the verdicts on it.
fn tables(findings: &Findings<'_>, measure: usize) -> String {
    let of = &findings.metrics[measure];
    let mut text = format!("## {}\n\n", cell(&of.name()));
    let variants = 0..findings.definition.variants.len();
    let names: Vec<&str> = variants.clone().map(|variant| findings.variant(variant)).collect();
    text.push_str(&format!("| | {} |\n|---|{}\n", names.join(" | "), "---:|".repeat(names.len())));
    for point in findings.points_of(measure) {
        let shown = |variant| match findings.run_range(measure, variant, point) {
            None => "–".to_owned(),
            Some(spread) => {
                let [median, low, high] = [spread.median, spread.low, spread.high].map(|v| figure(&of.metric, Some(v)));
                let doubt = if spread.untrusted > 0 {
                    format!(" ⚠ {}/{}", spread.untrusted, spread.runs)
                } else {
                    String::new()
                };
                format!("{median} ({low} … {high}){doubt}")
            }
        };
        let row: Vec<String> = variants.clone().map(shown).collect();
        text.push_str(&format!("| {} | {} |\n", cell(&point_name(&findings.points[point])), row.join(" | ")));
    }
    text.push('\n');
    if findings.pairs().is_empty() {
        return text;
    }
    text.push_str("| | against | at | change | 95 % interval | verdict |\n|---|---|---|---:|---:|---|\n");
    for pair in findings.pairs() {
        for judged in findings.verdicts_of_pair(measure, pair) {
            let verdict = &judged.verdict;
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} | {} |\n",
                findings.variant(judged.other),
                findings.variant(judged.base),
                cell(&point_name(&findings.points[judged.point])),
                change(&of.metric, verdict.effect),
                interval(&of.metric, verdict.interval),
                cell(&finding(verdict)),
            ));
        }
    }
    text.push('\n');
    text
}

/// What failed, and what is in doubt.
fn failures(findings: &Findings<'_>) -> String {
    let mut text = String::new();
    let failing = failing(findings);
    if !failing.is_empty() {
        text.push_str("## What failed\n\n");
    }
    for (variant, words, first) in failing {
        text.push_str(&format!("- **{variant}** {}\n", cell(&words)));
        let lines = first.failure.as_ref().map(|failure| failure.last_lines.as_slice()).unwrap_or_default();
        if !lines.is_empty() {
            text.push_str("\n  ```\n");
            lines.iter().for_each(|line| text.push_str(&format!("  {}\n", sanitize(line).replace("```", "'''"))));
            text.push_str("  ```\n\n");
        }
    }
    let doubtful: Vec<&Measurement> =
        findings.outcome.measurements.iter().filter(|cell| cell.is_measured() && !cell.is_trusted()).collect();
    if !doubtful.is_empty() {
        text.push_str("\n## Not to be trusted\n\n");
    }
    for it in doubtful {
        let place = format!("{}, {}, round {}", it.variant, point_name(&it.point), it.repeat);
        text.push_str(&format!("- {}: {}\n", cell(&place), cell(&it.doubts.join(" "))));
    }
    text.push('\n');
    text
}

/// How it came about: what every study does, with the figures of this one.
pub(super) fn method_sentences(findings: &Findings<'_>) -> [String; 2] {
    let definition = findings.definition;
    let steady = findings.outcome.measurements.iter().filter_map(|cell| cell.warm_up);
    let warm_ups: Vec<f64> = steady.map(|warm_up| warm_up.duration_s).collect();
    let longest = warm_ups.iter().copied().fold(0.0, f64::max);
    [
        format!(
            "{} rounds; in each of them every variant at every point once, in an order drawn by lot (seed {}). Each \
             time everything was started anew, warmed up until throughput and response times were steady (at most \
             {longest:.1} s), measured, and ended.",
            definition.repeats, definition.seed,
        ),
        format!(
            "Verdicts are by round, over runs and not over requests; a difference below {:.1} % does not matter. \
             Tables and plots show the median of the runs, the lowest and the highest.",
            definition.minimum_effect * 100.0,
        ),
    ]
}

/// What the sampling took at most, in cores.
pub(super) fn sampling_cores(findings: &Findings<'_>) -> f64 {
    let usages = findings.outcome.measurements.iter().filter_map(|cell| cell.usage.as_ref());
    usages.map(|usage| usage.sampling_cores).fold(0.0, f64::max)
}

fn method(findings: &Findings<'_>) -> String {
    let definition = findings.definition;
    let machine = machine::describe();
    let [order, verdicts] = method_sentences(findings);
    let mut text = String::from("## How it was measured\n\n");
    let variants = definition.variants.iter().map(|variant| {
        format!(
            "- **{}**: `{}`\n",
            variant.program.name,
            sanitize(&variant.program.command.join(" ")).replace('`', "'")
        )
    });
    text.extend(variants);
    text.push_str(&format!(
        "- {order}\n- {verdicts}\n- {}; {} with {} cores, {} MiB; {}; weir {}. Sampling took {:.2} % of a core at \
         most.\n",
        machine.hostname,
        machine.cpu,
        machine.cores,
        machine.memory_mib,
        machine.os,
        env!("CARGO_PKG_VERSION"),
        sampling_cores(findings) * 100.0,
    ));
    text
}

/// The same as plain data.
pub fn json(findings: &Findings<'_>) -> Value {
    let definition = findings.definition;
    let judged = |it: &PairVerdict| {
        let verdict = &it.verdict;
        json!({
            "load": findings.metrics[it.metric].load,
            "metric": findings.metrics[it.metric].metric,
            "main": findings.metrics[it.metric].is_main,
            "point": point(&findings.points[it.point]),
            "base": findings.variant(it.base),
            "other": findings.variant(it.other),
            "finding": verdict.finding.to_string(),
            "why": match verdict.finding { Finding::Unclear(why) => Some(why.to_string()), _ => None },
            "effect": verdict.effect.filter(|effect| effect.is_finite()),
            "interval": verdict.interval.filter(|(low, high)| low.is_finite() && high.is_finite()),
            "p": verdict.p,
            "sure": verdict.confidence,
            "runs": verdict.runs,
        })
    };
    json!({
        "weir": env!("CARGO_PKG_VERSION"),
        "schema": SCHEMA,
        "question": definition.question,
        "quick": definition.quick,
        "variants": definition.variants.iter().map(|variant| &variant.program.name).collect::<Vec<_>>(),
        "points": findings.points.iter().map(|it| point(it)).collect::<Vec<_>>(),
        "repeats": definition.repeats,
        "missing": findings.outcome.missing,
        "sentences": sentences(findings),
        "cautions": cautions(findings),
        "verdicts": findings.verdicts.iter().map(judged).collect::<Vec<_>>(),
        "cells": findings.outcome.measurements,
        "machine": machine::describe(),
    })
}

fn point(of: &[(String, String)]) -> Value {
    of.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect::<serde_json::Map<_, _>>().into()
}

/// Words in a cell of a table or a list.
fn cell(words: &str) -> String {
    sanitize(words).replace('|', "\\|").replace('<', "&lt;")
}
