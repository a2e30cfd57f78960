//! A study's file -> its definition, or all that is wrong with it, by line and column.

mod example;
mod load;
mod program;

use std::collections::BTreeSet;
use std::path::Path;

use super::definition::{Cpus, Definition, Limits, Parameter, REPEATS, Times};
use super::folder::name_of;
use super::placeholders;
use crate::decide::Nanos;
use crate::document::problem::{Notes, one_of};
use crate::document::read::{Named, Node, Table, named};
use crate::document::{self, Problem};
use crate::measure::compare::{Better, Metric};

pub use self::example::EXAMPLE;
pub use self::load::LoadWords;
pub(super) use self::load::options;

/// Points of a sweep at most; a typing error rather than a study.
const MOST_POINTS: usize = 1000;
/// Repeats at most.
const MOST_REPEATS: u64 = 1000;

/// Placeholders that the study itself gives.
pub(super) const OWN: [&str; 5] = ["port", "variant", "repeat", "folder", "out"];

/// Reads a file of a study; `words` knows how loads are written. A `quick` one has the table `[quick]` laid over it, or is
/// cut short if there is none. What comes back beside are warnings.
///
/// # Errors
/// All that is wrong, in order of position; in `[quick]` as well, whichever study is asked for.
pub fn parse(
    text: &str,
    folder: &Path,
    words: &LoadWords<'_>,
    quick: bool,
) -> Result<(Definition, Vec<Problem>), Vec<Problem>> {
    let (whole, own, warnings) =
        document::parse_over(text, folder, "quick", |root, notes| definition(root, notes, words))?;
    let definition = match (quick, own) {
        (false, _) => whole,
        (true, Some(own)) => Definition { quick: true, ..own },
        (true, None) => whole.cut_short(),
    };
    Ok((definition, warnings))
}

/// Which placeholders there are, while a file is read.
#[derive(Debug)]
struct Known {
    names: BTreeSet<String>,
}

impl Known {
    /// Notes each placeholder of the text that stands for nothing; whether there is none.
    fn check(&self, node: &Node<'_>, text: &str, more: &[&str]) -> bool {
        let unknown = |name: &&str| !self.names.contains(*name) && !more.contains(name);
        let unknown: Vec<&str> = placeholders::names(text).into_iter().filter(unknown).collect();
        for name in &unknown {
            let all: Vec<&str> = self.names.iter().map(String::as_str).chain(more.iter().copied()).collect();
            let remedy = format!("{}; {{{{{name}}}}} writes the braces themselves", one_of(&all));
            node.wrong(format!("{{{name}}} stands for nothing"), remedy);
        }
        unknown.is_empty()
    }
}

fn definition(root: &Table<'_>, notes: &Notes<'_>, words: &LoadWords<'_>) -> Definition {
    let question = root.get("question").and_then(|node| node.string());
    if question.is_some_and(|text| text.trim().is_empty()) {
        root.wrong("the question is empty", "say what the study is to answer");
    }
    let repeats = root.get("repeats").and_then(|node| node.whole(1..=MOST_REPEATS)).unwrap_or(REPEATS);
    let seed = root.get("seed").and_then(|node| node.whole(0..=i64::MAX as u64)).unwrap_or(1);
    let minimum_effect = root.get("minimum_effect").and_then(|node| share(&node)).unwrap_or(0.03);
    let limits = root.get("limits").and_then(|node| limits(&node)).unwrap_or_default();
    let times = root.get("times").and_then(|node| times(&node)).unwrap_or_default();
    let sweep = sweep(root.get("sweep").as_ref());
    let (services, variants, loads) = (root.get("services"), root.get("variants"), root.get("loads"));
    let of_services = named(services.as_ref());
    let of_variants = named(variants.as_ref());
    let of_loads = named(loads.as_ref());
    check_twins(&of_services, &of_variants, notes);

    let ports = of_services.iter().map(|it| format!("{}.port", it.key));
    let swept = sweep.iter().map(|parameter| parameter.name.clone());
    let own = OWN.iter().map(ToString::to_string);
    let mut known = Known { names: own.chain(ports).chain(swept).collect() };
    let values = program::values(root.get("values").as_ref(), &known.names);
    known.names.extend(values.keys().cloned());
    let folder = notes.folder;
    let services = of_services.iter().filter_map(|it| program::service(it, &known, folder)).collect();
    let variants: Vec<_> = of_variants.iter().filter_map(|it| program::variant(it, &known, folder)).collect();
    if of_variants.is_empty() {
        root.wrong("there is no variant", r#"write [variants.NAME] with command = "...""#);
    } else if of_variants.len() == 1 && variants.len() == 1 && sweep.is_empty() {
        notes.warning(
            of_variants[0].start,
            &of_variants[0].node.at,
            "one variant is compared with nothing",
            "add another one",
        );
    }
    let all_clients = !variants.is_empty() && variants.iter().all(|variant| variant.is_client);
    if of_loads.is_empty() && !all_clients && variants.len() == of_variants.len() {
        root.wrong("there is no load", r#"write [loads.NAME] with url = "http://127.0.0.1:{port}/""#);
    }
    for it in of_loads.iter().filter(|_| all_clients) {
        notes.warning(it.start, &it.node.at, "clients measure themselves; nobody drives this load", "leave it out");
    }
    let figures = root.get("figures").map(|node| figures(&node)).unwrap_or_default();
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
        minimum_effect,
        figures,
        limits,
        times,
        quick: false,
        longest_load: None,
    };
    if definition.points().len() > MOST_POINTS {
        root.wrong(
            format!("the sweep has {} points", definition.points().len()),
            format!("have {MOST_POINTS} at most"),
        );
        definition.sweep.clear();
    }
    definition.loads = of_loads.iter().filter_map(|it| load::load(it, &known, &definition, words)).collect();
    let idle = |point: &Vec<_>| !definition.loads.iter().any(|load| load.is_driven_at(point));
    if let Some(point) = definition.points().iter().find(|point| idle(point))
        && !definition.loads.is_empty()
    {
        root.wrong(format!("no load is driven at {}", name_of(point)), "see what their `when` says");
    }
    root.close();
    definition
}

/// `{NAME.port}`, and the names of files, are of one of them.
fn check_twins(services: &[Named<'_>], variants: &[Named<'_>], notes: &Notes<'_>) {
    for it in services.iter().filter(|it| variants.iter().any(|variant| variant.key == it.key)) {
        notes.problem(it.start, &it.node.at, "a variant has this name, too", "rename one of them");
    }
}

fn limits(node: &Node<'_>) -> Option<Limits> {
    let table = node.table()?;
    let cpus = table.get("cpus").and_then(|node| match node.is_integer() {
        true => node.whole(1..=4096).map(Cpus::Some),
        false => node.choice(&[("half", Cpus::Half), ("all", Cpus::All)]),
    });
    let memory = table.get("memory").and_then(|node| node.size(1 << 20..=usize::MAX / 2)).map(|bytes| bytes as u64);
    table.close();
    Some(Limits { cpus: cpus.unwrap_or_default(), memory })
}

fn times(node: &Node<'_>) -> Option<Times> {
    let table = node.table()?;
    let otherwise = Times::default();
    let time = |key, default: Nanos| table.get(key).and_then(|node| node.time()).unwrap_or(default);
    let times = Times {
        ready: time("ready", otherwise.ready),
        warm_up: table.get("warm_up").and_then(|node| node.any_time()).unwrap_or(otherwise.warm_up),
        stop: time("stop", otherwise.stop),
        setup: time("setup", otherwise.setup),
        client: time("client", otherwise.client),
        study: time("study", otherwise.study),
    };
    table.close();
    Some(times)
}

fn sweep(node: Option<&Node<'_>>) -> Vec<Parameter> {
    let mut sweep = Vec::new();
    for it in named(node) {
        if OWN.contains(&it.key) {
            it.node.wrong(format!("{{{}}} is given by the study", it.key), "take another name");
        }
        let Some(nodes) = it.node.list() else { continue };
        if nodes.is_empty() {
            it.node.wrong("there is nothing in it", "write its values, such as [1, 2, 4]");
        }
        let mut values: Vec<String> = Vec::new();
        for node in nodes {
            let Some(value) = scalar(&node) else { continue };
            if values.contains(&value) {
                node.wrong(format!("{} is there twice", node.shown()), "leave one out");
            }
            values.push(value);
        }
        sweep.push(Parameter { name: it.key.to_owned(), values });
    }
    sweep
}

fn figures(node: &Node<'_>) -> Vec<Metric> {
    // A share may be 0, which nothing is a multiple of.
    let ways = [
        ("higher", (false, Better::Higher)),
        ("lower", (false, Better::Lower)),
        ("higher share", (true, Better::Higher)),
        ("lower share", (true, Better::Lower)),
    ];
    let figure = |it: &Named<'_>| {
        let (is_share, better) = it.node.choice(&ways)?;
        Some(if is_share { Metric::share(it.key, better) } else { Metric::ratio(it.key, "", better) })
    };
    named(Some(node)).iter().filter_map(figure).collect()
}

/// `"3%"`, or a number in [0, 1].
fn share(node: &Node<'_>) -> Option<f64> {
    let Some(text) = node.value().as_str() else { return node.number(0.0..=1.0) };
    let percent = text.strip_suffix('%').and_then(|digits| digits.trim().parse::<f64>().ok());
    let share = percent.filter(|percent| (0.0..=100.0).contains(percent)).map(|percent| percent / 100.0);
    if share.is_none() {
        node.is_no("share", r#"write it as "3%""#);
    }
    share
}

/// A string, a number or a boolean as text.
fn scalar(node: &Node<'_>) -> Option<String> {
    let value = node.value();
    if let Some(text) = value.as_str() {
        return Some(text.to_owned());
    }
    if value.is_array() || value.is_table() {
        node.is_no("value for this", "write a string, a number or a boolean");
        return None;
    }
    Some(node.shown())
}

/// A string, or a list of strings.
fn strings(node: &Node<'_>) -> Vec<String> {
    if node.value().is_array() {
        return node.list().unwrap_or_default().iter().filter_map(|node| node.string().map(str::to_owned)).collect();
    }
    node.string().map(str::to_owned).into_iter().collect()
}
