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
            "--rate and --stages do not go together; a stage has its rate",
        ),
        (
            staged_users && (options.users.is_some() || options.rate.is_some()),
            "--stages of users do not go together with --users and --rate; a stage has its users",
        ),
        (
            staged_users && (options.ramp_up.is_some() || options.loops.is_some()),
            "--stages of users do not go together with --ramp-up and --loops; write a ramp as 0-50u/30s",
        ),
        (
            staged_users && (options.program.is_some() || options.http2.streams.unwrap_or(1) > 1),
            "--stages of users do not go together with scripts and --streams",
        ),
        (
            staged_users && options.requests.is_some(),
            "--stages of users and --requests do not go together; stages have lengths",
        ),
        (
            (!options.stages.is_empty() || staged_users) && options.duration.is_some(),
            "--duration and --stages do not go together; stages have lengths",
        ),
        (open && users, "--users is a closed loop, --rate and --stages are an open one; choose"),
        (
            users && options.connections.is_some(),
            "--users and --connections do not go together; each user has one connection",
        ),
        (!users && (options.ramp_up.is_some() || options.loops.is_some()), "--ramp-up and --loops need --users"),
        (
            options.pipeline.unwrap_or(1) > 1 && options.no_keepalive,
            "--pipeline and --no-keepalive do not go together; pipelining needs open connections",
        ),
        (
            options.pipeline.unwrap_or(1) > 1 && !keeps_alive(options),
            "--pipeline and 'Connection: close' do not go together; pipelining needs open connections",
        ),
        (
            options.pipeline.unwrap_or(1) > 1 && users,
            "--pipeline and --users do not go together; a user waits for each response",
        ),
        (
            options.pipeline.unwrap_or(1) > 1 && options.traces_requests,
            "--pipeline and --trace do not go together; each request has a trace of its own",
        ),
        (
            options.unix_socket.is_some() && options.connect_to.is_some(),
            "--unix-socket and --connect-to do not go together",
        ),
        (
            options.pipeline.unwrap_or(1) > 1 && options.http2.is_given(),
            "--pipeline is for HTTP/1.1; HTTP/2 has --streams",
        ),
        (
            options.http2.streams.unwrap_or(1) > 1 && options.no_keepalive,
            "--streams and --no-keepalive do not go together; streams share open connections",
        ),
        (
            options.pipeline.unwrap_or(1) > 1 && options.streams.is_some(),
            "--pipeline and --stream do not go together; a stream would hold up those behind it",
        ),
        (options.spin && !open, "--spin is for an open loop (--rate, --stages)"),
    ];
    rules.into_iter().find(|(broken, _)| *broken).map_or(Ok(()), |(_, why)| Err(PlanError::Conflict(why)))
}
