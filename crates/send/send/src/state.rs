//! States of a job between its submission and its end.
//!
//! ```text
//! submit ──► queued ──claim──► leased ──► done
//!              ▲  ▲              │ └────► dead_lettered   attempts exhausted, or another would not help
//!              │  └── released ──┘ └────► retrying        next attempt at a set time
//!              └────── retry due ──────────┘
//! queued, retrying ──► expired, when the TTL ends; leased ──► expired, by its sender
//! retrying, dead_lettered, expired ──► queued, by `weir send retry`
//! ```

use std::fmt;
use std::str::FromStr;

/// State of a job, by the words of SQS and RabbitMQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Waits to be sent.
    Queued,
    /// Leased by a sender: in flight, or next.
    Leased,
    /// Delivered.
    Done,
    /// Failed, and waits for its next attempt.
    Retrying,
    /// Failed permanently: its attempts are exhausted, or another would not help.
    DeadLettered,
    /// The time to live ended before the job was delivered.
    Expired,
}

impl State {
    /// All states, in the order of a job's life.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Leased, Self::Done, Self::Retrying, Self::DeadLettered, Self::Expired];

    /// Word in files, flags and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Leased => "leased",
            Self::Done => "done",
            Self::Retrying => "retrying",
            Self::DeadLettered => "dead_lettered",
            Self::Expired => "expired",
        }
    }

    /// Whether the job is not delivered yet, and so counts towards the bounds of the queue.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Leased | Self::Retrying)
    }

    /// Whether `weir send retry` requeues the job.
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Retrying | Self::DeadLettered | Self::Expired)
    }

    /// Whether `weir send edit` changes the job: it is neither leased nor done.
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
            let [first @ .., last] = Self::ALL.map(Self::name);
            let all = format!("{} or {last}", first.join(", "));
            format!("unknown job state '{word}'; choose {all}")
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
        let error = "Queued".parse::<State>().unwrap_err();
        let states = "queued, leased, done, retrying, dead_lettered or expired";
        assert_eq!(error, format!("unknown job state 'Queued'; choose {states}"));
    }
}
