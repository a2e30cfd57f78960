//! Plan of messages over WebSocket.

use super::requests::{authorization, read_body};
use super::scenarios::data_end;
use super::{AgentPosition, DEFAULT_CONNECTIONS, LoadPlan, Pacing, PlanError};
use crate::options::{Options, RequestBodySource};
use crate::steps::{ScenarioMix, ScenarioSource, with_single_request};
use crate::websocket::{MessagePlan, PlannedMessage, WebSocketOptions, http_url, is_websocket_url, opcode_of};
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
            request_scenario: ScenarioSource::default(),
            no_template: true,
            streams: None,
            pipeline: options.pipeline.or(is_open.then_some(OPEN_IN_FLIGHT)),
            connections: (has_connections && (is_open || !is_ramped)).then_some(count),
            users: if is_ramped && !is_open { Some(count) } else { options.users },
            ramp_up: if is_open { None } else { options.ramp_up },
            ..options.clone()
        };
        let target = Target::parse(&http.url).map_err(|error| error.in_scheme("ws"))?;
        let mut headers = options.headers.clone();
        headers.extend(authorization(options, &target)?.map(|value| format!("Authorization: {value}")));
        let mut messages = MessagePlan::new(options, &target, &headers)?;
        messages.ramp_up = if is_open { options.ramp_up.unwrap_or_default().into() } else { Nanos::ZERO };
        messages.first_messages = first_messages(options)?;
        messages.listens = options.websocket.listens.then(|| options.streams.unwrap_or_default());
        let mut plan = Self::for_agent(&Options { headers: Vec::new(), auth: None, ..http.clone() }, position)?;
        messages.templates = templates(options, http, plan.seed)?;
        match &messages.templates {
            Some(mix) => {
                let users = matches!(plan.pacing, Pacing::Closed(_)).then_some(plan.users);
                mix.check_loop(users)?;
                if let Some((iterations, name)) = data_end(mix, &plan.pacing, plan.limit) {
                    (plan.limit, plan.data_end) = (Some(iterations), Some(name));
                }
            }
            None => {
                let bodies = options.bodies.iter().map(read_body).collect::<Result<Vec<_>, _>>()?;
                messages.add_messages(bodies)?;
            }
        }
        let shown = target.url.trim_start_matches("http");
        let preconnect = match plan.pacing {
            // What listens begins with its connection.
            _ if messages.listens.is_some() => 0,
            Pacing::Open(_) if messages.ramp_up == Nanos::ZERO => plan.connections,
            _ => plan.preconnect,
        };
        Ok(Some(Self {
            target: Target { url: format!("ws{shown}"), ..plan.target },
            method: String::new(),
            requests: Vec::new(),
            preconnect,
            streams: messages.listens,
            mask: options.secret_mask(),
            messages: Some(messages),
            ..plan
        }))
    }
}

fn first_messages(options: &Options) -> Result<Vec<PlannedMessage>, PlanError> {
    let WebSocketOptions { is_binary, first_messages, .. } = &options.websocket;
    let planned = |body: &RequestBodySource| {
        let data = read_body(body)?;
        Ok(PlannedMessage { opcode: opcode_of(&data, *is_binary), data, compressed: Vec::new(), key: None })
    };
    first_messages.iter().map(planned).collect()
}

/// Messages with templates, as bodies of steps; `None` if they have none. `http` are the options of the upgrade.
fn templates(options: &Options, http: Options, seed: u64) -> Result<Option<ScenarioMix>, PlanError> {
    if options.bodies.is_empty() {
        return Ok(None);
    }
    let as_request = Options {
        headers: Vec::new(),
        auth: None,
        request_scenario: options.request_scenario.clone(),
        no_template: options.no_template,
        pipeline: None,
        ..http
    };
    let with_steps = with_single_request(&as_request)?;
    if with_steps.scenarios.is_empty() {
        return Ok(None);
    }
    ScenarioMix::compile(&with_steps, true, seed).map(Some)
}

/// Rejects what only requests of HTTP have.
fn check_scenario(options: &Options) -> Result<(), PlanError> {
    let ScenarioSource { setup, teardown, pacing, .. } = &options.request_scenario;
    let has_braces = |text: &String| !options.no_template && text.contains("{{");
    let rules = [
        (!options.scenarios.is_empty(), "a scenario cannot be used with a ws:// URL; its steps are HTTP requests"),
        (
            options.program.is_some(),
            "a script cannot be used with a ws:// URL; write http://; Python users open ws:// with self.websocket()",
        ),
        (
            setup.is_some() || teardown.is_some(),
            "--setup and --teardown cannot be used with a ws:// URL; they send HTTP requests",
        ),
        (
            options.websocket.listens && options.request_scenario != ScenarioSource::default(),
            "--listen sends no messages; --variable and --data fill in messages of -b",
        ),
        (pacing.is_some(), "--pacing cannot be used with a ws:// URL; send messages at a --rate"),
        (
            has_braces(&options.url) || options.headers.iter().any(has_braces),
            "templates {{ work in messages; a ws:// URL and its headers have none",
        ),
    ];
    rules.into_iter().find(|(is_broken, _)| *is_broken).map_or(Ok(()), |(_, why)| Err(PlanError::Conflict(why)))
}
