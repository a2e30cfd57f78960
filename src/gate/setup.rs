//! A configuration made ready: origins, upstreams, plans, the table of routes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use http::{HeaderMap, HeaderName, Method, Response, StatusCode, Uri, header};

use super::answers;
use super::config::{
    AnswerRule, Check, Config, DeadlineFrom, DeadlinePlace, HostRule, OwnAnswer, Proxies, Rewrite, RouteConfig,
    SuccessRule, UpstreamConfig,
};
use super::merge::Merge;
use super::rewrite;
use super::routes::{Captures, Routes};
use super::sharing::{Limit, Sharing, hash};
use super::standing::{Standing, Terms};
use crate::call::{Host, Places, Plan, Success, Upstream};
use crate::decide::Nanos;
use crate::decide::admit::{self, Refusal};
use crate::decide::budget::Ledger;
use crate::decide::callers::CallerRule;
use crate::decide::deadline::Form;
use crate::decide::hedge::Replay;
use crate::decide::policy::Budget;
use crate::http::client::{Origin, Reach};
use crate::http::path::PathRule;
use crate::http::target::Target;
use crate::http::tls::{Tls, TlsOptions};
use crate::server::Body;

/// A configuration made ready.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) table: Routes,
    /// How paths are read.
    pub(super) paths: PathRule,
    /// In the order of the configuration.
    pub(super) routes: Vec<Route>,
    pub(super) upstreams: Vec<(String, Service)>,
    /// By policy and upstream.
    budgets: HashMap<(String, String), Account>,
}

/// What the extra attempts of one policy's calls to one upstream may come to.
#[derive(Clone, Debug)]
struct Account {
    terms: Budget,
    ledger: Arc<Mutex<Ledger>>,
    /// Its number among limits that are shared.
    number: u64,
}

/// An upstream as the configuration has it.
#[derive(Clone, Debug)]
pub(super) struct Service {
    pub(super) hosts: Arc<Upstream>,
    pub(super) check: Option<Check>,
    /// What it was made from: a reload that leaves it alone keeps its connections and its health.
    made_from: UpstreamConfig,
    /// What its certificate files held, in short.
    certificates: u64,
}

/// A route made ready.
#[derive(Debug)]
pub(super) struct Route {
    /// For metrics and logs.
    pub(super) name: String,
    /// The name of its upstream.
    pub(super) upstream: String,
    pub(super) plan: Plan,
    pub(super) caller_deadlines: Vec<(HeaderName, Form)>,
    pub(super) buffer: usize,
    pub(super) proxies: Arc<Proxies>,
    pub(super) standing: Arc<Standing>,
    /// The number of its rate among limits that are shared, if it is.
    rate: Option<u64>,
    /// What its places are made from.
    limit: Option<admit::Terms>,
    deadline_from: Option<DeadlineFrom>,
    rewrite: Rewrite,
    answer: AnswerRule,
    merge: Option<Merge>,
}

impl Setup {
    /// Makes a configuration ready; what `before` has and this leaves alone is kept. Limits that are shared are to be
    /// told what is ours of them before it is used ([`Sharing::tell`]).
    ///
    /// # Errors
    /// What of it this machine does not have, in one line.
    pub(super) fn new(
        config: &Config,
        before: Option<&Self>,
        now: Nanos,
        sharing: Option<&Sharing>,
    ) -> Result<Self, String> {
        let table = Routes::new(config)?;
        let mut upstreams = Vec::new();
        for asked in &config.upstreams {
            let is_same = |kept: &&Service| kept.made_from == *asked && kept.certificates == digest(&asked.tls);
            let kept = before.and_then(|before| before.service(&asked.name)).filter(is_same);
            let service = match kept {
                Some(kept) => kept.clone(),
                None => Service::new(asked, now).map_err(|why| format!("upstream {}: {why}", asked.name))?,
            };
            upstreams.push((asked.name.clone(), service));
        }
        let mut setup = Self { table, paths: config.paths, routes: Vec::new(), upstreams, budgets: HashMap::new() };
        for asked in &config.routes {
            let upstream = setup.service(&asked.upstream).ok_or_else(|| format!("no upstream {}", asked.upstream))?;
            let mut route = Route::new(asked, Arc::clone(&upstream.hosts), &config.trusted_proxies, now, sharing)?;
            let of_this = |before: &&Route| before.name == route.name;
            if let Some(before) = before.and_then(|before| before.routes.iter().find(of_this)) {
                route.plan.counts = Arc::clone(&before.plan.counts);
                if before.limit == asked.limit {
                    route.plan.places.clone_from(&before.plan.places);
                }
                if before.standing.is_made_from(&Terms::of(asked, &config.trusted_proxies)) {
                    route.standing = Arc::clone(&before.standing);
                }
            }
            if let Some(terms) = asked.policy.policy.budget.filter(|_| asked.policy.policy.repeats()) {
                let key = (asked.policy.name.clone(), asked.upstream.clone());
                let kept = before.and_then(|before| before.account(&key, terms, &route.plan.upstream));
                let number = number_of_budget(&key, terms);
                let ledger = || if sharing.is_some() { Ledger::shared(terms) } else { Ledger::new(terms) };
                let fresh = || Account { terms, ledger: Arc::new(Mutex::new(ledger())), number };
                let account = setup.budgets.entry(key).or_insert_with(|| kept.unwrap_or_else(fresh));
                route.plan.ledger = Some(Arc::clone(&account.ledger));
            }
            setup.routes.push(route);
        }
        Ok(setup)
    }

    /// The limits that may be shared.
    pub(super) fn limits(&self) -> impl Iterator<Item = Limit<'_>> {
        let rates = self.routes.iter().filter_map(|route| Some(Limit::Rate(route.rate?, &route.standing)));
        rates.chain(self.budgets.values().map(|account| Limit::Budget(account.number, &account.ledger)))
    }

    /// What was spent of this budget counts on, as long as the upstream is the same.
    fn account(&self, key: &(String, String), terms: Budget, upstream: &Arc<Upstream>) -> Option<Account> {
        let same = self.service(&key.1).is_some_and(|kept| Arc::ptr_eq(&kept.hosts, upstream));
        self.budgets.get(key).filter(|kept| same && kept.terms == terms).cloned()
    }

    fn service(&self, name: &str) -> Option<&Service> {
        self.upstreams.iter().find(|(known, _)| known == name).map(|(_, service)| service)
    }
}

impl Service {
    fn new(asked: &UpstreamConfig, now: Nanos) -> Result<Self, String> {
        // Before they are used: what changes meanwhile is seen by the next reload.
        let certificates = digest(&asked.tls);
        let secure = asked.hosts.iter().any(|host| host.url.starts_with("https:"));
        let tls = if secure { Some(Tls::shared(&asked.tls).map_err(|error| error.to_string())?) } else { None };
        let mut hosts = Vec::new();
        for host in &asked.hosts {
            let target = Target::parse(&host.url).map_err(|error| error.to_string())?;
            let reach = Reach {
                socket: host.socket.clone(),
                tls: tls.clone(),
                server_name: asked.server_name.clone(),
                protocol: asked.protocol,
                connect_timeout: asked.connect_timeout,
                stall_timeout: asked.stall_timeout,
                keep_idle: Some(asked.keep_idle),
                most_connections: asked.max_connections,
            };
            let origin = Origin::new(&target, &reach).map_err(|error| error.to_string())?;
            hosts.push(Host { origin: Arc::new(origin), weight: host.weight });
        }
        let mut upstream = Upstream::new(hosts, asked.balance, asked.health).with_guard(asked.breaker, asked.throttle);
        if let Some(terms) = &asked.limit {
            upstream = upstream.with_admission(terms, now);
        }
        Ok(Self { hosts: Arc::new(upstream), check: asked.check.clone(), made_from: asked.clone(), certificates })
    }
}

/// What the files hold, as a number that is another one when they hold something else.
fn digest(tls: &TlsOptions) -> u64 {
    let mut hasher = DefaultHasher::new();
    for path in [&tls.cacert, &tls.cert, &tls.key] {
        path.as_ref().map(|path| std::fs::read(path).ok()).hash(&mut hasher);
    }
    hasher.finish()
}

impl Route {
    fn new(
        asked: &RouteConfig,
        upstream: Arc<Upstream>,
        proxies: &Arc<Proxies>,
        now: Nanos,
        sharing: Option<&Sharing>,
    ) -> Result<Self, String> {
        let policy = &asked.policy;
        let mut success = success(&policy.success)?;
        // What is merged into must be there whole.
        success.json |= !asked.answer.merge.is_empty();
        let mut plan = Plan::new(policy.policy.clone(), success, upstream);
        plan.places = asked.limit.as_ref().map(|terms| Arc::new(Places::new(terms, now)));
        plan.deadline_headers.clone_from(&policy.deadlines_out);
        let methods: Vec<&str> = asked.methods.iter().map(Method::as_str).collect();
        let parts = [&methods.join(","), asked.host.as_deref().unwrap_or_default(), &asked.path];
        let name = parts.iter().filter(|part| !part.is_empty()).copied().collect::<Vec<_>>().join(" ");
        let rate = sharing.and(asked.rate).map(|rule| number_of_rate(&name, &rule));
        let salt = sharing.map(|sharing| sharing.salt);
        Ok(Self {
            name,
            upstream: asked.upstream.clone(),
            plan,
            caller_deadlines: policy.deadlines_in.clone(),
            buffer: policy.buffer,
            proxies: Arc::clone(proxies),
            standing: Arc::new(Standing::new(Terms::of(asked, proxies), salt)),
            rate,
            limit: asked.limit.clone(),
            deadline_from: asked.deadline_from.clone(),
            rewrite: asked.rewrite.clone(),
            merge: Merge::new(&asked.answer.merge),
            answer: asked.answer.clone(),
        })
    }

    /// Whether a request of this method may be sent more than once.
    pub(super) fn repeats(&self, method: &Method) -> bool {
        let policy = &self.plan.policy;
        policy.repeats() && Replay::of(policy.repeat, method.as_str()) == Replay::Freely
    }

    /// The deadline that the caller writes into the target, or why it is none.
    pub(super) fn own_deadline(
        &self,
        captures: &Captures<'_>,
        query: Option<&str>,
    ) -> Result<Option<Nanos>, &OwnAnswer> {
        let Some(from) = &self.deadline_from else { return Ok(None) };
        let text = match &from.place {
            DeadlinePlace::Path(name) => captures.get(name).map(Cow::Borrowed),
            DeadlinePlace::Query(name) => form_urlencoded::parse(query.unwrap_or_default().as_bytes())
                .find(|(key, _)| key == name.as_str())
                .map(|(_, value)| value),
        };
        let number = text.as_deref().and_then(whole).ok_or(&from.bad)?;
        match u64::try_from(number) {
            Ok(number) if number > from.above => Ok(Some(Nanos(from.unit.0.saturating_mul(number)))),
            _ => Err(&from.low),
        }
    }

    /// Path and query upstream.
    pub(super) fn target<'a>(&self, captures: &Captures<'_>, path: &str, uri: &'a Uri) -> Cow<'a, str> {
        rewrite::target(&self.rewrite, captures, path, uri)
    }

    pub(super) fn rewrite_request(&self, headers: &mut HeaderMap) {
        match &self.rewrite.host {
            HostRule::Keep => {}
            HostRule::Upstream => drop(headers.remove(header::HOST)),
            HostRule::Set(host) => drop(headers.insert(header::HOST, host.clone())),
        }
        change(headers, &self.rewrite.remove, &self.rewrite.set);
    }

    pub(super) fn rewrite_answer(&self, headers: &mut HeaderMap) {
        change(headers, &self.rewrite.answer_remove, &self.rewrite.answer_set);
    }

    pub(super) fn merge(&self) -> Option<&Merge> {
        self.merge.as_ref()
    }

    /// The answer at the deadline.
    pub(super) fn late(&self) -> Response<Body> {
        let plain = || answers::text(StatusCode::GATEWAY_TIMEOUT, "no success before the deadline");
        self.answer.late.as_ref().map_or_else(plain, OwnAnswer::response)
    }

    /// The answer when all has failed, if the last answer is not to be passed on.
    pub(super) fn failed(&self) -> Option<Response<Body>> {
        self.answer.failed.as_ref().map(OwnAnswer::response)
    }

    /// The answer to a call that is not taken.
    pub(super) fn refused(&self, refusal: Refusal) -> Response<Body> {
        let mut answer = answers::refused(refusal);
        if let Some(own) = &self.answer.refused {
            *answer.body_mut() = Body::from(own.body.clone());
            answer.headers_mut().insert(header::CONTENT_TYPE, own.content_type.clone());
        }
        answer
    }
}

/// Gates whose limits differ share none: while a change is rolled out, the old and the new one are two.
fn number_of_rate(route: &str, rule: &CallerRule) -> u64 {
    let CallerRule { limit, per, burst, .. } = rule;
    hash(&[b"rate", route.as_bytes(), &limit.to_be_bytes(), &per.0.to_be_bytes(), &burst.to_be_bytes()])
}

fn number_of_budget((policy, upstream): &(String, String), terms: Budget) -> u64 {
    let Budget { share, floor, window } = terms;
    let numbers = [&share.to_be_bytes()[..], &floor.to_be_bytes(), &window.0.to_be_bytes()].concat();
    hash(&[b"budget", policy.as_bytes(), upstream.as_bytes(), &numbers])
}

/// A whole number as people write one; of those that are too large, the largest.
fn whole(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let most = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(text.parse().unwrap_or(most))
}

fn change(headers: &mut HeaderMap, remove: &[HeaderName], set: &[(HeaderName, http::HeaderValue)]) {
    for name in remove {
        headers.remove(name);
    }
    for (name, value) in set {
        headers.insert(name, value.clone());
    }
}

fn success(rule: &SuccessRule) -> Result<Success, String> {
    let success = Success {
        statuses: rule.statuses.clone(),
        headers: rule.headers.clone(),
        json: rule.json,
        most: rule.max_answer,
        grpc: rule.grpc,
        ..Success::default()
    };
    match &rule.schema {
        Some(schema) => success.with_schema(schema).map_err(|error| error.to_string()),
        None => Ok(success),
    }
}

impl OwnAnswer {
    /// It as a response.
    pub(super) fn response(&self) -> Response<Body> {
        let mut answer = Response::new(Body::from(self.body.clone()));
        *answer.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        answer.headers_mut().insert(header::CONTENT_TYPE, self.content_type.clone());
        answer
    }
}
