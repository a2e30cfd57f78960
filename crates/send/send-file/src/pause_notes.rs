//! Notes about pauses: why nothing is sent, once for each time that it begins.

use std::collections::HashMap;

use weir_send::{SenderProgress, UnixMs};

/// Shortest rest of a pause that is noted, in milliseconds.
const MIN_NOTED_MS: i64 = 3_000;
/// Notes per change of the progress; with many keys the others are in the progress line.
const MAX_NOTES: usize = 5;

/// Pauses that were noted.
#[derive(Debug, Default)]
pub(super) struct PauseNotes {
    /// End of the noted pause, by key and host.
    noted: HashMap<(String, String), UnixMs>,
    had_no_space: bool,
}

impl PauseNotes {
    /// Notes about what has begun since the last call.
    pub(super) fn of(&mut self, progress: &SenderProgress, now: UnixMs) -> Vec<String> {
        let mut notes = Vec::new();
        for pause in progress.pauses.iter().filter(|pause| pause.until().0 - now.0 >= MIN_NOTED_MS) {
            let subject = if pause.is_of_all_keys { String::new() } else { pause.key.clone() };
            let noted = self.noted.entry((subject, pause.host.clone())).or_default();
            // A rejection that was in flight moves the end by a little.
            if pause.until().0 - noted.0 < MIN_NOTED_MS {
                continue;
            }
            *noted = pause.until();
            if notes.len() < MAX_NOTES {
                notes.push(pause.phrase());
            }
        }
        if progress.has_no_space && !self.had_no_space {
            notes.push("no space left for the results; sending goes on when there is some".into());
        }
        self.had_no_space = progress.has_no_space;
        notes
    }
}
