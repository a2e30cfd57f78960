//! HTTP/2 of a plan.

use super::{LoadPlan, PlanError};
use crate::http2::Http2Plan;
use crate::options::Options;
use weir_http2::request::RequestHead;
use weir_net::target::Target;
use weir_net::wire::WireRequest;

/// HTTP/2 as the options ask for it; `target` of the requests, if they have one. `shares_users`: users share connections.
pub(super) fn http2(
    options: &Options,
    target: Option<&Target>,
    shares_users: bool,
) -> Result<Option<Http2Plan>, PlanError> {
    let plan = options.http2.plan(shares_users)?;
    let Some(target) = target else { return Ok(plan) };
    let given = options.http2;
    if given.over_tls.is_some() && !target.tls && !given.cleartext {
        return Err(PlanError::Conflict("--http2 needs an https:// URL; --h2c is HTTP/2 without TLS"));
    }
    if given.cleartext && target.tls && given.over_tls.is_none() {
        return Err(PlanError::Conflict("--h2c is HTTP/2 without TLS; --http2 is for https:// URLs"));
    }
    Ok(plan)
}

/// Checks that requests can be sent over HTTP/2.
pub(super) fn check_heads(requests: &[WireRequest]) -> Result<(), PlanError> {
    for request in requests {
        let end = memchr::memmem::find(&request.bytes, b"\r\n\r\n").map_or(request.bytes.len(), |at| at + 4);
        let parsed = RequestHead::default().parse(&request.bytes[..end]);
        parsed.map_err(|error| PlanError::Value("http2", error.to_string()))?;
    }
    Ok(())
}

impl LoadPlan {
    /// Maximum number of open files that its connections need.
    pub(crate) fn open_files(&self) -> u64 {
        match &self.http2 {
            // Each thread has its users, and at most one connection that is not full.
            Some(http2) if http2.shares_users => {
                let hosts = self.connections / self.users.max(1);
                let connections = self.users.div_ceil(http2.streams as u64) + self.threads;
                connections.saturating_mul(hosts.max(1)).min(self.connections)
            }
            _ => self.connections,
        }
    }
}
