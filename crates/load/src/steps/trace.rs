//! Requests of steps and their responses as they were, for a person.

use weir_decide::Nanos;
use weir_scenario::value::Value;

/// Request of a step and what came back.
#[derive(Clone, Debug)]
pub struct StepTrace {
    /// Name of the step.
    pub step: String,
    /// Origin of the request: `http://shop:8080`.
    pub origin: String,
    /// Bytes of the request.
    pub request: Vec<u8>,
    /// Head of the response; empty without one.
    pub head: Vec<u8>,
    /// Body of the response, decoded, without framing.
    pub body: Vec<u8>,
    /// Time from the send to the end.
    pub service: Nanos,
    /// Checks of the step, and whether they hold; those that were not evaluated are left out.
    pub checks: Vec<(String, bool)>,
    /// Failures; empty if all is well.
    pub failures: Vec<String>,
    /// What became of the request: `passed`, `failed`, `redirected`, `retried`.
    pub verdict: &'static str,
    /// Variables of the user after it, by name.
    pub variables: Vec<(String, Value)>,
}
