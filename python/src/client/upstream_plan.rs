//! Plan of the calls to one upstream, and its key.

use std::sync::Arc;

use tokio::sync::Semaphore;
use weir::call::CallPlan;

/// Plan of the calls with one policy to one upstream.
#[derive(Debug)]
pub(crate) struct UpstreamPlan {
    pub(crate) plan: CallPlan,
    /// Host and port, as attempts show them.
    pub(crate) upstream_name: Arc<str>,
    /// Whether the caller has defined success: a response that does not match is then a failure of the call.
    pub(crate) strict: bool,
    /// Permits of the concurrent calls of the client; `None` is unlimited.
    pub(crate) permits: Option<Arc<Semaphore>>,
}

/// Whether TLS is used, host and port.
pub(crate) type OriginKey = (bool, String, u16);
