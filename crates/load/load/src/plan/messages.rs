//! Plan of messages over WebSocket.

use super::requests::{authorization, read_body};
use super::{AgentPosition, DEFAULT_CONNECTIONS, LoadPlan, Pacing, PlanError};
use crate::options::Options;
use crate::steps::ScenarioSource;
use crate::websocket::{MessagePlan, WebSocketOptions, http_url, is_websocket_url};
use weir_base::Nanos;
use weir_net::target::Target;

/// Default maximum of messages in flight of a connection of an open loop, which waits for no reply.
const OPEN_IN_FLIGHT: u64 = 1000;

impl LoadPlan {
    /// Plan of a load over WebSocket; `None` if the URL is of HTTP.
    ///
    /// # Errors
    /// The first invalid option.
    pub(super) fn of_messages(options: &Options, position: AgentPosition) -> Result<Option<Self>, PlanError> {
        if !is_websocket_url(&options.url) {
            return match options.websocket.first_given() {
                Some(flag) => Err(PlanError::Value(flag, "it is for WebSocket; write a ws:// or wss:// URL".into())),
                None => Ok(None),
            };
        }
        check_scenario(options)?;
        let is_open = options.rate.is_some() || !options.stages.is_empty();
        let has_connections = options.has_connections();
        let count = options.connections.unwrap_or(DEFAULT_CONNECTIONS);
        // A closed loop of connections that are made one after the other is one of users.
        let is_ramped = has_connections && options.ramp_up.is_some();
        let http = Options {
            url: http_url(&options.url).into_owned(),
            websocket: WebSocketOptions::default(),
            no_template: true,
            pipeline: options.pipeline.or(is_open.then_some(OPEN_IN_FLIGHT)),
            connections: (has_connections && (is_open || !is_ramped)).then_some(count),
            users: if is_ramped && !is_open { Some(count) } else { options.users },
            ramp_up: if is_open { None } else { options.ramp_up },
            ..options.clone()
        };
        let target = Target::parse(&http.url)?;
        let mut headers = options.headers.clone();
        headers.extend(authorization(options, &target)?.map(|value| format!("Authorization: {value}")));
        let bodies = options.bodies.iter().map(read_body).collect::<Result<Vec<_>, _>>()?;
        let mut messages = MessagePlan::new(options, &target, &headers, bodies)?;
        messages.ramp_up = if is_open { options.ramp_up.unwrap_or_default().into() } else { Nanos::ZERO };
        let plan = Self::for_agent(&Options { headers: Vec::new(), auth: None, ..http }, position)?;
        let shown = target.url.trim_start_matches("http");
        let preconnect = match plan.pacing {
            Pacing::Open(_) if messages.ramp_up == Nanos::ZERO => plan.connections,
            _ => plan.preconnect,
        };
        Ok(Some(Self {
            target: Target { url: format!("ws{shown}"), ..plan.target },
            method: String::new(),
            requests: Vec::new(),
            preconnect,
            mask: options.secret_mask(),
            messages: Some(messages),
            ..plan
        }))
    }
}

/// Rejects what only requests of HTTP have.
fn check_scenario(options: &Options) -> Result<(), PlanError> {
    let rules = [
        (!options.scenarios.is_empty(), "a scenario does not go with a ws:// URL; its steps are requests of HTTP"),
        (options.program.is_some(), "a script does not go with a ws:// URL; its users send requests of HTTP"),
        (
            options.request_scenario != ScenarioSource::default(),
            "--variable and --data do not go with a ws:// URL; write the whole message with -b",
        ),
    ];
    rules.into_iter().find(|(is_broken, _)| *is_broken).map_or(Ok(()), |(_, why)| Err(PlanError::Conflict(why)))
}
