//! Messages with templates, rendered one by one.

use crate::program::PipelinedRequest;
use crate::steps::{CallBuffers, CallSubject, FlowEvent, FlowNext, ScenarioMix, StepFlows, UserFlow};
use weir_base::Nanos;
use weir_machine::clock::unix_s;
use weir_pace::shard::Shard;
use weir_scenario::plan::{RequestBytes, StepFindings};

/// Renderer of a thread's messages: each is the body of a step, whose head is left out.
#[derive(Debug)]
pub(crate) struct MessageRenderer<'a> {
    flows: StepFlows<'a>,
    request: RequestBytes,
    pipelined: Vec<PipelinedRequest>,
    findings: StepFindings,
}

impl<'a> MessageRenderer<'a> {
    /// Renderer of a thread, whose users have these numbers in the closed loop.
    pub(crate) fn new(mix: &'a ScenarioMix, seed: u64, numbers: Option<Shard>) -> Self {
        Self {
            flows: StepFlows::new(mix, seed, numbers),
            request: RequestBytes::default(),
            pipelined: Vec::new(),
            findings: StepFindings::default(),
        }
    }

    /// Appends the message of this number, of a user.
    ///
    /// # Errors
    /// Why it has no text.
    pub(crate) fn render(&mut self, user: u32, number: u64, now: Nanos, out: &mut Vec<u8>) -> Result<(), String> {
        self.request.clear();
        self.findings.clear(0);
        let scenario = self.flows.prepare(user, number).unwrap_or_default();
        let mut subject = CallSubject { user, scenario, iteration: number, intended: now };
        let buffers = CallBuffers {
            request: &mut self.request,
            pipelined: &mut self.pipelined,
            findings: &mut self.findings,
            now,
            unix_s: unix_s() as i64,
        };
        if !matches!(self.flows.call(&mut subject, &FlowEvent::Begin, buffers), Some(FlowNext::Send(_))) {
            let why = self.findings.failures.first().map(ToString::to_string);
            return Err(why.unwrap_or_else(|| "the message has no text".to_owned()));
        }
        let [written, shared] = self.request.parts_from(0);
        let body = memchr::memmem::find(written, b"\r\n\r\n").map_or(written.len(), |at| at + 4);
        out.extend_from_slice(&written[body..]);
        out.extend_from_slice(shared);
        Ok(())
    }
}
