//! Manifest: command, seed, time and machine.

use super::{Block, Section, ValueUnit};
use weir_measure::run::Manifest;

/// Manifest as a section; empty and zero values are unknown and omitted.
pub fn manifest_section(weir: &str, manifest: &Manifest, more: &[(&str, String)]) -> Section {
    let Manifest { command, seed, threads, hostname, os, cpu, cores, memory_mib, .. } = manifest;
    let known = |n: u64, words: String| if n > 0 { words } else { String::new() };
    let mut facts = vec![
        ("weir", weir.to_owned()),
        ("seed", seed.to_string()),
        ("generator threads", known(*threads, threads.to_string())),
        ("machine", hostname.clone()),
        ("system", os.clone()),
        ("processor", cpu.clone()),
        ("cores", known(*cores, cores.to_string())),
        ("memory", known(*memory_mib, ValueUnit::Bytes.format(*memory_mib as f64 * 1_048_576.0))),
    ];
    facts.extend_from_slice(more);
    let facts = facts.into_iter().filter(|(_, words)| !words.is_empty());
    let mut blocks = rerun_command(command);
    blocks.push(Block::Facts(facts.map(|(name, words)| (name.to_owned(), words)).collect()));
    Section::new("Manifest", blocks)
}

/// Command to repeat a run; nothing if unknown.
pub fn rerun_command(command: &[String]) -> Vec<Block> {
    if command.is_empty() {
        return Vec::new();
    }
    let line = command.iter().map(|arg| shell_quoted(arg)).collect::<Vec<_>>().join(" ");
    vec![Block::Text("Command to repeat it, without passwords:".into()), Block::Command(line)]
}

/// Argument quoted for a shell.
pub fn shell_quoted(arg: &str) -> String {
    let harmless = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !arg.is_empty() && arg.chars().all(harmless) {
        arg.to_owned()
    } else {
        format!("'{}'", arg.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::shell_quoted;

    #[test]
    fn an_argument_can_be_pasted_into_a_shell() {
        assert_eq!(shell_quoted("--rate=5"), "--rate=5");
        assert_eq!(shell_quoted("p99<200ms"), "'p99<200ms'");
        assert_eq!(shell_quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(shell_quoted(""), "''");
    }
}
