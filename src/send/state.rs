//! Where a job is between its submission and its end.
//!
//! ```text
//! submit ──► queued ──claim──► leased ──► done
//!              ▲  ▲              │ └────► graveyard   its tries are used up
//!              │  └── released ──┘ └────► dead        a dead letter, to be tried again at a set time
//!              └─── its time has come ─────┘
//! queued and dead ──► expired, once the job's time is over; a job that is leased, too, when its sender says so
//! dead, graveyard and expired ──► queued, when a person says so
//! ```

use std::fmt;
use std::str::FromStr;

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Waits to be sent.
    Queued,
    /// In the hands of a sender.
    Leased,
    /// Delivered.
    Done,
    /// Failed, and waits for another try.
    Retrying,
    /// Failed, and its tries are used up.
    DeadLettered,
    /// Its time was over before it was delivered.
    Expired,
}

impl State {
    /// All of them, in the order of a job's life.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Leased, Self::Done, Self::Retrying, Self::DeadLettered, Self::Expired];

    /// The word in files, commands and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Leased => "leased",
            Self::Done => "done",
            Self::Retrying => "dead",
            Self::DeadLettered => "graveyard",
            Self::Expired => "expired",
        }
    }

    /// The job is still to be delivered: it takes room in the queue.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Leased | Self::Retrying)
    }

    /// A person may have it sent again.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Retrying | Self::DeadLettered | Self::Expired)
    }

    /// A person may change the job: nobody has it in hand, and it is not delivered.
    pub const fn is_editable(self) -> bool {
        !matches!(self, Self::Leased | Self::Done)
    }

    pub(super) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|state| state.name() == word).ok_or_else(|| {
            let all = Self::ALL.map(Self::name).join(", ");
            format!("'{word}' is no state of a job; there are {all}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::State;

    #[test]
    fn a_state_is_read_as_it_is_written() {
        for (index, state) in State::ALL.into_iter().enumerate() {
            assert_eq!(state.to_string().parse(), Ok(state));
            assert_eq!(state.index(), index);
        }
        let told = "Queued".parse::<State>().unwrap_err();
        assert_eq!(told, "'Queued' is no state of a job; there are queued, leased, done, dead, graveyard, expired");
    }
}
