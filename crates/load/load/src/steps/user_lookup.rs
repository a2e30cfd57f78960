//! Facts about a user's flow, for records, traces and connections.

use weir_net::tls::Tls;
use weir_request::secret_mask::SecretMask;
use weir_scenario::evaluate::CompiledCapture;
use weir_scenario::plan::OriginId;
use weir_scenario::value::Value;

use super::user_flows::UserFlows;
use super::{ResolvedOrigin, UserTable};
use crate::program::ReleasedRecord;

/// Differences between compiled steps and a program.
impl UserTable<'_> {
    /// Index among all steps of the step that was found last.
    pub(crate) fn found_step(&self, user: u32) -> u32 {
        match &self.flows {
            UserFlows::Steps(flows) => flows.step_index(self.scenario_of(user), self.findings.step),
            UserFlows::Program(_) => self.findings.step,
        }
    }

    /// Whether the step that was found last, and not the status alone, says if a response is a success.
    pub(crate) fn decides_success(&self, user: u32) -> bool {
        match &self.flows {
            UserFlows::Steps(flows) => flows.expects_status(user, self.findings.step),
            UserFlows::Program(flows) => flows.decides_success(),
        }
    }

    /// Whether the response that was found last is a success, unless its status decides.
    pub(crate) fn has_passed(&self) -> bool {
        let is_failed = match &self.flows {
            UserFlows::Steps(_) => false,
            UserFlows::Program(flows) => flows.says_failed(),
        };
        !is_failed && self.findings.failures.is_empty()
    }

    /// Number under which the record of the response that was found last is held back, if it is.
    pub(crate) fn held_as(&self) -> Option<u64> {
        match &self.flows {
            UserFlows::Steps(_) => None,
            UserFlows::Program(flows) => flows.held_as(),
        }
    }

    /// Decisions of a program about records that were held back.
    pub(crate) fn take_released(&mut self) -> Vec<ReleasedRecord> {
        match &mut self.flows {
            UserFlows::Steps(_) => Vec::new(),
            UserFlows::Program(flows) => flows.take_released(),
        }
    }

    /// Checks of a step by its index among all steps.
    pub(crate) fn step_checks(&self, step: u32) -> &[String] {
        match &self.flows {
            UserFlows::Steps(flows) => flows.mix().step_checks(step),
            UserFlows::Program(_) => &[],
        }
    }

    /// Name of a step by its index among all steps.
    pub(crate) fn step_name(&self, step: u32) -> String {
        match &self.flows {
            UserFlows::Steps(flows) => flows.mix().step_name(step).to_owned(),
            UserFlows::Program(flows) => flows.step_name(step),
        }
    }

    /// Variables of a user that have values, by name.
    pub(crate) fn variables(&self, user: u32) -> Vec<(String, Value)> {
        match &self.flows {
            UserFlows::Steps(flows) => flows.variables(user),
            UserFlows::Program(_) => Vec::new(),
        }
    }

    /// Captures of the step that was found last.
    pub(crate) fn captures(&self, user: u32) -> &[CompiledCapture] {
        match &self.flows {
            UserFlows::Steps(flows) => flows.captures(user, self.findings.step),
            UserFlows::Program(_) => &[],
        }
    }

    /// Secrets masked in samples of a user's failures, among them values of the user's variables.
    pub(crate) fn secret_mask(&self, user: u32) -> SecretMask {
        match &self.flows {
            UserFlows::Steps(flows) => flows.secret_mask(user),
            UserFlows::Program(flows) => flows.secret_mask().clone(),
        }
    }

    /// Addresses of an origin; one that the plan does not know is resolved now, once.
    pub(crate) fn address(&mut self, scenario: u32, origin: OriginId) -> Result<&ResolvedOrigin, String> {
        match &mut self.flows {
            UserFlows::Steps(flows) => flows.address(scenario, origin),
            UserFlows::Program(flows) => flows.address(origin),
        }
    }

    /// TLS of an origin whose addresses are known.
    pub(crate) fn tls(&self, scenario: u32, origin: OriginId) -> Option<&Tls> {
        match &self.flows {
            UserFlows::Steps(flows) => flows.origins.tls(scenario, origin),
            UserFlows::Program(flows) => flows.tls(origin),
        }
    }

    /// Origin as text.
    pub(crate) fn origin_name(&self, scenario: u32, origin: OriginId) -> String {
        match &self.flows {
            UserFlows::Steps(flows) => flows.origins.name(scenario, origin),
            UserFlows::Program(flows) => flows.origin_name(origin),
        }
    }

    /// Reason of a program to end the run, if it has one.
    pub(crate) fn abort_reason(&mut self) -> Option<String> {
        match &mut self.flows {
            UserFlows::Steps(_) => None,
            UserFlows::Program(flows) => flows.abort_reason(),
        }
    }
}
