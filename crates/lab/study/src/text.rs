//! Text forms of findings: sentences for a terminal, a report in Markdown, and JSON.

use serde_json::{Value, json};

use super::findings::{Findings, PairVerdict, VariantPair};
use super::markdown_cell::cell;
use super::measurement::Measurement;
use super::median_table::median_table;
use super::output_lines::last_lines;
use super::steps;
use super::study_plot::StudyPlot;
use super::study_point::StudyPoint;
use weir_load::machine_manifest;
use weir_machine::system::SAMPLES_PROCESSES;
use weir_measure::compare::Finding;
use weir_report::comparison::phrases::{change, figure, finding, interval, sentence};
use weir_report::plot::XAxisKind;
use weir_report::{sanitize, wrap};

/// Version of the JSON format; it grows when a field changes its meaning or is removed.
pub const SCHEMA: u32 = 2;

/// Sentence of the summary.
#[derive(Clone, Debug)]
pub(super) struct FindingSentence {
    /// Finding; None for a failure.
    pub(super) finding: Option<Finding>,
    /// The sentence.
    pub(super) text: String,
    /// Size of the difference, as the logarithm of a ratio.
    size: f64,
}

/// Failures and primary verdicts, a sentence each.
pub fn summary(findings: &Findings<'_>) -> Vec<String> {
    finding_sentences(findings).into_iter().map(|sentence| sentence.text).collect()
}

/// Sentences of the summary, with the finding of each.
pub(super) fn finding_sentences(findings: &Findings<'_>) -> Vec<FindingSentence> {
    let fails = |(variant, words, _): (String, String, &Measurement)| format!("{variant} fails {words}");
    let failing = failing(findings).into_iter().map(fails);
    let mut sentences: Vec<FindingSentence> =
        failing.map(|words| FindingSentence { finding: None, text: words, size: f64::INFINITY }).collect();
    // A trial run is too short to find anything.
    let pairs = if findings.definition.quick { Vec::new() } else { findings.pairs() };
    for pair in pairs {
        for (at, measure) in findings.metrics.iter().enumerate() {
            let is_difference = |it: &&PairVerdict| matches!(it.verdict.finding, Finding::Better | Finding::Worse);
            let judged = findings.verdicts_of_pair(at, pair);
            // More errors are worse, however fast the variant is.
            let judged: Vec<&PairVerdict> = match (measure.is_primary, measure.is_failure_rate()) {
                (true, _) => judged.collect(),
                (false, true) => judged.filter(is_difference).collect(),
                (false, false) => Vec::new(),
            };
            sentences.extend(pair_sentences(findings, pair, &judged));
        }
    }
    let is_open = |sentence: &FindingSentence| matches!(sentence.finding, Some(Finding::Unclear(_)));
    sentences.sort_by(|a, b| is_open(a).cmp(&is_open(b)).then(b.size.total_cmp(&a.size)));
    sentences
}

/// One sentence per kind of finding: its points, and the verdict at the point with the largest effect.
fn pair_sentences(
    findings: &Findings<'_>,
    VariantPair { base, other }: VariantPair,
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
        let named = findings.metrics.iter().filter(|measure| measure.is_primary).count() > 1;
        let of = findings.metrics[most.metric].load.as_deref().filter(|_| named);
        let said = sentence(findings.variant(base), findings.variant(other), metric, &most.verdict);
        let points = findings.points_of(most.metric).count();
        let at = match (points, alike.len()) {
            (1, _) => String::new(),
            (_, 1) => format!(" (at {})", findings.points[most.point].name()),
            (_, count) => {
                let places: Vec<String> = alike.iter().map(|it| findings.points[it.point].name()).collect();
                let where_ = if count == points { String::new() } else { format!("at {}; ", places.join("; ")) };
                format!(" ({where_}largest difference, at {})", findings.points[most.point].name())
            }
        };
        let words = format!("{}{said}{at}.", of.map_or_else(String::new, |load| format!("{load}: ")));
        sentences.push(FindingSentence { finding: Some(most.verdict.finding), text: words, size: size(most) });
    }
    sentences
}

/// Variants that failed somewhere: name, description, and the first failed measurement.
pub(super) fn failing<'a>(findings: &Findings<'a>) -> Vec<(String, String, &'a Measurement)> {
    let mut failing = Vec::new();
    for variant in 0..findings.definition.variants.len() {
        let name = findings.variant(variant);
        let all: Vec<&Measurement> = findings.outcome.measurements.iter().filter(|cell| cell.variant == name).collect();
        let failed: Vec<&Measurement> = all.iter().copied().filter(|cell| !cell.is_measured()).collect();
        let Some(first) = failed.first() else { continue };
        let mut places: Vec<String> = failed.iter().map(|cell| cell.point.name()).collect();
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

/// Limitations of the study, a sentence each.
pub(super) fn limitations(findings: &Findings<'_>) -> Vec<String> {
    let outcome = findings.outcome;
    let mut limitations = Vec::new();
    if findings.definition.quick {
        limitations.push("This was a quick trial run: too short, with too few rounds, for a result.".into());
    }
    if outcome.missing > 0 {
        let reason = if outcome.out_of_time { "the timeout of the study" } else { "an interruption" };
        limitations.push(format!(
            "{} measurements are missing, because of {reason}. Run the same command to continue.",
            outcome.missing
        ));
    }
    if !outcome.disjoint_cpus && !findings.definition.loads.is_empty() {
        limitations.push("Services and load shared their cores.".into());
    }
    if !SAMPLES_PROCESSES {
        limitations.push("CPU and memory were not sampled: that needs the build for Linux.".into());
    }
    let untrusted = outcome.measurements.iter().filter(|cell| cell.is_measured() && !cell.is_trusted()).count();
    if untrusted > 0 {
        limitations
            .push(format!("{untrusted} of {} measurements are not trusted; see below.", outcome.measurements.len()));
    }
    limitations
}

/// Summary for a terminal.
pub fn render(findings: &Findings<'_>, report: &str) -> String {
    let mut text = format!("{}\n\n", question(findings));
    if findings.definition.quick {
        text.push_str(&quick_summary(findings));
        text.push_str(&median_table(findings));
        text.extend(failing(findings).iter().map(|(variant, _, first)| last_lines(variant, first)));
        text.push_str(&format!("\n{report}\n"));
        return text;
    }
    for line in limitations(findings).iter().chain(&summary(findings)).flat_map(|words| wrap("  - ", words)) {
        text.push_str(&format!("{line}\n"));
    }
    text.extend(failing(findings).iter().map(|(variant, _, first)| last_lines(variant, first)));
    for (at, words) in steps::lines(findings).iter().enumerate() {
        text.push_str(if at == 0 { "\n" } else { "" });
        let lines = wrap(if at == 0 { "  " } else { "  - " }, words);
        text.extend(lines.iter().map(|line| format!("{line}\n")));
    }
    text.push_str(&format!("\n{report}\n"));
    text
}

/// Outcome of a trial run: whether everything works, without a verdict.
fn quick_summary(findings: &Findings<'_>) -> String {
    let all = &findings.outcome.measurements;
    let failed = all.iter().filter(|cell| !cell.is_measured()).count();
    let works = if failed == all.len() { "does not work" } else { "works" };
    let head = format!("{works}: {} measurements, {failed} failed; not a result\n", all.len());
    std::iter::once(head)
        .chain(summary(findings).iter().flat_map(|words| wrap("  - ", words)).map(|line| line + "\n"))
        .collect()
}

/// Report in Markdown.
pub fn markdown(findings: &Findings<'_>, figures: &[StudyPlot]) -> String {
    let mut text = format!("# {}\n\n", cell(&question(findings)));
    let mut list = |lines: Vec<String>| {
        for line in &lines {
            text.push_str(&format!("- {}\n", cell(line)));
        }
        text.push_str(if lines.is_empty() { "" } else { "\n" });
    };
    list(limitations(findings));
    list(summary(findings));
    for measure in 0..findings.metrics.len() {
        text.push_str(&tables(findings, measure));
        for figure in figures.iter().filter(|figure| figure.metric == Some(measure)) {
            text.push_str(&image(figure));
        }
    }
    text.push_str(&steps::markdown(findings));
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

/// Table of a metric, and the verdicts on it.
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
                match (spread.runs, spread.untrusted) {
                    (1, 0) => median,
                    (1, _) => format!("{median} ⚠"),
                    (_, 0) => format!("{median} ({low} … {high})"),
                    (runs, untrusted) => format!("{median} ({low} … {high}) ⚠ {untrusted}/{runs}"),
                }
            }
        };
        let row: Vec<String> = variants.clone().map(shown).collect();
        text.push_str(&format!("| {} | {} |\n", cell(&findings.points[point].name()), row.join(" | ")));
    }
    text.push('\n');
    if findings.pairs().is_empty() {
        return text;
    }
    text.push_str("| | vs | at | change | 95% interval | verdict |\n|---|---|---|---:|---:|---|\n");
    for pair in findings.pairs() {
        for judged in findings.verdicts_of_pair(measure, pair) {
            let verdict = &judged.verdict;
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} | {} |\n",
                findings.variant(judged.other),
                findings.variant(judged.base),
                cell(&findings.points[judged.point].name()),
                change(&of.metric, verdict.effect),
                interval(&of.metric, verdict.interval),
                cell(&finding(verdict)),
            ));
        }
    }
    text.push('\n');
    text
}

/// Failures, and measurements that are not trusted.
fn failures(findings: &Findings<'_>) -> String {
    let mut text = String::new();
    let failing = failing(findings);
    if !failing.is_empty() {
        text.push_str("## Failures\n\n");
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
    let untrusted: Vec<&Measurement> =
        findings.outcome.measurements.iter().filter(|cell| cell.is_measured() && !cell.is_trusted()).collect();
    if !untrusted.is_empty() {
        text.push_str("\n## Not trusted\n\n");
    }
    for it in untrusted {
        let place = format!("{}, {}, round {}", it.variant, it.point.name(), it.repeat);
        text.push_str(&format!("- {}: {}\n", cell(&place), cell(&it.warnings.join(" "))));
    }
    text.push('\n');
    text
}

/// Method: what every study does, with the numbers of this one.
pub(super) fn method_sentences(findings: &Findings<'_>) -> [String; 2] {
    let definition = findings.definition;
    let steady = findings.outcome.measurements.iter().filter_map(|cell| cell.warmup);
    let warm_ups: Vec<f64> = steady.map(|warm_up| warm_up.duration_s).collect();
    let longest = warm_ups.iter().copied().fold(0.0, f64::max);
    [
        format!(
            "{} rounds; in each of them every variant is measured at every point once, in random order (seed {}). \
             Each time everything is restarted, warmed up until throughput and response times are steady (at most \
             {longest:.1} s), measured, and ended.",
            definition.repeats, definition.seed,
        ),
        format!(
            "Verdicts are by round, over runs and not over requests; a difference below {:.1}% does not matter. \
             Tables and plots show the median of the runs, the lowest and the highest.",
            definition.min_effect * 100.0,
        ),
    ]
}

/// Highest cost of the sampling, in cores.
pub(super) fn sampling_cores(findings: &Findings<'_>) -> f64 {
    let usages = findings.outcome.measurements.iter().filter_map(|cell| cell.usage.as_ref());
    usages.map(|usage| usage.sampling_cores).fold(0.0, f64::max)
}

fn method(findings: &Findings<'_>) -> String {
    let definition = findings.definition;
    let machine = machine_manifest();
    let [order, verdicts] = method_sentences(findings);
    let mut text = String::from("## Method\n\n");
    let variants = definition.variants.iter().map(|variant| {
        format!(
            "- **{}**: `{}`\n",
            variant.program.name,
            sanitize(&variant.program.command.join(" ")).replace('`', "'")
        )
    });
    text.extend(variants);
    text.push_str(&format!(
        "- {order}\n- {verdicts}\n- {}; {} with {} cores, {} MiB; {}; weir {}. Sampling took {:.2}% of a core at \
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

/// Findings as JSON, described by `docs/schema/study-result.schema.json`.
pub fn json(findings: &Findings<'_>) -> Value {
    let definition = findings.definition;
    let judged = |it: &PairVerdict| {
        let verdict = &it.verdict;
        json!({
            "load": findings.metrics[it.metric].load,
            "metric": findings.metrics[it.metric].metric,
            "primary": findings.metrics[it.metric].is_primary,
            "point": findings.points[it.point].to_json(),
            "base": findings.variant(it.base),
            "other": findings.variant(it.other),
            "finding": verdict.finding.to_string(),
            "reason": match verdict.finding { Finding::Unclear(why) => Some(why.to_string()), _ => None },
            "effect": verdict.effect.filter(|effect| effect.is_finite()),
            "ci": verdict.interval.filter(|of| of.low.is_finite() && of.high.is_finite()).map(|of| [of.low, of.high]),
            "p_value": verdict.p,
            "confidence": verdict.confidence,
            "runs": [verdict.base_runs, verdict.other_runs],
        })
    };
    json!({
        "weir": env!("CARGO_PKG_VERSION"),
        "schema": SCHEMA,
        "question": definition.question,
        "quick": definition.quick,
        "variants": definition.variants.iter().map(|variant| &variant.program.name).collect::<Vec<_>>(),
        "points": findings.points.iter().map(StudyPoint::to_json).collect::<Vec<_>>(),
        "repeats": definition.repeats,
        "missing": findings.outcome.missing,
        "summary": summary(findings),
        "limitations": limitations(findings),
        "verdicts": findings.verdicts.iter().map(judged).collect::<Vec<_>>(),
        "steps": steps::json(findings),
        "measurements": findings.outcome.measurements,
        "machine": machine_manifest(),
    })
}
