//! End of a recording: its scenario is written, and what it has and has not is reported.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::RecordCounts;
use weir_command::Messages;
use weir_command::exit;
use weir_import::{Import, ImportSettings, OmissionKind, count_omissions};
use weir_scenario_files::{ImportFormat, ImportInput, ImportOutput};

/// Omissions that are listed one by one.
const MAX_LISTED: usize = 50;

/// Size of a recording from which on its import may take seconds.
const LARGE_BYTES: usize = 8 << 20;

/// A recording that has ended.
#[derive(Debug)]
pub(super) struct RecordOutcome<'a> {
    pub(super) counts: RecordCounts,
    /// HAR file of the recording.
    pub(super) journal: &'a Path,
    /// File of the scenario; stdout without one.
    pub(super) path: Option<&'a Path>,
    pub(super) settings: ImportSettings,
    /// Flags by which services are trusted, for the load.
    pub(super) load_flags: String,
}

impl RecordOutcome<'_> {
    /// Writes the scenario; the exit code.
    ///
    /// # Errors
    /// One line, if a file cannot be written; the journal stays then.
    pub(super) fn write(&self, messages: &Messages) -> Result<u8, String> {
        self.try_write(messages).map_err(|why| {
            let journal = self.journal.display();
            format!("{why}; the recording is {journal}: weir import {journal} -o FILE.hurl")
        })
    }

    fn try_write(&self, messages: &Messages) -> Result<u8, String> {
        let text = fs::read_to_string(self.journal)
            .map_err(|error| format!("cannot read {}: {error}", self.journal.display()))?;
        if text.len() > LARGE_BYTES {
            messages.note(&format!("making the scenario of {} MiB", text.len() >> 20));
        }
        let mut input = ImportInput::of_recording("the recording", text);
        let import = input.import(&self.settings)?;
        if import.active_steps() == 0 {
            messages.error(&format!("no request was recorded{}", self.reason()));
            self.report(&import, messages);
            return Ok(exit::UNTRUSTED);
        }
        let output = ImportOutput {
            path: self.path,
            format: ImportFormat::Hurl,
            input: &input,
            // Those of an earlier recording are of other users and hosts.
            keeps_values: false,
            // They were looked at before the recording.
            overwrites: true,
            load_flags: &self.load_flags,
        };
        let written = output.write(import, messages)?;
        self.report(&written, messages);
        Ok(exit::OK)
    }

    /// Advice for a user whose recording has no requests.
    fn reason(&self) -> &'static str {
        let counts = &self.counts;
        if !counts.untrusted.is_empty() {
            "; the client does not trust weir's CA"
        } else if counts.other_hosts > 0 || !counts.tunnels.is_empty() {
            "; --only and --exclude left all hosts out"
        } else if counts.static_files > 0 {
            "; --static records static files"
        } else if counts.not_playable > 0 {
            ""
        } else {
            "; is the recorder the proxy of the client, also for localhost?"
        }
    }

    fn report(&self, import: &Import, messages: &Messages) {
        let mut left_out: Vec<String> =
            Some(count_omissions(&import.omissions)).filter(|text| !text.is_empty()).into_iter().collect();
        let counts = &self.counts;
        let tunnels: u64 = counts.tunnels.values().sum();
        for (count, one, many) in [
            (tunnels, "connection that passed unread", "connections that passed unread"),
            (counts.other_hosts, "request to another host", "requests to other hosts"),
            (counts.unrecorded, "request after the end of the recording", "requests after the end of the recording"),
            (counts.unwritten, "request that could not be written", "requests that could not be written"),
        ] {
            left_out.extend((count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many })));
        }
        if !left_out.is_empty() {
            messages.note(&format!("left out: {}", left_out.join(", ")));
        }
        let listed = import.omissions.iter().filter(|omission| omission.kind != OmissionKind::StaticFile);
        for omission in listed.clone().take(MAX_LISTED) {
            // Without the place, which is in a file that is gone.
            let whole = omission.to_string();
            let place = format!("{}:{}: ", omission.file, omission.line);
            messages.note(&format!("  {}", whole.strip_prefix(&place).unwrap_or(&whole)));
        }
        let more = listed.count().saturating_sub(MAX_LISTED);
        if more > 0 {
            messages.note(&format!("  and {more} more, which are comments of the scenario"));
        }
        if !counts.tunnels.is_empty() {
            messages.note(&format!("  passed unread: {}", hosts(&counts.tunnels)));
        }
        if !counts.untrusted.is_empty() {
            messages.note(&format!("  TLS that clients ended: {}", hosts(&counts.untrusted)));
        }
        if counts.unsearched > 0 {
            let count = counts.unsearched;
            let noun = if count == 1 { "response was" } else { "responses were" };
            messages.note(&format!(
                "{count} {noun} not searched for values to capture: longer than --max-body, or too late in a long recording"
            ));
        }
    }
}

/// `a.example (3), b.example`
fn hosts(counts: &BTreeMap<String, u64>) -> String {
    let shown = counts.iter().take(10).map(|(host, count)| match count {
        1 => host.clone(),
        count => format!("{host} ({count})"),
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if counts.len() > 10 {
        text.push_str(&format!(" and {} more", counts.len() - 10));
    }
    text
}
