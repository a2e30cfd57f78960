//! Options that do not go together.

use super::PlanError;
use super::requests::keeps_alive;
use crate::options::Options;

/// Rejects options that do not go together.
pub(super) fn check_conflicts(options: &Options) -> Result<(), PlanError> {
    let open = options.rate.is_some() || !options.stages.is_empty();
    let staged_users = !options.user_stages.is_empty();
    let users = options.users.is_some() || staged_users;
    let rules = [
        (
            options.rate.is_some() && !options.stages.is_empty(),
            "--rate and --stages cannot be combined; each stage has a rate",
        ),
        (
            staged_users && (options.users.is_some() || options.rate.is_some()),
            "--stages with users cannot be combined with --users and --rate; each stage has its own users",
        ),
        (
            staged_users && (options.ramp_up.is_some() || options.loops.is_some()),
            "--stages with users cannot be combined with --ramp-up and --loops; write a ramp as 0-50u/30s",
        ),
        (
            staged_users && (options.program.is_some() || options.http2.streams.unwrap_or(1) > 1),
            "--stages with users cannot be combined with scripts and --streams",
        ),
        (
            staged_users && options.requests.is_some(),
            "--stages with users and --requests cannot be combined; stages have lengths",
        ),
        (
            (!options.stages.is_empty() || staged_users) && options.duration.is_some(),
            "--duration and --stages cannot be combined; stages have lengths",
        ),
        (open && users, "--users is a closed loop, --rate and --stages are an open one; choose one"),
        (
            users && options.connections.is_some(),
            "--users and --connections cannot be combined; each user has one connection",
        ),
        (!users && (options.ramp_up.is_some() || options.loops.is_some()), "--ramp-up and --loops need --users"),
        (
            options.pipeline.unwrap_or(1) > 1 && options.no_keepalive,
            "--pipeline and --no-keepalive cannot be combined; pipelining needs open connections",
        ),
        (
            options.pipeline.unwrap_or(1) > 1 && !keeps_alive(options),
            "--pipeline and 'Connection: close' cannot be combined; pipelining needs open connections",
        ),
        (
            options.pipeline.unwrap_or(1) > 1 && users,
            "--pipeline and --users cannot be combined; a user waits for each response",
        ),
        (
            options.pipeline.unwrap_or(1) > 1 && options.traces_requests,
            "--pipeline and --trace cannot be combined; each request has a trace of its own",
        ),
        (
            options.unix_socket.is_some() && options.connect_to.is_some(),
            "--unix-socket and --connect-to cannot be combined",
        ),
        (
            options.pipeline.unwrap_or(1) > 1 && options.http2.is_given(),
            "--pipeline is for HTTP/1.1; HTTP/2 has --streams",
        ),
        (
            options.http2.streams.unwrap_or(1) > 1 && options.no_keepalive,
            "--streams and --no-keepalive cannot be combined; streams share open connections",
        ),
        (
            options.pipeline.unwrap_or(1) > 1 && options.streams.is_some(),
            "--pipeline and --stream cannot be combined; a stream would hold up those behind it",
        ),
        (options.spin && !open, "--spin is for an open loop (--rate, --stages)"),
    ];
    rules.into_iter().find(|(broken, _)| *broken).map_or(Ok(()), |(_, why)| Err(PlanError::Conflict(why)))
}
