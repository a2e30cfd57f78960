//! Cost of a step: rendering its request and evaluating its response, in nanoseconds of one core.
#![allow(missing_docs, reason = "a program, not a library")]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::disallowed_macros,
    reason = "a benchmark reads the clock"
)]
#![allow(clippy::unwrap_used, reason = "a failed precondition ends the benchmark")]

use std::hint::black_box;
use std::time::Instant;

use weir_base::Nanos;
use weir_scenario::evaluate::ResponseView;
use weir_scenario::plan::{
    FlowAction, FlowContext, RenderScratch, RequestBytes, ScenarioPlan, ScenarioSettings, ScenarioUser, StepFindings,
};

const ITERATIONS: u32 = 300_000;
const ROUNDS: u32 = 7;

const SHOP: &str = r#"POST http://shop/login
{"user": "bob{{n}}", "password": "x"}
HTTP 200
[Captures]
token: jsonpath "$.token"

GET http://shop/items
Authorization: Bearer {{token}}
HTTP 200
[Captures]
id: jsonpath "$.items[7].id"

POST http://shop/orders/{{id}}
Authorization: Bearer {{token}}
{"item": {{id}}}
HTTP 200
[Asserts]
jsonpath "$.status" == "ok"
"#;

const FIXED: &str = "GET http://shop/1\nHTTP 200\n\nGET http://shop/2\nHTTP 200\n\nGET http://shop/3\nHTTP 200\n";

/// The same requests, and nothing that looks into a body.
const RENDERED: &str = r#"POST http://shop/login
{"user": "bob{{n}}", "password": "x"}
HTTP 200

GET http://shop/items
Authorization: Bearer {{n}}
HTTP 200

POST http://shop/orders/{{n}}
Authorization: Bearer {{n}}
{"item": {{n}}}
HTTP 200
"#;

/// Body of about 1 KB, with values at both ends.
fn body() -> String {
    let items: Vec<String> = (0..14)
        .map(|id| format!("{{\"id\": {id}, \"name\": \"item number {id}\", \"price\": 12.5, \"tags\": [\"a\"]}}"))
        .collect();
    format!("{{\"token\": \"0123456789abcdef\", \"items\": [{}], \"status\": \"ok\"}}", items.join(", "))
}

fn measure(name: &str, text: &str, body: &str, headers: &[(&str, &[u8])]) {
    let file = weir_hurl::parse(text).unwrap();
    let settings = ScenarioSettings { columns: vec!["n".into()], ..ScenarioSettings::default() };
    let mut files = |name: &str| Err(name.to_owned());
    let plan = ScenarioPlan::compile(&file, &settings, &mut files).unwrap();
    let mut user = ScenarioUser::new(&plan, 1, 0);
    let (mut origins, mut scratch) = (plan.origins.clone(), RenderScratch::default());
    let (mut request, mut findings) = (RequestBytes::default(), StepFindings::default());
    let view = view(headers, body.as_bytes());
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (started, mut steps) = (Instant::now(), 0_u32);
        for sequence in 0..ITERATIONS {
            let mut flow = FlowContext {
                plan: &plan,
                origins: &mut origins,
                request: &mut request,
                findings: &mut findings,
                scratch: &mut scratch,
                unix_s: 1_700_000_000,
            };
            let value = weir_scenario::value::Value::Integer(i64::from(sequence));
            user.prepare(&plan, 1, u64::from(sequence)).set(plan.columns[0], value);
            let mut action = user.begin(&mut flow, Nanos::ZERO, Nanos::ZERO);
            while let FlowAction::Send { .. } = action {
                black_box(&flow.request);
                steps += 1;
                action = user.response(&mut flow, black_box(&view), Nanos::ZERO);
            }
            assert_eq!(action, FlowAction::End { ok: true });
        }
        best = best.min(started.elapsed().as_secs_f64() * 1e9 / f64::from(steps));
    }
    println!("{name}: {best:.0} ns per step");
}

fn main() {
    let body = body();
    println!("body of {} bytes", body.len());
    let cookie: [(&str, &[u8]); 2] = [("Content-Type", b"application/json"), ("Set-Cookie", b"s=0123456789; Path=/")];
    measure("fixed requests", FIXED, &body, &cookie[..1]);
    measure("requests with variables", RENDERED, &body, &cookie[..1]);
    measure("login, list, buy", SHOP, &body, &cookie[..1]);
    measure("login, list, buy, with a cookie", SHOP, &body, &cookie);
}

fn view<'a>(headers: &'a [(&'a str, &'a [u8])], body: &'a [u8]) -> ResponseView<'a> {
    ResponseView { version: "1.1", status: 200, headers, body, raw_body: body, ..ResponseView::default() }
}
