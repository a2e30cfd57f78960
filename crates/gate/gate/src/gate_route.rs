//! A route with calls: its upstreams, its policy, and the changes to its requests and responses.

use std::borrow::Cow;
use std::sync::Arc;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri, Version, header};

use super::caller::{CallerPolicy, CallerPolicyConfig};
use super::cluster_hash::cluster_hash;
use super::config::{
    CallWeight, ClientCertificateHeaders, Config, DeadlineFrom, DeadlineLocation, ForwardingHeaders, HostRule,
    KeySource, LocalResponse, Proxies, RateTerms, RequestLimits, ResponseRule, Rewrite, RouteConfig, SuccessRule,
};
use super::culprit_guard::RouteCulprits;
use super::forwarding_names::has_same_spelling;
use super::headers;
use super::json_merge::JsonMerge;
use super::local_responses::{self, ErrorFormat};
use super::mirror::Mirror;
use super::rewrite;
use super::routing::Captures;
use super::side_choice::SideChooser;
use weir_base::Nanos;
use weir_call::{CallPlan, PermitPool, Success, Upstream};
use weir_net::path::{AmbiguousPath, PathRule};
use weir_net::upgrade::{is_same_protocol, requested_protocol};
use weir_resilience::admission;
use weir_resilience::admission::Rejection;
use weir_resilience::hedge::ResendRule;
use weir_resilience::ratelimit::per_caller::CallerRule;
use weir_retry::deadline::DeadlineFormat;
use weir_server::ResponseBody;

/// Runtime of a route.
#[derive(Debug)]
pub(super) struct GateRoute {
    /// Name in metrics and logs.
    pub(super) name: String,
    /// Name for the list of calls in flight.
    pub(super) label: Arc<str>,
    /// Upstreams of the route; at least one.
    pub(super) sides: Vec<RouteSide>,
    pub(super) side_chooser: SideChooser,
    pub(super) mirror: Option<Arc<Mirror>>,
    pub(super) caller_deadlines: Vec<(HeaderName, DeadlineFormat)>,
    pub(super) buffer: usize,
    pub(super) limits: RequestLimits,
    pub(super) proxies: Arc<Proxies>,
    pub(super) client_certificate_headers: Arc<ClientCertificateHeaders>,
    pub(super) forwarding_headers: Arc<ForwardingHeaders>,
    /// Protocols that a caller's connection may switch to, in lower case.
    pub(super) upgrades: Vec<HeaderValue>,
    pub(super) caller_policy: Arc<CallerPolicy>,
    /// ID of its rate limit among cluster-wide limits.
    pub(super) rate_limit_id: Option<u64>,
    /// Configuration of its concurrency limit.
    pub(super) admission_config: Option<admission::AdmissionConfig>,
    /// Request headers that the route sets or removes.
    pub(super) own_headers: Arc<[HeaderName]>,
    /// Response headers that the route reads or changes: the others may be passed on unread.
    pub(super) response_headers: Arc<[HeaderName]>,
    deadline_from: Option<DeadlineFrom>,
    rewrite: Rewrite,
    response_rule: ResponseRule,
    merge: Option<JsonMerge>,
}

/// One upstream of a route.
#[derive(Debug)]
pub(super) struct RouteSide {
    /// Name of the upstream.
    pub(super) upstream: String,
    pub(super) plan: Arc<CallPlan>,
    /// Value by which the upstream chooses a host, with consistent hashing.
    pub(super) hash_by: Option<KeySource>,
    /// Culprits of the upstream, if it sheds them.
    pub(super) culprits: Option<RouteCulprits>,
}

impl RouteSide {
    /// The plan, before a call has it.
    pub(super) fn plan_mut(&mut self) -> &mut CallPlan {
        Arc::make_mut(&mut self.plan)
    }
}

/// The name of a route in metrics and logs: its methods, hosts, path, conditions and listeners.
pub(super) fn route_name(route_config: &RouteConfig) -> String {
    let methods: Vec<&str> = route_config.methods.iter().map(Method::as_str).collect();
    let hosts: Vec<String> = route_config.hosts.iter().map(ToString::to_string).collect();
    let conditions = route_config.conditions.iter().map(ToString::to_string);
    // Routes of several listeners may have the same path.
    let listeners: String = route_config.listeners.iter().map(|name| format!("@{name}")).collect();
    let parts = [methods.join(","), hosts.join(","), route_config.path.clone()]
        .into_iter()
        .chain(conditions)
        .chain([listeners]);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

impl GateRoute {
    pub(super) fn new(
        route_config: &RouteConfig,
        upstreams: Vec<(String, Arc<Upstream>, Option<KeySource>)>,
        config: &Config,
        now: Nanos,
        cluster_salt: Option<u64>,
    ) -> Result<Self, String> {
        let (policy, proxies) = (&route_config.policy, &config.trusted_proxies);
        let permits = route_config.admission.as_ref().map(|terms| Arc::new(PermitPool::new(terms, now)));
        let mut sides = Vec::new();
        for (name, upstream, hash_by) in upstreams {
            let mut success = success_check(&policy.success)?;
            // Bodies to merge into must be JSON, and complete.
            success.json |= !route_config.response.merge.is_empty();
            let mut plan = CallPlan::new(policy.policy.clone(), success, upstream);
            plan.permits.clone_from(&permits);
            plan.deadline_headers.clone_from(&policy.deadlines_out);
            sides.push(RouteSide { upstream: name, plan: Arc::new(plan), hash_by, culprits: None });
        }
        if sides.is_empty() {
            return Err(format!("route {}: no upstream", route_config.path));
        }
        let name = route_name(route_config);
        let rate = cluster_salt.and(route_config.rate).map(|rule| rate_limit_id(&name, &rule));
        Ok(Self {
            label: name.as_str().into(),
            name,
            sides,
            side_chooser: SideChooser::new(&route_config.upstreams, route_config.sticky.clone()),
            mirror: None,
            caller_deadlines: policy.deadlines_in.clone(),
            buffer: policy.max_buffer_bytes,
            limits: route_config.limits,
            proxies: Arc::clone(proxies),
            client_certificate_headers: Arc::clone(&config.client_certificate_headers),
            forwarding_headers: Arc::clone(&config.forwarding_headers),
            upgrades: route_config.upgrades.clone(),
            caller_policy: Arc::new(CallerPolicy::new(CallerPolicyConfig::of(route_config, proxies), cluster_salt)),
            rate_limit_id: rate,
            admission_config: route_config.admission.clone(),
            own_headers: own_headers(&route_config.rewrite),
            response_headers: response_headers(route_config),
            deadline_from: route_config.deadline_from.clone(),
            rewrite: route_config.rewrite.clone(),
            merge: JsonMerge::new(&route_config.response.merge),
            response_rule: route_config.response.clone(),
        })
    }

    /// The plan of any side: policy and permits are the same for all.
    pub(super) fn plan(&self) -> &CallPlan {
        &self.sides[0].plan
    }

    /// Whether a request of this method may be sent more than once.
    pub(super) fn is_retryable(&self, method: &Method) -> bool {
        ResendRule::allows_extra_attempts(&self.plan().policy, method.as_str())
    }

    /// The caller's deadline in the target, or the response to an invalid one.
    pub(super) fn target_deadline(
        &self,
        captures: &Captures<'_>,
        query: Option<&str>,
    ) -> Result<Option<Nanos>, &LocalResponse> {
        let Some(from) = &self.deadline_from else { return Ok(None) };
        let text = match &from.location {
            DeadlineLocation::Path(name) => captures.get(name).map(Cow::Borrowed),
            DeadlineLocation::Query(name) => form_urlencoded::parse(query.unwrap_or_default().as_bytes())
                .find(|(key, _)| key == name.as_str())
                .map(|(_, value)| value),
        };
        let number = text.as_deref().and_then(parse_integer).ok_or(&from.invalid_response)?;
        match u64::try_from(number) {
            Ok(number) if number > from.above => Ok(Some(Nanos(from.unit.0.saturating_mul(number)))),
            _ => Err(&from.too_low_response),
        }
    }

    /// Path and query of the upstream request.
    ///
    /// # Errors
    /// Captures have made a path that is read in another way than they were.
    pub(super) fn target<'a>(
        &self,
        captures: &Captures<'_>,
        path: &str,
        uri: &'a Uri,
        rule: PathRule,
    ) -> Result<Cow<'a, str>, AmbiguousPath> {
        rewrite::target(&self.rewrite, captures, path, uri, rule)
    }

    /// The protocol that a request is to switch to, as the route names it; None if it is an ordinary request.
    pub(super) fn upgrade(&self, parts: &Parts, headers: &HeaderMap, has_body: bool) -> Option<&HeaderValue> {
        // A body would be read by the one protocol or the other.
        if parts.version != Version::HTTP_11 || has_body {
            return None;
        }
        let requested = requested_protocol(headers)?;
        let protocol = self.upgrades.iter().find(|known| is_same_protocol(known, requested))?;
        // RFC 6455, 4.1.
        (protocol != "websocket" || parts.method == Method::GET).then_some(protocol)
    }

    /// Whether the route sets or removes headers of requests of names of its own.
    pub(super) fn changes_request_headers(&self) -> bool {
        !(self.own_headers.is_empty() && self.rewrite.add.is_empty() && self.client_certificate_headers.is_empty())
    }

    pub(super) fn rewrite_request(&self, headers: &mut HeaderMap) {
        match &self.rewrite.host {
            HostRule::Keep => {}
            HostRule::Upstream => drop(headers.remove(header::HOST)),
            HostRule::Set(host) => drop(headers.insert(header::HOST, host.clone())),
        }
        // A service that does not distinguish `-` and `_` would otherwise believe its caller.
        if !self.own_headers.is_empty() {
            let forged: Vec<HeaderName> =
                headers.keys().filter(|name| has_own_spelling(&self.own_headers, name)).cloned().collect();
            for name in forged {
                headers.remove(name);
            }
        }
        edit_headers(headers, &self.rewrite.remove, &self.rewrite.set, &self.rewrite.add);
    }

    pub(super) fn rewrite_response(&self, headers: &mut HeaderMap) {
        let Rewrite { response_remove, response_set, response_add, .. } = &self.rewrite;
        edit_headers(headers, response_remove, response_set, response_add);
    }

    pub(super) fn merge(&self) -> Option<&JsonMerge> {
        self.merge.as_ref()
    }

    /// The response when the deadline has passed.
    pub(super) fn deadline_response(&self, format: ErrorFormat) -> Response<ResponseBody> {
        match &self.response_rule.deadline_exceeded {
            Some(own) => format.format_configured(own.response()),
            None => format.format(local_responses::text(StatusCode::GATEWAY_TIMEOUT, "no success before the deadline")),
        }
    }

    /// The custom response when all attempts have failed, if there is one.
    pub(super) fn failure_response(&self, format: ErrorFormat) -> Option<Response<ResponseBody>> {
        self.response_rule.failed.as_ref().map(|own| format.format_configured(own.response()))
    }

    /// The response to a rejected call, with the route's body, or one that says more.
    pub(super) fn rejection_response(
        &self,
        format: ErrorFormat,
        rejection: Rejection,
        details: impl FnOnce() -> Option<ResponseBody>,
    ) -> Response<ResponseBody> {
        let mut response = local_responses::rejected(rejection);
        if let Some(own) = &self.response_rule.rejected {
            *response.body_mut() = ResponseBody::from(own.body.clone());
            response.headers_mut().insert(header::CONTENT_TYPE, own.content_type.clone());
            return format.format_configured(response);
        }
        if let Some(body) = details() {
            *response.body_mut() = body;
        }
        format.format(response)
    }
}

/// ID of a cluster-wide rate limit. Gateways with different settings share none: during a rollout there are two limits.
fn rate_limit_id(route: &str, rule: &CallerRule) -> u64 {
    let CallerRule { limit, per, burst, .. } = rule;
    cluster_hash(&[b"rate", route.as_bytes(), &limit.to_be_bytes(), &per.0.to_be_bytes(), &burst.to_be_bytes()])
}

/// Parses a whole number with an optional sign; numbers out of range saturate.
fn parse_integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let limit = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(text.parse().unwrap_or(limit))
}

/// Request headers that a route sets or removes.
fn own_headers(rewrite: &Rewrite) -> Arc<[HeaderName]> {
    rewrite.remove.iter().chain(rewrite.set.iter().map(|(name, _)| name)).cloned().collect()
}

/// Response headers that a route reads, sets or removes.
fn response_headers(route_config: &RouteConfig) -> Arc<[HeaderName]> {
    let Rewrite { response_remove, response_set, .. } = &route_config.rewrite;
    let success = route_config.policy.success.headers.iter();
    let of_rate = match &route_config.rate_terms {
        RateTerms { reports: false, .. } => &[][..],
        RateTerms { weight: CallWeight::ModelTokens, .. } => &headers::TOKEN_LIMIT_HEADERS[..],
        RateTerms { .. } => &headers::RATE_LIMIT_HEADERS[..],
    };
    let named = response_remove.iter().chain(response_set.iter().chain(success).map(|(name, _)| name));
    named.chain(of_rate).cloned().collect()
}

/// Whether a name is one of a route's own to an upstream that does not distinguish `-` and `_`.
pub(super) fn has_own_spelling(own: &[HeaderName], name: &HeaderName) -> bool {
    own.iter().any(|known| has_same_spelling(name.as_str(), known.as_str()))
}

/// Removes headers, then sets others, then adds more.
fn edit_headers(
    headers: &mut HeaderMap,
    remove: &[HeaderName],
    set: &[(HeaderName, HeaderValue)],
    add: &[(HeaderName, HeaderValue)],
) {
    for name in remove {
        headers.remove(name);
    }
    for (name, value) in set {
        headers.insert(name, value.clone());
    }
    for (name, value) in add {
        headers.append(name, value.clone());
    }
}

fn success_check(rule: &SuccessRule) -> Result<Success, String> {
    let mut success = Success::default();
    success.statuses.clone_from(&rule.statuses);
    success.headers.clone_from(&rule.headers);
    success.json = rule.json;
    success.max_body_bytes = rule.max_body_bytes;
    success.grpc = rule.grpc;
    match &rule.schema {
        Some(schema) => success.with_schema(schema).map_err(|error| error.to_string()),
        None => Ok(success),
    }
}

impl LocalResponse {
    /// The response.
    pub(super) fn response(&self) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::from(self.body.clone()));
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(header::CONTENT_TYPE, self.content_type.clone());
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_a_route_have_all_spellings() {
        let user = (HeaderName::from_static("x-user"), HeaderValue::from_static("me"));
        let rewrite =
            Rewrite { set: vec![user], remove: vec![HeaderName::from_static("x_role")], ..Rewrite::default() };
        let own = own_headers(&rewrite);
        for (name, is_own) in [
            ("x-user", true),
            ("x_user", true),
            ("x-role", true),
            ("x_role", true),
            ("x-users", false),
            ("user", false),
        ] {
            assert_eq!(has_own_spelling(&own, &HeaderName::from_static(name)), is_own, "{name}");
        }
        assert!(own_headers(&Rewrite::default()).is_empty());
    }
}
