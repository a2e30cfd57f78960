//! Metrics by their names.

use std::sync::Mutex;

use weir_machine::lock::lock;

/// Kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScriptMetricKind {
    /// Sum of its values.
    Counter,
    /// Its last value, with the smallest and the largest.
    Gauge,
    /// Share of values that are not 0.
    Rate,
    /// Distribution of its values.
    Trend,
}

/// What the values of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricUnit {
    /// Numbers.
    Number,
    /// Times in milliseconds.
    Time,
    /// Bytes.
    Data,
}

/// A metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetricFacts {
    pub(crate) name: String,
    pub(crate) kind: ScriptMetricKind,
    pub(crate) unit: MetricUnit,
}

/// Metrics that every script has, in the order of their numbers.
macro_rules! built_in {
    ($($constant:ident $name:literal $kind:ident $unit:ident,)*) => {
        /// Numbers of the metrics that every script has.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub(crate) enum BuiltIn { $($constant,)* }

        const BUILT_IN: &[(&str, ScriptMetricKind, MetricUnit)] =
            &[$(($name, ScriptMetricKind::$kind, MetricUnit::$unit),)*];
    };
}

built_in! {
    Checks "checks" Rate Number,
    DataReceived "data_received" Counter Data,
    DataSent "data_sent" Counter Data,
    DroppedIterations "dropped_iterations" Counter Number,
    GroupDuration "group_duration" Trend Time,
    GrpcReqDuration "grpc_req_duration" Trend Time,
    GrpcStreams "grpc_streams" Counter Number,
    GrpcStreamsMsgsReceived "grpc_streams_msgs_received" Counter Number,
    GrpcStreamsMsgsSent "grpc_streams_msgs_sent" Counter Number,
    HttpReqBlocked "http_req_blocked" Trend Time,
    HttpReqConnecting "http_req_connecting" Trend Time,
    HttpReqDuration "http_req_duration" Trend Time,
    HttpReqFailed "http_req_failed" Rate Number,
    HttpReqReceiving "http_req_receiving" Trend Time,
    HttpReqSending "http_req_sending" Trend Time,
    HttpReqTlsHandshaking "http_req_tls_handshaking" Trend Time,
    HttpReqWaiting "http_req_waiting" Trend Time,
    HttpReqs "http_reqs" Counter Number,
    IterationDuration "iteration_duration" Trend Time,
    Iterations "iterations" Counter Number,
    Vus "vus" Gauge Number,
    VusMax "vus_max" Gauge Number,
    WsConnecting "ws_connecting" Trend Time,
    WsMsgsReceived "ws_msgs_received" Counter Number,
    WsMsgsSent "ws_msgs_sent" Counter Number,
    WsPing "ws_ping" Trend Time,
    WsSessionDuration "ws_session_duration" Trend Time,
    WsSessions "ws_sessions" Counter Number,
}

/// Number of metrics that every script has.
pub(crate) const BUILT_IN_COUNT: usize = BUILT_IN.len();

/// Metrics of a script. Those of its own are added while its file runs.
#[derive(Debug)]
pub(crate) struct MetricRegistry(Mutex<Vec<MetricFacts>>);

impl Default for MetricRegistry {
    fn default() -> Self {
        let facts = |&(name, kind, unit): &(&str, _, _)| MetricFacts { name: name.to_owned(), kind, unit };
        Self(Mutex::new(BUILT_IN.iter().map(facts).collect()))
    }
}

impl MetricRegistry {
    /// Number of a metric, which is added if it is new.
    ///
    /// # Errors
    /// One line, if its name is invalid, or there is one of another kind.
    pub(crate) fn add(&self, name: &str, kind: ScriptMetricKind, unit: MetricUnit) -> Result<usize, String> {
        let is_first = |c: char| c.is_ascii_alphabetic() || c == '_';
        let is_valid = name.starts_with(is_first)
            && name.len() <= 128
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_valid {
            return Err(format!(
                "invalid metric name '{name}'; use letters, digits and '_', at most 128, no digit first"
            ));
        }
        let mut all = lock(&self.0);
        if let Some(known) = all.iter().position(|facts| facts.name == name) {
            let facts = &all[known];
            if (facts.kind, facts.unit) != (kind, unit) {
                return Err(format!("metric '{name}' is there already with another type"));
            }
            return Ok(known);
        }
        all.push(MetricFacts { name: name.to_owned(), kind, unit });
        Ok(all.len() - 1)
    }

    /// All metrics, in the order of their numbers.
    pub(crate) fn all(&self) -> Vec<MetricFacts> {
        lock(&self.0).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_metric_of_one_kind() {
        let registry = MetricRegistry::default();
        let own = registry.add("own", ScriptMetricKind::Trend, MetricUnit::Time).expect("new");
        assert_eq!(registry.add("own", ScriptMetricKind::Trend, MetricUnit::Time), Ok(own));
        assert!(registry.add("own", ScriptMetricKind::Rate, MetricUnit::Number).is_err());
        assert_eq!(registry.add("checks", ScriptMetricKind::Rate, MetricUnit::Number), Ok(BuiltIn::Checks as usize));
        for invalid in ["", "1a", "a-b", "a b", "ä"] {
            assert!(registry.add(invalid, ScriptMetricKind::Rate, MetricUnit::Number).is_err(), "{invalid}");
        }
        assert_eq!(registry.all()[BuiltIn::VusMax as usize].name, "vus_max");
    }
}
