//! A request through the gate: find its route, know its deadline, call its upstream, answer.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::request::Parts;
use http::uri::Scheme;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prometheus_client::registry::Registry;

use super::answers::{self, Speaks};
use super::current::{Current, Known};
use super::headers;
use super::metrics::Metrics;
use super::otlp::{CallFacts, Pen};
use super::routes::Found;
use super::setup::Route;
use super::sharing::Sharing;
use super::tracing::{Traced, Tracer};
use crate::call::story::Story;
use crate::call::{Answer, AnswerBody, Ask, Engine, Failed, Reason};
use crate::decide::Nanos;
use crate::decide::admit::Priority;
use crate::http::client::{Client, Options as Connections, OutBody};
use crate::http::path::{PathRule, normal};
use crate::server::{self, Body, Reply, Taken, Timer, Turn};

/// The gate, for all event loops.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) current: Arc<Current>,
    pub(super) options: super::Options,
    /// Where traces go, and of how many calls.
    pub(super) pen: Option<(Pen, f64)>,
    /// Whether an event loop looks after the hosts' health already.
    pub(super) checked: AtomicBool,
    /// With whom limits are shared.
    pub(super) sharing: Option<Arc<Sharing>>,
}

/// What one event loop has of it.
#[derive(Debug)]
pub(super) struct Local {
    engine: Engine,
    known: Known,
    tracer: Option<Tracer>,
}

impl server::Service for Service {
    type Local = Local;

    fn settle(&self, timer: &Timer) -> io::Result<Local> {
        let client = Client::new(timer.clone(), Connections::default());
        let engine = Engine::new(client.clone(), timer.clone(), self.options.seed);
        tokio::task::spawn_local(look_after(client, timer.clone()));
        if !self.checked.swap(true, Ordering::Relaxed) {
            super::checks::start(Arc::clone(&self.current), engine.clone());
        }
        let tracer = self.pen.as_ref().map(|(pen, share)| Tracer::new(pen.clone(), *share, timer.clock()));
        Ok(Local { engine, known: self.current.known(timer.clock()), tracer })
    }

    fn count(&self, registry: &mut Registry) {
        let (current, sharing) = (Arc::clone(&self.current), self.sharing.clone());
        registry.register_collector(Box::new(Metrics { current, sharing }));
    }

    fn page_path<'p>(&self, path: &'p str) -> Cow<'p, str> {
        normal(path, PathRule::default()).unwrap_or(Cow::Borrowed(path))
    }

    async fn answer(&self, local: &Local, request: Request<Incoming>, turn: &Turn) -> Reply {
        let setup = local.known.get(&self.current);
        let (mut parts, body) = request.into_parts();
        let headers = std::mem::take(&mut parts.headers);
        let speaks = Speaks::of(&headers);
        let bad = |why: &str| speaks.own(answers::text(StatusCode::BAD_REQUEST, why)).into();
        let host = match check_scheme(&parts).and_then(|()| named_host(&parts, &headers)) {
            Ok(host) => host,
            Err(why) => return bad(why),
        };
        let path = match normal(parts.uri.path(), setup.paths) {
            Ok(path) => path,
            Err(doubt) => return bad(&format!("the path can be read in two ways: {doubt}")),
        };
        let (route, captures) = match setup.table.find(&parts.method, host.as_deref(), &path) {
            Found::Route { index, captures } => (&setup.routes[index], captures),
            Found::Method { allow } => return speaks.own(answers::not_allowed(&allow)).into(),
            Found::Nothing => {
                return speaks.own(answers::text(StatusCode::NOT_FOUND, "no route leads there")).into();
            }
        };
        let own = match route.own_deadline(&captures, parts.uri.query()) {
            Ok(own) => own,
            Err(refusal) => return speaks.own(refusal.response()).into(),
        };
        let target = route.target(&captures, &path, &parts.uri);
        let tracer = local.tracer.as_ref();
        let visit = Visit { service: self, engine: &local.engine, route, turn, tracer, speaks };
        let (priority, refusal) = route.standing.of(local.engine.timer().now(), &headers, &captures, turn.peer().ip());
        if let Some(refusal) = refusal {
            let failed = local.engine.refuse(&route.plan, priority, turn.began(), refusal);
            return visit.refused(&parts, &headers, failed);
        }
        visit.make(&parts, headers, body, own, &target, priority).await
    }
}

/// Closes connections that idled for too long, once a second.
async fn look_after(client: Client, timer: Timer) {
    loop {
        timer.sleep(Nanos::SECOND).await;
        client.sweep(timer.now());
    }
}

/// What stands in the target as a scheme is what is spoken here (RFC 9110, 7.4). Over HTTP/2 it is the proxy's word, which
/// may have ended TLS (RFC 9113, 8.3.1).
fn check_scheme(parts: &Parts) -> Result<(), &'static str> {
    match parts.uri.scheme() {
        Some(scheme) if *scheme == Scheme::HTTPS && parts.version == Version::HTTP_2 => Ok(()),
        Some(scheme) if *scheme != Scheme::HTTP => Err("the target's scheme is not the one that is spoken here: http"),
        _ => Ok(()),
    }
}

/// The host that a request is for (RFC 9112, 3.2).
fn named_host<'a>(parts: &'a Parts, headers: &'a HeaderMap) -> Result<Option<Cow<'a, str>>, &'static str> {
    let mut named = headers.get_all(header::HOST).iter();
    let first = named.next();
    if named.next().is_some() {
        return Err("more than one Host header");
    }
    if let Some(authority) = parts.uri.authority() {
        // User and password have no place here (RFC 9110, 4.2.4), and the next one might take them for the host.
        let fine = headers::is_host(authority.as_str().as_bytes());
        return if fine { Ok(Some(authority.host().into())) } else { Err("the target's host is none") };
    }
    match first {
        None if parts.version == Version::HTTP_11 => Err("no Host header"),
        None => Ok(None),
        Some(host) => match host.to_str() {
            Ok(host) if headers::is_host(host.as_bytes()) => Ok(Some(host.into())),
            _ => Err("the Host header is no host"),
        },
    }
}

/// One request that has found its route.
struct Visit<'a> {
    service: &'a Service,
    engine: &'a Engine,
    route: &'a Route,
    turn: &'a Turn,
    tracer: Option<&'a Tracer>,
    speaks: Speaks,
}

impl Visit<'_> {
    async fn make(
        &self,
        parts: &Parts,
        mut headers: HeaderMap,
        body: Incoming,
        own: Option<Nanos>,
        target: &str,
        priority: Priority,
    ) -> Reply {
        let began = self.turn.began();
        let upgrade = headers::upgrade(&headers).filter(|_| parts.version == Version::HTTP_11);
        let said = self.said(&headers);
        // The policy's, or an earlier one that the caller gives.
        let deadline = began + [said, own].into_iter().flatten().fold(self.route.plan.policy.deadline, Nanos::min);
        let spread = self.engine.spread();
        if !body.is_end_stream()
            && let Some(failed) = self.engine.turns_away(&self.route.plan, priority, spread, deadline)
        {
            return self.refused(parts, &headers, failed);
        }
        let body = match self.body(parts, body, deadline).await {
            Ok(body) => body,
            Err(answer) => return self.speaks.own(answer).into(),
        };
        let traced = self.tracer.and_then(|tracer| tracer.begin(&headers));
        if traced.is_some() {
            headers.remove("traceparent");
        }
        if said.is_some() {
            for (name, _) in &self.route.caller_deadlines {
                headers.remove(name);
            }
        }
        self.clean(parts, &mut headers, upgrade.as_ref());
        let ask = Ask {
            plan: &self.route.plan,
            method: &parts.method,
            target,
            headers: &headers,
            deadline,
            upgrade: upgrade.is_some(),
            trace: traced.map(|traced| traced.context),
            priority,
            spread,
        };
        let gone = |story: Story| {
            if self.turn.is_logged() {
                self.turn.tell(story.json());
            }
            self.report(&self.facts(parts, &headers, traced, (None, "gone")), &story);
        };
        let ended = self.engine.call_telling(&ask, body, &gone).await;
        if !matches!(ended, Err(Failed { reason: Reason::Refused(_), .. })) {
            self.route.standing.accepted(self.engine.timer().now());
        }
        self.conclude(parts, &headers, traced, ended, upgrade.is_some())
    }

    /// There is no call.
    fn refused(&self, parts: &Parts, headers: &HeaderMap, failed: Failed) -> Reply {
        let traced = self.tracer.and_then(|tracer| tracer.begin(headers));
        self.conclude(parts, headers, traced, Err(failed), false)
    }

    /// Tells what became of a call, and makes it an answer.
    fn conclude(
        &self,
        parts: &Parts,
        headers: &HeaderMap,
        traced: Option<Traced>,
        ended: Result<Answer, Failed>,
        upgrade: bool,
    ) -> Reply {
        let (story, verdict) = match &ended {
            Ok(answer) => (&answer.story, "won"),
            Err(failed) if failed.reason == Reason::Late => (&failed.story, "late"),
            Err(Failed { reason: Reason::Refused(_), story, .. }) => (story, "refused"),
            Err(failed) => (&failed.story, "failed"),
        };
        if self.turn.is_logged() {
            self.turn.tell(story.json());
        }
        let told = (traced.is_some() || self.service.options.trace.is_some()).then(|| story.clone());
        let reply = match ended {
            Ok(answer) => self.success(answer, upgrade),
            Err(failed) => self.failure(failed).into(),
        };
        if let Some(story) = told {
            let status = reply.status().map(|status| status.as_u16());
            self.report(&self.facts(parts, headers, traced, (status, verdict)), &story);
        }
        reply
    }

    fn facts<'a>(
        &'a self,
        parts: &'a Parts,
        headers: &'a HeaderMap,
        traced: Option<Traced>,
        (status, verdict): (Option<u16>, &'static str),
    ) -> CallFacts<'a> {
        CallFacts {
            trace_id: traced.map_or(0, |traced| traced.context.trace_id),
            span_id: traced.map_or(0, |traced| traced.context.span_id),
            parent: traced.and_then(|traced| traced.parent),
            route: Some(&self.route.name),
            method: &parts.method,
            path: parts.uri.path_and_query().map_or("*", |both| both.as_str()),
            host: headers.get(header::HOST).and_then(|host| host.to_str().ok()),
            status,
            verdict,
            began: self.turn.began(),
            ended: self.turn.now(),
        }
    }

    /// Tells whoever wants to hear of every call.
    fn report(&self, call: &CallFacts<'_>, story: &Story) {
        if let Some(tracer) = self.tracer.filter(|_| call.trace_id != 0) {
            tracer.tell(call, story);
        }
        if let Some(tell) = &self.service.options.trace {
            let CallFacts { method, path, began, ended, .. } = call;
            let status = call.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
            let why = match call.verdict {
                "late" => ": the deadline has come",
                "refused" => ": there is too much",
                "failed" => ": no attempt succeeded",
                "gone" if self.turn.is_given_up() => ": the gate has ended the connection",
                "gone" => ": the caller has left",
                _ => "",
            };
            let took = (*ended - *began).as_millis_f64();
            tell.say(&format!("{method} {path} -> {status} after {took:.1} ms{why}\n{story}"));
        }
    }

    /// How much time the caller's headers leave: the least of what they say.
    fn said(&self, headers: &HeaderMap) -> Option<Nanos> {
        let all = self.route.caller_deadlines.iter();
        // What cannot be read says nothing, but must not go on beside what we say.
        all.filter_map(|(name, form)| {
            headers.get(name).map(|value| form.read(value.as_bytes()).unwrap_or(Nanos::NEVER))
        })
        .min()
    }

    /// The request's body, kept if it may have to be sent again.
    async fn body(&self, parts: &Parts, body: Incoming, deadline: Nanos) -> Result<OutBody, Response<Body>> {
        if body.is_end_stream() {
            return Ok(OutBody::Empty);
        }
        // A body of unknown length may be one that goes on while it is answered.
        let kept = body.size_hint().exact().is_some() || self.route.repeats(&parts.method);
        let most = if kept { self.route.buffer } else { 0 };
        let taken = tokio::select! {
            biased;
            taken = self.turn.take(body, most) => taken,
            () = self.turn.sleep_until(deadline), if deadline < Nanos::NEVER => return Err(self.route.late()),
        };
        match taken {
            Ok(Taken::Whole(bytes)) => Ok(OutBody::Bytes(bytes)),
            Ok(Taken::Longer(upload)) => Ok(OutBody::Stream(Box::pin(upload))),
            Err(_) => Err(answers::text(StatusCode::BAD_REQUEST, "the body broke off")),
        }
    }

    /// Makes the request's headers those of the upstream's.
    fn clean(&self, parts: &Parts, headers: &mut HeaderMap, upgrade: Option<&HeaderValue>) {
        let route = self.route;
        headers::end_here(headers);
        headers.remove(header::EXPECT);
        headers::trailers_only(headers);
        if parts.version == Version::HTTP_2 {
            headers::one_cookie(headers);
        }
        if route.plan.success.looks_into_bodies() {
            // They are looked at as they are sent.
            headers.remove(header::ACCEPT_ENCODING);
        }
        if let Some(protocol) = upgrade {
            headers.insert(header::UPGRADE, protocol.clone());
        }
        if let Some(authority) = parts.uri.authority() {
            // What stands in the target counts, whatever the header says (RFC 9112, 3.2.2).
            if let Ok(host) = HeaderValue::try_from(authority.as_str()) {
                headers.insert(header::HOST, host);
            }
        }
        let host = headers.get(header::HOST).cloned();
        let trusted = route.proxies.contains(self.turn.peer().ip());
        headers::forwarded(headers, self.turn.client(), host.as_ref(), trusted);
        route.rewrite_request(headers);
    }

    fn success(&self, answer: Answer, upgrade: bool) -> Reply {
        let Answer { mut head, body, .. } = answer;
        if head.status == StatusCode::SWITCHING_PROTOCOLS && upgrade {
            let Some(tunnel) = body.upgraded() else {
                let answer = answers::text(StatusCode::BAD_GATEWAY, "the upstream did not switch protocols");
                return self.speaks.own(answer).into();
            };
            let mut switch = Response::new(Body::empty());
            *switch.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            *switch.headers_mut() = head.headers;
            headers::without_content(StatusCode::SWITCHING_PROTOCOLS, switch.headers_mut());
            return Reply::Switch(switch, Box::new(tunnel));
        }
        headers::end_here(&mut head.headers);
        headers::without_content(head.status, &mut head.headers);
        self.route.rewrite_answer(&mut head.headers);
        let body = match self.route.merge() {
            Some(merge) => body.with_whole(|bytes| merge.extended(bytes)).inspect(|_| {
                head.headers.remove(header::CONTENT_LENGTH);
            }),
            None => Err(body),
        };
        let body = body.unwrap_or_else(|body| body);
        head.version = Version::HTTP_11;
        Response::from_parts(head, carried(body)).into()
    }

    fn failure(&self, failed: Failed) -> Response<Body> {
        let Failed { reason, last, story } = failed;
        match reason {
            Reason::Late => return self.speaks.own(self.route.late()),
            Reason::Refused(refusal) => return self.speaks.own(self.route.refused(refusal)),
            Reason::AllFailed => {}
        }
        if let Some(own) = answers::bad_request(&story).or_else(|| self.route.failed()) {
            return self.speaks.own(own);
        }
        match last {
            Some((mut head, body)) => {
                headers::end_here(&mut head.headers);
                headers::without_content(head.status, &mut head.headers);
                self.route.rewrite_answer(&mut head.headers);
                head.version = Version::HTTP_11;
                Response::from_parts(head, carried(body))
            }
            None => self.speaks.own(answers::no_answer(&story)),
        }
    }
}

fn carried(body: AnswerBody) -> Body {
    match body {
        AnswerBody::Whole(bytes) => bytes.into(),
        AnswerBody::Coming(_) => Body::made(body.map_err(Into::into)),
    }
}
