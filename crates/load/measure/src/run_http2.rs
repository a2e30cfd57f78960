//! HTTP/2 of a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::http2_counts::Http2Counts;
use weir_histogram::percentiles::Percentiles;

/// HTTP/2 of a run's connections, warm-up included.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunHttp2 {
    /// Requested maximum number of streams of a connection.
    pub streams: u64,
    /// Lowest maximum that the service permitted; `None` if it has no limit.
    pub permitted_streams: Option<u64>,
    /// Time from the transport (TCP, or TLS) to the service's settings; part of the time to connect.
    pub settings_ms: Percentiles,
    /// Number of connections that the service ended by GOAWAY.
    pub goaways: u64,
    /// Requests that were sent again on another connection, since the service had not processed them (RFC 9113 section
    /// 8.7). Each counts once, from its intended start to its end.
    pub resent: u64,
    /// Streams that ended without a whole response, by error code (RFC 9113 section 7).
    pub errors: BTreeMap<String, u64>,
}

impl RunHttp2 {
    /// HTTP/2 of these counts, with a maximum of `streams`.
    pub fn of(streams: u64, counts: &Http2Counts) -> Self {
        Self {
            streams,
            permitted_streams: Some(counts.permitted).filter(|permitted| *permitted > 0),
            settings_ms: counts.settings.percentiles(),
            goaways: counts.goaways,
            resent: counts.resent,
            errors: counts.errors.clone(),
        }
    }
}
