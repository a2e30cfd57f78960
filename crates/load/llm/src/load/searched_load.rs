//! Load that a search changes.

use std::str::FromStr;

use weir_measure::LoadModel;

/// Variable of a capacity search: concurrent conversations, or conversations per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchedLoad(pub LoadModel);

impl FromStr for SearchedLoad {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "concurrency" => Ok(Self(LoadModel::Closed)),
            "rate" => Ok(Self(LoadModel::Open)),
            _ => Err("choose concurrency or rate".to_owned()),
        }
    }
}

impl SearchedLoad {
    /// Whether the search is over rates.
    pub fn is_of_rate(self) -> bool {
        self.0 == LoadModel::Open
    }
}
