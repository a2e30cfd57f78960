//! A file in the place of a URL or a log: the error names the command that takes the file, as `weir help from` does.

use std::path::Path;

use weir_request::url_text::UrlText;

/// Kind of a file by the end of its name.
struct FileKind {
    ends: &'static [&'static str],
    /// What it is, with its article.
    what: &'static str,
    /// Command that takes it; `COMMAND` is `load`, or `capacity`.
    command: &'static str,
}

const KINDS: [FileKind; 12] = [
    FileKind { ends: &["js", "ts", "mjs"], what: "a k6 script", command: "weir COMMAND -s FILE" },
    FileKind { ends: &["py"], what: "a Python script", command: "weir COMMAND -s FILE" },
    FileKind { ends: &["lua"], what: "a Lua script", command: "weir COMMAND -s FILE http://HOST:PORT" },
    FileKind { ends: &["hurl", "toml"], what: "a scenario", command: "weir COMMAND -s FILE" },
    FileKind { ends: &["har"], what: "a HAR recording", command: "weir COMMAND -s FILE" },
    FileKind { ends: &["jmx"], what: "a JMeter plan", command: "weir COMMAND -s FILE" },
    FileKind { ends: &["sh", "curl"], what: "a file of curl commands", command: "weir COMMAND -s FILE" },
    FileKind {
        ends: &["yaml", "yml", "http", "rest", "bru"],
        what: "a file of requests",
        command: "weir COMMAND -s FILE http://HOST:PORT",
    },
    FileKind {
        ends: &["json"],
        what: "a file",
        command: "weir COMMAND -s FILE for a collection, weir report FILE for a saved run",
    },
    FileKind { ends: &["log"], what: "an access log", command: "weir replay FILE --target http://HOST:PORT" },
    FileKind { ends: &["csv"], what: "a file of data", command: "weir COMMAND http://HOST:PORT --data FILE" },
    FileKind {
        ends: &["jsonl", "ndjson"],
        what: "a file of lines",
        command: "weir send FILE for jobs, weir llm http://HOST:PORT --dataset FILE for prompts",
    },
];

/// Number of the first kinds, which are scenarios and scripts, and no logs.
const SCENARIO_KINDS: usize = 7;

/// Ends of names that are top-level domains as well: such a name is a file only if there is one.
const DOMAINS: [&str; 2] = ["py", "sh"];

fn kind(text: &str) -> Option<(usize, &'static FileKind)> {
    let end = Path::new(text).extension()?.to_str()?.to_ascii_lowercase();
    KINDS.iter().enumerate().find(|(_, kind)| kind.ends.contains(&end.as_str()))
}

fn error(text: &str, kind: &FileKind, wanted: &str, command: &str) -> String {
    let remedy = kind.command.replace("COMMAND", command).replace("FILE", text);
    format!("'{}' is {}, not {wanted}; write {}", text.escape_debug(), kind.what, remedy.escape_debug())
}

/// Rejects a file in the place of the URL of a command: one that exists, or a name that ends like one.
///
/// # Errors
/// One line with the kind of the file, and the command that takes it.
pub(super) fn reject_file(text: &str, command: &str) -> Result<(), String> {
    if text.is_empty() || UrlText::of(text).is_url() {
        return Ok(());
    }
    // A path on a host may end like a file, as in localhost/data.json.
    let is_domain = DOMAINS.iter().any(|end| text.ends_with(&format!(".{end}")));
    let is_name = !is_domain && !text.contains(['/', ':', '?']);
    match kind(text) {
        Some((_, kind)) if is_name || Path::new(text).is_file() => Err(error(text, kind, "a URL", command)),
        None if Path::new(text).is_file() => Err(format!(
            "'{}' is a file, not a URL; 'weir help from' lists the commands for files",
            text.escape_debug()
        )),
        _ => Ok(()),
    }
}

/// Rejects a scenario or script in the place of an access log.
///
/// # Errors
/// One line with the kind of the file, and the command that takes it.
pub(super) fn reject_scenario(path: &Path) -> Result<(), String> {
    let text = path.to_string_lossy();
    match kind(&text).filter(|(number, _)| *number < SCENARIO_KINDS) {
        Some((_, kind)) => Err(error(&text, kind, "an access log", "load")),
        None => Ok(()),
    }
}
