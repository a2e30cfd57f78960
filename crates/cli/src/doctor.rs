//! `weir doctor`: what of this machine distorts a measurement.

use clap::{Args, ValueEnum};
use serde_json::json;

use weir_command::Messages;
use weir_command::exit;
use weir_command::stdout::{colors, print};
use weir_machine::doctor::{CheckStatus, MachineCheck, MachineFacts, check};
use weir_net::tls;

/// Examples at the end of the help.
const EXAMPLES: &str = "Examples:\n  weir doctor\n  weir doctor --strict --json";
/// Version of the JSON.
const SCHEMA_VERSION: u64 = 1;
/// Width of the names of checks.
const NAME_WIDTH: usize = 16;

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DoctorArgs {
    /// exit with 1 on a warning
    #[arg(long)]
    strict: bool,
    /// explain every check, including those that are ok
    #[arg(short, long)]
    verbose: bool,
    /// print the report in this format
    #[arg(short, long, value_enum, default_value_t = DoctorFormat::Text)]
    format: DoctorFormat,
    /// print the report as JSON; short for --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// Format of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum DoctorFormat {
    /// for a terminal
    Text,
    /// one JSON object
    Json,
}

pub(super) fn run(asked: &DoctorArgs, messages: &Messages) -> u8 {
    let ca_certificates = Some(tls::native_root_count().unwrap_or(0) as u64);
    let facts = MachineFacts { ca_certificates, ..MachineFacts::read() };
    let checks = check(&facts);
    let report = match asked.format {
        DoctorFormat::Text if !asked.json => text(&checks, asked.verbose, colors()),
        _ => as_json(&facts, &checks),
    };
    if let Err(why) = print(&report, false) {
        return messages.usage_error(&why);
    }
    if asked.strict && has_warning(&checks) { exit::OBJECTIVE } else { exit::OK }
}

fn has_warning(checks: &[MachineCheck]) -> bool {
    checks.iter().any(|check| check.status == CheckStatus::Warning)
}

fn as_json(facts: &MachineFacts, checks: &[MachineCheck]) -> String {
    let report = json!({
        "schema": SCHEMA_VERSION,
        "weir": env!("CARGO_PKG_VERSION"),
        "ok": !has_warning(checks),
        "checks": checks,
        "facts": facts,
    });
    format!("{report:#}\n")
}

/// A line per check; where it is not ok, what it means and what to do.
fn text(checks: &[MachineCheck], is_verbose: bool, has_colors: bool) -> String {
    let mut lines: Vec<String> = Vec::new();
    for check in checks {
        let status = styled(check.status, has_colors);
        lines.push(format!("{status}  {:<NAME_WIDTH$}{}", check.name, check.found));
        if is_verbose || check.status != CheckStatus::Ok {
            lines.push(format!("{:9}{}", "", check.meaning));
        }
        lines.extend(check.remedy.iter().map(|remedy| format!("{:9}-> {remedy}", "")));
    }
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let (warnings, notes) = (count(CheckStatus::Warning), count(CheckStatus::Note));
    let plural = |number: usize| if number == 1 { "" } else { "s" };
    lines.push(format!(
        "\n{} checks, {warnings} warning{}, {notes} note{}",
        checks.len(),
        plural(warnings),
        plural(notes)
    ));
    lines.join("\n") + "\n"
}

/// Name of a status in a fixed width, with its colour.
fn styled(status: CheckStatus, has_colors: bool) -> String {
    let name = format!("{:<7}", status.name());
    let color = match status {
        CheckStatus::Ok => 32,
        CheckStatus::Note => 36,
        CheckStatus::Warning => 33,
    };
    if has_colors { format!("\x1b[{color}m{name}\x1b[0m") } else { name }
}
