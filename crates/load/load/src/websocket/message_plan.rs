//! Messages of a load over WebSocket, validated.

use std::borrow::Cow;

use super::options::{DeflateChoice, WebSocketOptions};
use super::reply_query::ReplyQuery;
use crate::event_streams::StreamOptions;
use crate::options::Options;
use crate::plan::PlanError;
use crate::steps::ScenarioMix;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_net::target::Target;
use weir_net::wire::{WireRequest, parse_header};
use weir_request::url_text::UrlText;
use weir_websocket::deflate::{DeflateAgreement, Deflater};
use weir_websocket::frame::Opcode;
use weir_websocket::handshake::{HandshakeKey, HandshakeOffer, KEY_TEXT_BYTES};

/// Messages of a load over WebSocket.
#[derive(Debug)]
pub struct MessagePlan {
    /// Request of the upgrade, with any key.
    request: Vec<u8>,
    /// Position of the key in it.
    key_at: usize,
    /// What it offers.
    pub offer: HandshakeOffer,
    /// Messages to choose from.
    pub messages: Vec<PlannedMessage>,
    /// The same with templates; none if they have none.
    pub(crate) templates: Option<ScenarioMix>,
    /// Whether rendered messages are binary whatever they are.
    pub(crate) is_binary: bool,
    /// Messages that each connection begins with.
    pub first_messages: Vec<PlannedMessage>,
    /// Number of messages that are awaited after each of these.
    pub first_replies: u64,
    /// Part of a message that its reply repeats; replies come in order without one.
    pub(crate) reply: Option<ReplyQuery>,
    /// Whether connections only listen: how they are read as streams.
    pub listens: Option<StreamOptions>,
    /// Time between two pings of a connection.
    pub ping_interval: Option<Nanos>,
    /// Time over which the connections of an open loop are made.
    pub ramp_up: Nanos,
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedMessage {
    /// Text or binary.
    pub opcode: Opcode,
    /// Content.
    pub data: Vec<u8>,
    /// The same, compressed; empty without compression.
    pub compressed: Vec<u8>,
    /// Key that its reply repeats.
    pub key: Option<u64>,
}

/// Maximum length of a received message, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: u64 = 64 << 20;

/// Whether a URL is one of `ws` or `wss`.
pub fn is_websocket_url(url: &str) -> bool {
    UrlText::of(url)
        .scheme
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("ws") || scheme.eq_ignore_ascii_case("wss"))
}

/// URL of the upgrade's request: `ws` is `http`, and `wss` is `https`.
pub(crate) fn http_url(url: &str) -> Cow<'_, str> {
    match UrlText::of(url).scheme {
        Some(scheme) if is_websocket_url(url) => {
            let secure = if scheme.len() == "wss".len() { "s" } else { "" };
            format!("http{secure}{}", &url[scheme.len()..]).into()
        }
        _ => url.into(),
    }
}

/// Kind of a message's frame: binary if it is asked for, or if it is not UTF-8.
pub(crate) fn opcode_of(data: &[u8], is_binary: bool) -> Opcode {
    if !is_binary && std::str::from_utf8(data).is_ok() { Opcode::Text } else { Opcode::Binary }
}

impl MessagePlan {
    /// Plan of the options; `headers` are those of the request, credentials included.
    pub(crate) fn new(options: &Options, target: &Target, headers: &[String]) -> Result<Self, PlanError> {
        check(options)?;
        let own = &options.websocket;
        let offer = HandshakeOffer {
            subprotocols: own.subprotocols.clone(),
            // A compressor for each connection would take hundreds of KiB: each message is compressed by itself.
            deflate: own.deflate.map(|choice| DeflateAgreement {
                server_no_context: choice == DeflateChoice::NoContext,
                client_no_context: true,
            }),
        };
        let (request, key_at) = upgrade_request(&offer, target, headers)?;
        let reply = own.reply.as_deref().map(ReplyQuery::parse).transpose();
        Ok(Self {
            request,
            key_at,
            offer,
            messages: Vec::new(),
            templates: None,
            is_binary: own.is_binary,
            first_messages: Vec::new(),
            first_replies: own.first_replies.unwrap_or(1),
            reply: reply.map_err(|why| PlanError::Value("reply", why))?,
            listens: None,
            ping_interval: own.ping_interval,
            ramp_up: Nanos::ZERO,
        })
    }

    /// Adds messages as they are.
    ///
    /// # Errors
    /// A message without the part that its reply repeats.
    pub(crate) fn add_messages(&mut self, messages: Vec<Vec<u8>>) -> Result<(), PlanError> {
        for data in messages {
            let key = self.reply.as_ref().map(|query| self.key_of(query, &data)).transpose()?;
            let compressed = self.offer.deflate.map(|_| compressed(&data)).unwrap_or_default();
            self.messages.push(PlannedMessage { opcode: opcode_of(&data, self.is_binary), data, compressed, key });
        }
        Ok(())
    }

    fn key_of(&self, query: &ReplyQuery, data: &[u8]) -> Result<u64, PlanError> {
        query.key(data).ok_or_else(|| {
            let beginning: String = String::from_utf8_lossy(data).chars().take(40).collect();
            let why = format!("the message '{beginning}' has no such value; write it into the message");
            PlanError::Value("reply", why)
        })
    }

    /// Request of an upgrade, and its key: the `number`th of a thread.
    pub(crate) fn upgrade_request(&self, seed: u64, number: u64) -> (Vec<u8>, HandshakeKey) {
        let mut random = SeededRng::new(seed, (71 << 48) ^ number);
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&random.bits().to_le_bytes());
        bytes[8..].copy_from_slice(&random.bits().to_le_bytes());
        let key = HandshakeKey::of(bytes);
        let mut request = self.request.clone();
        request[self.key_at..self.key_at + KEY_TEXT_BYTES].copy_from_slice(key.text());
        (request, key)
    }
}

/// Content compressed by itself.
fn compressed(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    Deflater::new(false).deflate(data, &mut out);
    out
}

/// Request of the upgrade, and the position of its key.
fn upgrade_request(offer: &HandshakeOffer, target: &Target, headers: &[String]) -> Result<(Vec<u8>, usize), PlanError> {
    let own = ["upgrade", "connection", "sec-websocket-key", "sec-websocket-version"];
    let mut lines = vec!["Accept:".to_owned()];
    for line in headers {
        let (name, _) = parse_header(line)?;
        if own.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            let why = format!("'{name}' is set by WebSocket itself; leave it out");
            return Err(PlanError::Value("header", why));
        }
        if name.eq_ignore_ascii_case("sec-websocket-protocol") {
            return Err(PlanError::Conflict("write subprotocols with --subprotocol, not with -H"));
        }
        lines.push(line.clone());
    }
    let mut request = WireRequest::build("GET", &target.path, &target.host_header(), &lines, &[], true)?.bytes;
    // The empty line comes last.
    request.truncate(request.len() - 2);
    let mut key_at = 0;
    for (nth, (name, value)) in offer.header_lines(&HandshakeKey::of([0; 16])).into_iter().enumerate() {
        request.extend_from_slice(format!("{name}: ").as_bytes());
        if nth == 0 {
            key_at = request.len();
        }
        request.extend_from_slice(value.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    Ok((request, key_at))
}

/// Rejects what does not go with WebSocket.
fn check(options: &Options) -> Result<(), PlanError> {
    let WebSocketOptions { subprotocols, first_messages, first_replies, reply, listens, .. } = &options.websocket;
    let has_rate = options.rate.is_some() || !options.stages.is_empty();
    let rules = [
        (options.method.is_some(), "--method cannot be used with a ws:// URL; an upgrade is a GET"),
        (options.no_keepalive, "--no-keepalive cannot be used with a ws:// URL; a connection carries many messages"),
        (options.http2.is_given(), "--http2 and --h2c cannot be used with a ws:// URL; it is upgraded from HTTP/1.1"),
        (
            options.http2.streams.is_some(),
            "--streams is for HTTP/2; messages in flight per WebSocket connection are --pipeline",
        ),
        (
            options.streams.is_some() && !listens,
            "--stream cannot be used with a ws:// URL; read pushed messages with --listen",
        ),
        (!options.checks.is_empty(), "--check cannot be used with a ws:// URL"),
        (options.success.is_some(), "--success cannot be used with a ws:// URL"),
        (options.traces_requests, "--trace cannot be used with a ws:// URL; messages have no headers"),
        (
            options.bodies.is_empty() && !listens,
            "a ws:// URL needs a message; write e.g. -b '{\"type\":\"ping\"}', or --listen",
        ),
        (
            !options.bodies.is_empty() && *listens,
            "--listen sends no messages; to begin each connection with a message, write --first-message",
        ),
        (reply.is_some() && *listens, "--reply and --listen cannot be combined; what is pushed is not a reply"),
        (has_rate && *listens, "--listen is a closed loop of connections; open them over time with --ramp-up"),
        (options.websocket.ping_interval == Some(Nanos::ZERO), "--ping-interval: invalid time 0; write e.g. 10s"),
        (first_messages.is_empty() && first_replies.is_some(), "--first-replies needs --first-message"),
        (
            options.warmup.is_some() && *listens,
            "--warmup and --listen cannot be combined; a connection that listens is one request",
        ),
    ];
    if let Some((_, why)) = rules.into_iter().find(|(is_broken, _)| *is_broken) {
        return Err(PlanError::Conflict(why));
    }
    let is_token = |name: &String| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    match subprotocols.iter().find(|name| !is_token(name)) {
        Some(name) => {
            let why = format!("invalid subprotocol '{}'; write e.g. graphql-transport-ws", name.escape_debug());
            Err(PlanError::Value("subprotocol", why))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_of_the_upgrade_is_that_of_http() {
        for (url, expected) in [
            ("ws://h/a", "http://h/a"),
            ("WSS://h:1/?b=ws://c", "https://h:1/?b=ws://c"),
            ("http://h/?u=ws://x", "http://h/?u=ws://x"),
            ("h:1", "h:1"),
        ] {
            assert_eq!(http_url(url), expected);
        }
    }
}
