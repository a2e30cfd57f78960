//! Plans of scenarios.

use super::http2::http2;
use super::load_frame::LoadFrame;
use super::requests::keeps_alive;
use super::{AgentPosition, LoadPlan, Pacing, PlanError};
use crate::event_streams::StreamOptions;
use crate::grpc::GrpcCalls;
use crate::options::Options;
use crate::steps::{ResolvedOrigin, ScenarioMix, ScenarioSource, target_of, without_user};
use weir_net::target::Target;

/// Maximum number of connections of a user: one for each host of its scenario, as a browser's with requests one after
/// the other.
const MAX_HOSTS_PER_USER: u64 = 16;

impl LoadPlan {
    /// Validates a load of scenarios: compiles them and resolves their hosts.
    pub(super) fn of_scenarios(options: &Options, position: AgentPosition) -> Result<Self, PlanError> {
        check_conflicts(options)?;
        let are_calls = options.grpc.is_call() || options.scenarios.iter().any(|source| source.made_for.is_some());
        let grpc = are_calls.then(|| GrpcCalls::of(None, options.grpc.message_interval));
        let mix = ScenarioMix::compile(options, keeps_alive(options), options.seed.unwrap_or(0))?;
        let frame = LoadFrame::of(options)?;
        let until = frame.length.of_iterations(&frame.pacing);
        mix.check_loop(matches!(frame.pacing, Pacing::Closed(_)).then_some(frame.users))?;
        let data_end = data_end(&mix, &frame.pacing, frame.length.requests);
        let hosts = u64::try_from(mix.origins().count()).unwrap_or(1).clamp(1, MAX_HOSTS_PER_USER);
        let first = mix.origins().next();
        let (target, origin) = match first {
            Some((origin, address)) => (target_of(origin), address.clone()),
            // Only variables name hosts: whether they respond shows in the run.
            None => (Target::of_host(false, "localhost", 80), ResolvedOrigin::new(Vec::new().into(), None)),
        };
        let target = Target { url: shown_url(options, &target), ..target };
        let base = frame.plan(options, target, origin, position)?;
        Ok(Self {
            method: shown_method(options),
            connections: base.users.saturating_mul(hosts),
            until,
            limit: data_end.as_ref().map(|(iterations, _)| *iterations).or(base.limit),
            data_end: data_end.map(|(_, name)| name),
            http2: http2(options, None, true)?.map(|http2| http2.for_calls(grpc.is_some())),
            grpc,
            // A step that ends its response by its events needs them to be read.
            streams: options.streams.or_else(|| (!mix.stream_ends().is_empty()).then(StreamOptions::default)),
            scenarios: Some(mix),
            ..base
        })
    }
}

/// Number of iterations that rows of data allow, and the file that limits them, if nothing ends the load before.
pub(super) fn data_end(mix: &ScenarioMix, pacing: &Pacing, requests: Option<u64>) -> Option<(u64, String)> {
    let (iterations, name) = mix.data_end()?;
    let of_loops = match pacing {
        Pacing::Closed(users) => users.loops.map(|loops| loops.saturating_mul(users.count)),
        Pacing::Open(_) | Pacing::Recorded => None,
    };
    let is_first = requests.into_iter().chain(of_loops).all(|limit| iterations < limit);
    is_first.then(|| (iterations, name.to_owned()))
}

/// Scenarios and their host, for the result.
fn shown_url(options: &Options, target: &Target) -> String {
    if options.grpc.is_call() {
        return options.grpc.shown_url(String::new());
    }
    let calls = options.scenarios.iter().filter(|source| source.made_for.is_some());
    let calls: Vec<&str> = calls.map(ScenarioSource::scenario_name).collect();
    if !calls.is_empty() {
        let scheme = if target.tls { "grpcs" } else { "grpc" };
        return format!("{} at {scheme}://{}", calls.join(", "), target.host_header());
    }
    if let Some(source) = options.scenarios.iter().find(|source| source.request_line().is_some()) {
        return source.request_line().map_or_else(|| target.url.clone(), |(_, url)| without_user(url));
    }
    let mut names: Vec<&str> = options.scenarios.iter().map(ScenarioSource::file_name).collect();
    names.dedup();
    format!("{} at {}", names.join(", "), target.url.trim_end_matches('/'))
}

/// Method of a single request; steps of files have their own.
fn shown_method(options: &Options) -> String {
    let line = options.scenarios.first().and_then(ScenarioSource::request_line);
    line.map_or_else(String::new, |(method, _)| method.to_owned())
}

fn check_conflicts(options: &Options) -> Result<(), PlanError> {
    let rules = [
        (options.method.is_some(), "--method and --scenario cannot be combined; each step has its method"),
        (!options.bodies.is_empty(), "--body and --scenario cannot be combined; each step has its body"),
        (
            options.pipeline.unwrap_or(1) > 1,
            "--pipeline cannot be used with scenarios, templates and checks; a user waits for each response",
        ),
    ];
    rules.into_iter().find(|(broken, _)| *broken).map_or(Ok(()), |(_, why)| Err(PlanError::Conflict(why)))
}
