//! Reason why a run ended before its time.

use serde::{Deserialize, Serialize};

/// Reason why a run ended before its time, other than an interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "EndReasonFields", into = "EndReasonFields")]
pub enum EndReason {
    /// Each row of this file of data was used once.
    DataRows(String),
    /// This script, which drives the users, ended the run.
    ScriptStop(String),
    /// A script that drives the users failed, with the error.
    ScriptError(String),
}

/// JSON form of [`EndReason`]: one of the fields has a value.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct EndReasonFields {
    data_rows: Option<String>,
    script_stop: Option<String>,
    script_error: Option<String>,
}

impl From<EndReason> for EndReasonFields {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::DataRows(file) => Self { data_rows: Some(file), ..Self::default() },
            EndReason::ScriptStop(name) => Self { script_stop: Some(name), ..Self::default() },
            EndReason::ScriptError(why) => Self { script_error: Some(why), ..Self::default() },
        }
    }
}

impl From<EndReasonFields> for EndReason {
    fn from(fields: EndReasonFields) -> Self {
        match fields {
            EndReasonFields { script_error: Some(why), .. } => Self::ScriptError(why),
            EndReasonFields { script_stop: Some(name), .. } => Self::ScriptStop(name),
            EndReasonFields { data_rows, .. } => Self::DataRows(data_rows.unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_the_same_after_json_and_older_runs_have_the_rows_alone() {
        let all = [EndReason::DataRows, EndReason::ScriptStop, EndReason::ScriptError].map(|reason| reason("x".into()));
        for reason in all {
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(serde_json::from_str::<EndReason>(&json).unwrap(), reason, "{json}");
        }
        let older: EndReason = serde_json::from_str(r#"{"data_rows":"users.csv"}"#).unwrap();
        assert_eq!(older, EndReason::DataRows("users.csv".into()));
    }
}
