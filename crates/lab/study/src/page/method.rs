//! Method section of the HTML report of a study, and its manifest.

use crate::definition::{FlagValue, Program, StudyLoad};
use crate::findings::Findings;
use crate::text;
use weir_load::machine_manifest;
use weir_measure::run::Manifest;
use weir_report::page::manifest::manifest_section;
use weir_report::page::{Block, Section};
use weir_request::secret_mask::without_secrets;

pub(super) fn method(findings: &Findings<'_>) -> Section {
    let definition = findings.definition;
    let mut blocks: Vec<Block> = text::method_sentences(findings).into_iter().map(Block::Text).collect();
    let mut facts: Vec<(String, String)> = Vec::new();
    let command = |program: &Program| program.command.join(" ");
    facts.extend(definition.services.iter().map(|service| (format!("service {}", service.name), command(service))));
    let variants = definition.variants.iter().map(|variant| &variant.program);
    facts.extend(variants.map(|program| (program.name.clone(), command(program))));
    facts.extend(loads(&definition.loads));
    let sweep = definition.sweep.iter().map(|of| (of.name.clone(), of.values.join(", ")));
    facts.extend(sweep.map(|(name, values)| (format!("{{{name}}}"), values)));
    let cores = if findings.outcome.disjoint_cpus { "separate" } else { "shared" };
    facts.push(("cores of service and load".into(), cores.into()));
    facts.push(("sampling took".into(), format!("{:.2}% of a core at most", text::sampling_cores(findings) * 100.0)));
    blocks.push(Block::Facts(facts));
    Section::new("Method", blocks)
}

/// Flags of a load whose values cannot contain a secret.
const PUBLIC_FLAGS: [&str; 21] = [
    "arrivals",
    "connections",
    "duration",
    "h2-window",
    "h2c",
    "http2",
    "loops",
    "max-events",
    "method",
    "no-keepalive",
    "pipeline",
    "ramp-up",
    "rate",
    "requests",
    "stages",
    "stall-timeout",
    "stream",
    "streams",
    "threads",
    "timeout",
    "users",
];

/// Each load as flags of `weir load`; values that may contain a secret are replaced by an ellipsis.
fn loads(loads: &[StudyLoad]) -> impl Iterator<Item = (String, String)> {
    loads.iter().map(|load| {
        let words = load.flags.iter().filter_map(|(flag, word)| match word {
            FlagValue::Flag(true) => Some(format!("--{flag}")),
            FlagValue::Flag(false) => None,
            FlagValue::Values(values) if flag == "url" => values.first().map(|url| without_secrets(url)),
            FlagValue::Values(_) if !PUBLIC_FLAGS.contains(&flag.as_str()) => Some(format!("--{flag} \u{2026}")),
            FlagValue::Values(values) => {
                Some(values.iter().map(|value| format!("--{flag} {value}")).collect::<Vec<_>>().join(" "))
            }
        });
        (format!("load {}", load.name), words.collect::<Vec<_>>().join(" "))
    })
}

pub(super) fn manifest(findings: &Findings<'_>) -> Section {
    let manifest = Manifest { seed: findings.definition.seed, ..machine_manifest() };
    let results = "study.json has all metrics, plots/ the numbers behind each plot, runs/ every run";
    manifest_section(env!("CARGO_PKG_VERSION"), &manifest, &[("results", results.to_owned())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_a_load_is_shown() {
        let value = |text: &str| FlagValue::Values(vec![text.to_owned()]);
        let words = [
            ("url", value("http://me:pw@h:{port}/a@b")),
            ("header", value("Authorization: Bearer pw")),
            ("auth", value("me:pw")),
            ("body", value("pw")),
            ("rate", value("100")),
            ("no-keepalive", FlagValue::Flag(true)),
            ("insecure", FlagValue::Flag(false)),
        ];
        let words = words.map(|(flag, word)| (flag.to_owned(), word)).to_vec();
        let load = StudyLoad { name: "main".into(), flags: words, when: Vec::new() };
        let shown = loads(&[load]).next().expect("one load");
        let words =
            "http://***@h:{port}/a@b --header \u{2026} --auth \u{2026} --body \u{2026} --rate 100 --no-keepalive";
        assert_eq!(shown, ("load main".to_owned(), words.to_owned()));
    }
}
