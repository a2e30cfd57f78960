//! Study file -> its definition, or all errors by line and column.

mod example;
mod load;
mod program;

use std::collections::BTreeSet;
use std::path::Path;

use super::definition::{CpuAllocation, DEFAULT_REPEATS, Definition, ResourceLimits, StudyTimeouts, SweepParameter};
use super::placeholders;
use super::study_point::StudyPoint;
use weir_base::Nanos;
use weir_document::problem::{Diagnostics, one_of};
use weir_document::read::{DocumentNode, DocumentTable, NamedNode, named_nodes};
use weir_document::{self as document, Diagnostic};
use weir_measure::compare::{Better, Metric};

pub use self::example::EXAMPLE;
pub(super) use self::load::options;
pub use self::load::{DISALLOWED_FLAGS, LoadParser, LoadSyntax, ParsedLoad};

/// Maximum number of points of a sweep; more is a typing error.
const MAX_POINTS: usize = 1000;
/// Maximum number of rounds.
const MAX_REPEATS: u64 = 1000;

/// Placeholders that every study has.
pub(super) const BUILT_IN_PLACEHOLDERS: [&str; 5] = ["port", "variant", "repeat", "folder", "out"];

/// Parses a study file, with `words` as the syntax of loads. With `quick`, the table `[quick]` overrides the rest, or
/// without one everything is shortened. Returns the definition and warnings.
///
/// # Errors
/// All errors, by position, including those in `[quick]` without `quick`.
pub fn parse(
    text: &str,
    folder: &Path,
    words: &LoadSyntax<'_>,
    quick: bool,
) -> Result<(Definition, Vec<Diagnostic>), Vec<Diagnostic>> {
    let (whole, own, warnings) =
        document::parse_with_override(text, folder, "quick", |root, notes| definition(root, notes, words))?;
    let definition = match (quick, own) {
        (false, _) => whole,
        (true, Some(own)) => Definition { quick: true, ..own },
        (true, None) => whole.into_quick(),
    };
    Ok((definition, warnings))
}

/// Names of the known placeholders, while a file is parsed.
#[derive(Debug)]
struct PlaceholderNames {
    names: BTreeSet<String>,
}

impl PlaceholderNames {
    /// Reports each unknown placeholder of the text; returns whether there is none.
    fn check(&self, node: &DocumentNode<'_>, text: &str, more: &[&str]) -> bool {
        let unknown = |name: &&str| !self.names.contains(*name) && !more.contains(name);
        let unknown: Vec<&str> = placeholders::names(text).into_iter().filter(unknown).collect();
        for name in &unknown {
            let all: Vec<&str> = self.names.iter().map(String::as_str).chain(more.iter().copied()).collect();
            let remedy = format!("{}; {{{{{name}}}}} is the braces themselves", one_of(&all));
            node.error(format!("unknown placeholder {{{name}}}"), remedy);
        }
        unknown.is_empty()
    }
}

fn definition(root: &DocumentTable<'_>, notes: &Diagnostics<'_>, words: &LoadSyntax<'_>) -> Definition {
    let question = root.get("question").and_then(|node| node.string());
    if question.is_some_and(|text| text.trim().is_empty()) {
        root.error("the question is empty", r#"write e.g. question = "One worker or two?""#);
    }
    let repeats = root.get("repeats").and_then(|node| node.integer(1..=MAX_REPEATS)).unwrap_or(DEFAULT_REPEATS);
    let seed = root.get("seed").and_then(|node| node.integer(0..=i64::MAX as u64)).unwrap_or(1);
    let min_effect = root.get("min_effect").and_then(|node| fraction(&node)).unwrap_or(0.03);
    let limits = root.get("limits").and_then(|node| limits(&node)).unwrap_or_default();
    let timeouts = root.get("timeouts").and_then(|node| timeouts(&node)).unwrap_or_default();
    let sweep = sweep(root.get("sweep").as_ref());
    let (services, variants, loads) = (root.get("services"), root.get("variants"), root.get("loads"));
    let of_services = named_nodes(services.as_ref());
    let of_variants = named_nodes(variants.as_ref());
    let of_loads = named_nodes(loads.as_ref());
    check_duplicate_names(&of_services, &of_variants, notes);

    let ports = of_services.iter().map(|it| format!("{}.port", it.key));
    let swept = sweep.iter().map(|parameter| parameter.name.clone());
    let own = BUILT_IN_PLACEHOLDERS.iter().map(ToString::to_string);
    let mut known = PlaceholderNames { names: own.chain(ports).chain(swept).collect() };
    let values = program::values(root.get("values").as_ref(), &known.names);
    known.names.extend(values.keys().cloned());
    let folder = notes.folder;
    let services = of_services.iter().filter_map(|it| program::service(it, &known, folder)).collect();
    let variants: Vec<_> = of_variants.iter().filter_map(|it| program::variant(it, &known, folder)).collect();
    if of_variants.is_empty() {
        root.error("no variant", r#"write [variants.NAME] with command = "...""#);
    } else if of_variants.len() == 1 && variants.len() == 1 && sweep.is_empty() {
        notes.warning(
            of_variants[0].start,
            &of_variants[0].node.path,
            "a single variant is compared with nothing",
            "add another one",
        );
    }
    let all_clients = !variants.is_empty() && variants.iter().all(|variant| variant.is_client);
    if of_loads.is_empty() && !all_clients && variants.len() == of_variants.len() {
        root.error("no load", r#"write [loads.NAME] with url = "http://127.0.0.1:{port}/""#);
    }
    for it in of_loads.iter().filter(|_| all_clients) {
        notes.warning(
            it.start,
            &it.node.path,
            "this load is never applied: clients measure themselves",
            "leave it out",
        );
    }
    let client_metrics = root.get("metrics").map(|node| client_metrics(&node)).unwrap_or_default();
    let mut definition = Definition {
        question: question.unwrap_or_default().trim().to_owned(),
        folder: folder.to_owned(),
        values,
        services,
        variants,
        loads: Vec::new(),
        sweep,
        repeats,
        seed,
        min_effect,
        client_metrics,
        limits,
        timeouts,
        quick: false,
        max_load_time: None,
    };
    if definition.points().len() > MAX_POINTS {
        root.error(format!("the sweep has {} points", definition.points().len()), format!("at most {MAX_POINTS}"));
        definition.sweep.clear();
    }
    definition.loads = of_loads.iter().filter_map(|it| load::load(it, &known, &definition, words)).collect();
    let idle = |point: &StudyPoint| !definition.loads.iter().any(|load| load.is_driven_at(point));
    if let Some(point) = definition.points().iter().find(|point| idle(point))
        && !definition.loads.is_empty()
    {
        root.error(format!("no load is applied at {}", point.name()), "add this point to the `when` of a load");
    }
    root.check_unknown_keys();
    definition
}

/// Checks that no service has the name of a variant: `{NAME.port}` and file names would be ambiguous.
fn check_duplicate_names(services: &[NamedNode<'_>], variants: &[NamedNode<'_>], notes: &Diagnostics<'_>) {
    for it in services.iter().filter(|it| variants.iter().any(|variant| variant.key == it.key)) {
        notes.error(it.start, &it.node.path, "duplicate name: a variant has it, too", "rename one of them");
    }
}

fn limits(node: &DocumentNode<'_>) -> Option<ResourceLimits> {
    let table = node.table()?;
    let cpus = table.get("cpus").and_then(|node| match node.is_integer() {
        true => node.integer(1..=4096).map(CpuAllocation::Count),
        false => node.choice(&[("half", CpuAllocation::Half), ("all", CpuAllocation::All)]),
    });
    let memory = table.get("memory").and_then(|node| node.size(1 << 20..=usize::MAX / 2)).map(|bytes| bytes as u64);
    table.check_unknown_keys();
    Some(ResourceLimits { cpus: cpus.unwrap_or_default(), memory_bytes: memory })
}

fn timeouts(node: &DocumentNode<'_>) -> Option<StudyTimeouts> {
    let table = node.table()?;
    let defaults = StudyTimeouts::default();
    let time = |key, default: Nanos| table.get(key).and_then(|node| node.time()).unwrap_or(default);
    let timeouts = StudyTimeouts {
        ready: time("ready", defaults.ready),
        warmup: table.get("warmup").and_then(|node| node.time_or_zero()).unwrap_or(defaults.warmup),
        stop: time("stop", defaults.stop),
        setup: time("setup", defaults.setup),
        client: time("client", defaults.client),
        study: time("study", defaults.study),
    };
    table.check_unknown_keys();
    Some(timeouts)
}

fn sweep(node: Option<&DocumentNode<'_>>) -> Vec<SweepParameter> {
    let mut sweep = Vec::new();
    for it in named_nodes(node) {
        if BUILT_IN_PLACEHOLDERS.contains(&it.key) {
            it.node.error(format!("{{{}}} is reserved: the study sets it", it.key), "choose another name");
        }
        let Some(nodes) = it.node.list() else { continue };
        if nodes.is_empty() {
            it.node.error("no values", "write e.g. [1, 2, 4]");
        }
        let mut values: Vec<String> = Vec::new();
        for node in nodes {
            let Some(value) = scalar(&node) else { continue };
            if values.contains(&value) {
                node.error(format!("duplicate value {}", node.display()), "leave one out");
            }
            values.push(value);
        }
        sweep.push(SweepParameter { name: it.key.to_owned(), values });
    }
    sweep
}

fn client_metrics(node: &DocumentNode<'_>) -> Vec<Metric> {
    // Fractions are compared by difference: a fraction of 0 has no ratio.
    let directions = [
        ("higher", (false, Better::Higher)),
        ("lower", (false, Better::Lower)),
        ("higher fraction", (true, Better::Higher)),
        ("lower fraction", (true, Better::Lower)),
    ];
    let metric = |it: &NamedNode<'_>| {
        let (is_fraction, better) = it.node.choice(&directions)?;
        Some(if is_fraction { Metric::fraction(it.key, better) } else { Metric::ratio(it.key, "", better) })
    };
    named_nodes(Some(node)).iter().filter_map(metric).collect()
}

/// `"3%"`, or a number in [0, 1].
fn fraction(node: &DocumentNode<'_>) -> Option<f64> {
    let Some(text) = node.value().as_str() else { return node.number(0.0..=1.0) };
    let percent = text.strip_suffix('%').and_then(|digits| digits.trim().parse::<f64>().ok());
    let fraction = percent.filter(|percent| (0.0..=100.0).contains(percent)).map(|percent| percent / 100.0);
    if fraction.is_none() {
        node.expected("percentage", r#"write e.g. "3%""#);
    }
    fraction
}

/// String, number or boolean as text.
fn scalar(node: &DocumentNode<'_>) -> Option<String> {
    let value = node.value();
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    if value.is_array() || value.is_table() {
        node.expected("value", "write a string, a number or a boolean");
        return None;
    }
    Some(node.display())
}

/// String, or list of strings.
fn strings(node: &DocumentNode<'_>) -> Vec<String> {
    if node.value().is_array() {
        return node.list().unwrap_or_default().iter().filter_map(|node| node.string().map(str::to_owned)).collect();
    }
    node.string().map(str::to_owned).into_iter().collect()
}
