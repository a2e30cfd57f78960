//! Order in which iterations take the rows of data.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use weir_base::rng::SeededRng;

/// Salt of the random numbers that choose rows.
const ROW_SALT: u64 = 11;

/// Order in which iterations take the rows of data.
///
/// The row of an iteration is a function of its number among all of the load and of the seed, so threads and agents
/// need not agree on anything: numbers are dealt without overlap, and so are rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowOrder {
    /// In the order of the file, from the start again after the last row.
    #[default]
    Circular,
    /// In the order of the file, each row at most once; the run ends when no row is left.
    Unique,
    /// A random row for each iteration.
    Random,
    /// One row for each user, which keeps it for the whole run.
    Once,
}

impl RowOrder {
    /// All orders.
    pub const ALL: [Self; 4] = [Self::Circular, Self::Unique, Self::Random, Self::Once];

    /// Name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Circular => "circular",
            Self::Unique => "unique",
            Self::Random => "random",
            Self::Once => "once",
        }
    }

    /// Row of an iteration among `rows` rows; `None` if none is left for it.
    ///
    /// `iteration` is the number of the iteration among those of its scenario, and `user` that of its user, both in
    /// the whole load.
    pub fn row(self, iteration: u64, user: u64, seed: u64, rows: u64) -> Option<u64> {
        if rows == 0 {
            return None;
        }
        match self {
            Self::Circular => Some(iteration % rows),
            Self::Unique => Some(iteration).filter(|row| *row < rows),
            Self::Random => {
                let unit = SeededRng::new(seed, ROW_SALT).unit_at(iteration);
                // In (0, 1], so that the product may round up to the number of rows.
                Some(((unit * rows as f64).ceil() as u64).clamp(1, rows) - 1)
            }
            Self::Once => Some(user).filter(|row| *row < rows),
        }
    }
}

impl FromStr for RowOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|order| order.name() == text);
        found.ok_or_else(|| format!("unknown order '{text}'; choose circular, unique, random or once"))
    }
}

impl fmt::Display for RowOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
