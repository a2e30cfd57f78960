//! Progress of a study for a person.

use weir_base::Nanos;
use weir_command::Messages;
use weir_machine::dashboard::Dashboard;

use crate::definition::Definition;
use crate::{StudyEvent, StudyProgress};

/// Progress of a study: a bar on a terminal, a line per measurement elsewhere.
#[derive(Debug)]
pub struct StudyProgressView<'a> {
    messages: &'a Messages,
    definition: &'a Definition,
    board: Option<Dashboard>,
}

impl<'a> StudyProgressView<'a> {
    /// View of a study, nothing on the terminal yet.
    pub fn new(messages: &'a Messages, definition: &'a Definition) -> Self {
        let board = (!messages.is_quiet()).then(Dashboard::new).filter(Dashboard::is_shown);
        Self { messages, definition, board }
    }

    /// Shows an event.
    pub fn show(&mut self, news: &StudyEvent<'_>) {
        match (news, &mut self.board) {
            (StudyEvent::SettingUp(name), _) => self.messages.note(&format!("setting up {name}")),
            (StudyEvent::Started(place, far), Some(board)) => {
                let name = &self.definition.variants[place.variant].program.name;
                board.update(far.done as u64, far.total as u64, &format!("{}  {name}", shown(far)), &[]);
            }
            (StudyEvent::Finished(cell, far), Some(board)) => {
                if let Some(failure) = &cell.failure {
                    board.print_above(|| self.messages.note(&format!("{}: {}", cell.variant, failure.reason)));
                }
                board.update(far.done as u64, far.total as u64, &shown(far), &[]);
            }
            (StudyEvent::Started(..), None) => {}
            (StudyEvent::Finished(cell, far), None) => {
                let point = cell.point.name();
                let reason = cell.failure.as_ref().map_or_else(String::new, |failure| format!(": {}", failure.reason));
                self.messages.note(&format!("{}  {} at {point}{reason}", shown(far), cell.variant));
            }
        }
    }

    /// Removes the bar.
    pub fn finish(self) {
        if let Some(board) = self.board {
            board.finish();
        }
    }
}

fn shown(far: &StudyProgress) -> String {
    let left = far.remaining.filter(|left| *left > Nanos::ZERO).map(|left| {
        let seconds = std::time::Duration::from_secs(left.0.div_ceil(Nanos::SECOND.0));
        format!(", about {seconds:?} left")
    });
    format!("{}/{}{}", far.done, far.total, left.unwrap_or_default())
}
