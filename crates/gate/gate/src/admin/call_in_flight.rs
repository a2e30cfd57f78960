//! Call in flight, as JSON.

use serde_json::{Value, json};

use weir_server::RequestInFlight;

/// Call in flight, with its target as it is shown.
pub(super) fn call_in_flight(call: &RequestInFlight, target: &str) -> Value {
    json!({
        "age_ms": call.age.as_millis_f64(),
        "stage": call.stage,
        "route": call.route,
        "client": call.client,
        "method": call.method,
        "target": target,
    })
}
