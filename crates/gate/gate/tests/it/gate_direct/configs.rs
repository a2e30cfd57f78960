//! Calls as values and as futures, for each part of a configuration.

use super::pair::compare_text;

/// A configuration with these lines at its top, in its upstream, and in its route.
fn of(top: &str, upstream: &str, route: &str) -> String {
    format!(
        "{top}\n[upstreams.backend]\nurls = [\"URL\"]\n{upstream}\n[upstreams.other]\nurls = [\"URL\"]\n\
         [upstreams.shadow]\nurls = [\"SHADOW\"]\n\
         [[routes]]\nmatch = {{ path = \"/free\" }}\nupstream = \"backend\"\n\
         [[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n{route}\n"
    )
}

/// Without a throttle, which would make futures of all calls for a while after the first 503.
const NONE: &str = "throttle = \"none\"";
const TO_BACKEND: &str = "upstream = \"backend\"";

fn compare_route(cases: u32, route: &str) {
    compare_text(&of("", NONE, &format!("{TO_BACKEND}\n{route}")), cases);
}

fn compare_upstream(cases: u32, upstream: &str) {
    compare_text(&of("", upstream, TO_BACKEND), cases);
}

#[test]
fn sizes_are_limited() {
    compare_route(60, "max_body = \"2B\"");
    compare_route(60, "max_head = \"100B\"\nmax_headers = 4");
    // The longer bodies are streams.
    compare_route(60, "policy = { buffer = \"2KiB\" }");
}

#[test]
fn callers_are_limited() {
    let caller = "caller = { header = \"cookie\" }";
    compare_route(60, &format!("{caller}\nrate_limit = {{ rate = \"20/24h\", headers = true }}"));
    compare_route(40, &format!("{caller}\nrate_limit = {{ rate = \"9000/24h\", weight = {{ body = \"1B\" }} }}"));
    let tokens = "rate_limit = { rate = \"9000/24h\", weight = { tokens = \"usage\" }, headers = true }";
    compare_route(40, &format!("{caller}\n{tokens}"));
    compare_route(40, &format!("{caller}\npriority_from = {{ header = \"x-priority\", default = \"low\" }}"));
}

#[test]
fn upstreams_are_guarded() {
    compare_upstream(60, "");
    compare_upstream(60, "throttle = { min_samples = 1, k = 1, window = \"1h\" }");
    let breaker =
        "window = \"1h\", min_samples = 40, failure_threshold = 0.2, open_time = \"1h\", max_open_time = \"1h\"";
    compare_upstream(60, &format!("{NONE}\nbreaker = {{ {breaker} }}"));
    compare_upstream(40, &format!("{NONE}\nconcurrency_limit = \"none\""));
    compare_upstream(40, &format!("{NONE}\nmax_in_flight = 1\nmax_queue = 100"));
    compare_upstream(40, &format!("{NONE}\nshed_culprits = {{}}"));
    compare_upstream(40, &format!("{NONE}\nmax_connection_requests = 2\nmax_connections = 1"));
}

#[test]
fn routes_have_limits_of_their_own() {
    compare_route(40, "max_in_flight = 1\nmax_queue = 100");
    compare_text(
        &of(
            "",
            &format!("{NONE}\nconcurrency_limit = \"none\""),
            &format!("{TO_BACKEND}\nmax_in_flight = 1\nmax_queue = 100"),
        ),
        40,
    );
}

#[test]
fn policies_have_all_parts() {
    compare_route(60, "policy = { deadline = \"50s\", attempt_timeout = \"40s\", hedge = [{ after = \"30s\" }] }");
    compare_route(60, "policy = { retries = { times = 2, backoff = \"1ms..1ms\" }, budget = \"none\" }");
    compare_route(40, "policy = { success = { json = true } }");
    compare_route(40, "policy = { success = { status = \"200-399\", headers = { server = \"x\" } } }");
    compare_route(40, "policy = { deadline = \"50s\", deadline_headers = { out = [] } }");
}

#[test]
fn responses_are_changed() {
    compare_route(40, "response = { merge = { message = \"SUCCESS\" } }");
    let own = "{ status = 599, content_type = \"text/plain\", body = \"own\" }";
    compare_route(40, &format!("response = {{ failed = {own}, deadline_exceeded = {own} }}"));
}

#[test]
fn requests_are_changed() {
    let set = "path = \"/v2/{rest}\", host = \"upstream\", set = { x-a = \"b\" }, remove = [\"cookie\"], add = { x-odd = \"c\" }";
    let response =
        "response_remove = [\"server\"], response_set = { x-own = \"d\" }, response_add = { set-cookie = \"e=1\" }";
    compare_route(60, &format!("rewrite = {{ {set}, {response} }}"));
    let top = "trusted_proxies = [\"127.0.0.1\"]\nforwarding_headers = { remove = [\"x-odd\"] }\nmerge_slashes = false";
    compare_text(&of(top, NONE, TO_BACKEND), 60);
}

#[test]
fn traffic_is_split_and_copied() {
    let split = "upstream = [{ name = \"backend\", weight = 1 }, { name = \"other\", weight = 1 }]";
    compare_text(&of("", NONE, &format!("{split}\nsticky = {{ cookie = \"a\", max_age = \"1h\" }}")), 40);
    compare_route(40, "mirror = { upstream = \"shadow\", fraction = 0.5 }");
}
