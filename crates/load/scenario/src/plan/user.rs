//! Users: their place in a scenario, and what they remember.

use weir_base::Nanos;
use weir_base::rng::SeededRng;

use super::origin::OriginId;
use super::rules::StepRules;
use super::scenario_plan::ScenarioPlan;
use super::sent_url::SentUrl;
use super::step::ScenarioStep;
use crate::cookie_jar::CookieJar;
use crate::evaluate::VariableTable;
use crate::value::Value;
use weir_request::url::HttpUrl;

/// User of a scenario: a small value that waits for a response or for a time.
#[derive(Clone, Debug)]
pub struct ScenarioUser {
    pub(super) place: UserPlace,
    pub(super) variables: VariableTable,
    pub(super) jar: CookieJar,
    /// URL of the last request.
    pub(super) url: SentUrl,
    /// Redirects of the last request, if its step needs them.
    pub(super) redirected: Vec<String>,
    pub(super) rng: SeededRng,
    /// Number of the iteration among all of the load.
    pub(super) sequence: u64,
}

/// Place of a user in a scenario.
#[derive(Clone, Debug)]
pub(super) struct UserPlace {
    pub(super) phase: UserPhase,
    /// Index of the step.
    pub(super) step: u32,
    /// Rules of the step, as its options are now.
    pub(super) rules: StepRules,
    /// Executions of the step that have ended.
    pub(super) repeats: u64,
    pub(super) retries: u64,
    pub(super) redirects: u64,
    /// Request that is sent, after redirects.
    pub(super) origin: OriginId,
    pub(super) method: RequestMethod,
    pub(super) has_body: bool,
    /// Whether credentials were sent after a challenge of digest authentication.
    pub(super) has_answered: bool,
    /// Whether no redirect of the request has left the origin of its step's URL.
    pub(super) is_own_origin: bool,
    /// Whether credentials of the settings were sent with the request.
    pub(super) is_home: bool,
    /// Origin of the first request of the iteration.
    pub(super) first_origin: Option<OriginId>,
    /// Random numbers of the request, for a redirect that sends it again.
    pub(super) rng: SeededRng,
    /// Whether a request of the iteration was sent.
    pub(super) has_sent: bool,
    /// Whether no step of the iteration has failed.
    pub(super) is_ok: bool,
}

/// Method of the request that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestMethod {
    /// Method of the step.
    OfStep,
    /// GET after a redirect.
    Get,
}

/// Event that a user waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserPhase {
    /// The start of an iteration.
    Idle,
    /// A call of its own for the start of a step, after what was before had ended at this time.
    Starting(Nanos),
    /// The time of a request or retry.
    Waiting(Nanos),
    /// A response.
    Sent,
}

impl ScenarioUser {
    /// User of this number in the load; its random values depend on the seed and the number alone.
    pub fn new(plan: &ScenarioPlan, seed: u64, number: u64) -> Self {
        Self {
            place: UserPlace::start(),
            variables: plan.variables.clone(),
            jar: CookieJar::default(),
            url: SentUrl::default(),
            redirected: Vec::new(),
            rng: SeededRng::new(seed, number),
            sequence: 0,
        }
    }

    /// Makes a user of another scenario of this one, with the same cookies.
    pub fn change_plan(&mut self, plan: &ScenarioPlan, seed: u64, number: u64) {
        let jar = std::mem::take(&mut self.jar);
        *self = Self { jar, ..Self::new(plan, seed, number) };
    }

    /// Prepares an iteration: variables have the values of the settings again. The caller sets the columns of a row of
    /// data in the table, and begins.
    pub fn prepare(&mut self, plan: &ScenarioPlan, seed: u64, sequence: u64) -> &mut VariableTable {
        // An iteration is the same for every user that executes it.
        self.rng = SeededRng::new(seed, sequence);
        self.variables.assign(&plan.variables);
        if let Some(slot) = plan.sequence {
            self.variables.set(slot, Value::Integer(i64::try_from(sequence).unwrap_or(i64::MAX)));
        }
        if !plan.keep_cookies {
            self.jar.clear();
        }
        self.sequence = sequence;
        self.place = UserPlace::start();
        &mut self.variables
    }

    /// Index of the step that the user is at.
    pub fn step(&self) -> u32 {
        self.place.step
    }

    /// URL of the request that was sent last.
    pub fn url<'u>(&'u self, plan: &'u ScenarioPlan) -> Option<&'u HttpUrl> {
        plan.steps.get(self.place.step as usize).and_then(|step| self.url.get(step))
    }

    /// Method of the request that was sent last.
    pub fn method<'u>(&'u self, plan: &'u ScenarioPlan) -> &'u str {
        match self.place.method {
            RequestMethod::OfStep => plan.steps.get(self.place.step as usize).map_or("GET", ScenarioStep::method),
            RequestMethod::Get => "GET",
        }
    }

    /// Origin of the request that was sent last.
    pub fn origin(&self) -> OriginId {
        self.place.origin
    }

    /// Timeout of the request that was sent last, if the step has one of its own.
    pub fn timeout(&self) -> Option<Nanos> {
        self.place.rules.timeout
    }

    /// Cookies of the user.
    pub fn cookies(&self) -> &CookieJar {
        &self.jar
    }

    /// Variables of the user.
    pub fn variables(&self) -> &VariableTable {
        &self.variables
    }

    /// Variables of the user that have values, by name.
    pub fn named_variables<'u>(&'u self, plan: &'u ScenarioPlan) -> impl Iterator<Item = (&'u str, &'u Value)> {
        plan.names.iter().filter_map(|(name, slot)| Some((name, self.variables.get(slot)?)))
    }
}

impl UserPlace {
    /// Whether the credentials of the step may go where its request is now.
    pub(super) fn is_trusted(&self) -> bool {
        self.is_own_origin || self.rules.trust_redirects
    }

    fn start() -> Self {
        Self {
            phase: UserPhase::Idle,
            step: 0,
            rules: StepRules::default(),
            repeats: 0,
            retries: 0,
            redirects: 0,
            origin: OriginId(0),
            method: RequestMethod::OfStep,
            has_body: true,
            has_answered: false,
            is_own_origin: true,
            is_home: false,
            first_origin: None,
            rng: SeededRng::new(0, 0),
            has_sent: false,
            is_ok: true,
        }
    }
}
