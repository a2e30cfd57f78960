//! Scenarios of a plan, compiled.

use std::collections::{BTreeSet, HashMap};

use weir_measure::run_steps::StepFacts;
use weir_pace::source::RequestSource;
use weir_request::secret_mask::SecretMask;
use weir_request::secret_names::is_secret_name;
use weir_request::url_text::UrlText;
use weir_scenario::data::{ScenarioOrdinals, ThinkTime};
use weir_scenario::plan::{RequestOrigin, StreamEndRule};

use super::compiled_scenario::CompiledScenario;
use super::mix_compiler::MixCompiler;
use super::scenario_data::ScenarioData;
use super::user_deal::UserDeal;
use super::{OriginResolver, ResolvedOrigin, ScenarioSource, without_user};
use crate::options::Options;
use crate::plan::PlanError;

/// Beginning of the URLs of steps, with TLS as well, and that of calls of gRPC in their place.
const HTTP_SCHEME: &str = "http";
const CALL_SCHEME: &str = "grpc";

/// Maximum number of iterations that are looked through for the end of data: more than a minute of any load has.
const MAX_PLANNED_ITERATIONS: u64 = 1 << 26;

/// Scenarios of a plan, compiled: which one an iteration has, and where its requests go.
#[derive(Debug)]
pub struct ScenarioMix {
    pub(crate) scenarios: Vec<CompiledScenario>,
    choice: RequestSource,
    /// Whether all scenarios have the same data.
    has_one_file: bool,
    /// Scenarios of the users of a closed loop, if each user has one for the whole run.
    deal: Option<UserDeal>,
    pub(crate) resolver: OriginResolver,
    /// Secrets that results leave out.
    pub(crate) mask: SecretMask,
    /// Settings without effect, for a person.
    pub warnings: Vec<String>,
}

impl ScenarioMix {
    /// Compiles the scenarios of a load, and resolves their hosts.
    pub(crate) fn compile(options: &Options, keep_alive: bool, seed: u64) -> Result<Self, PlanError> {
        let resolver = OriginResolver::new(options)?;
        let mut compiler = MixCompiler::new(options, keep_alive, seed, &resolver);
        for source in &options.scenarios {
            compiler.add(source)?;
        }
        let MixCompiler { scenarios, mut warnings, mistakes, homes, mask, .. } = compiler;
        if !mistakes.is_empty() {
            // Several bodies of one request have the same mistakes in the rest of it.
            let mut seen = BTreeSet::new();
            let lines: Vec<&str> = mistakes.iter().map(String::as_str).filter(|line| seen.insert(*line)).collect();
            return Err(PlanError::Scenario(lines.join("\n")));
        }
        check_homes(options, &homes)?;
        warnings.extend(think_warning(&options.scenarios, &scenarios).map(str::to_owned));
        let weights: Vec<f64> = options.scenarios.iter().map(|source| source.weight).collect();
        if weights.iter().any(|weight| !weight.is_finite() || *weight < 0.0) || weights.iter().sum::<f64>() <= 0.0 {
            return Err(PlanError::Value("scenario", "weights must be 0 or more, and not all 0".into()));
        }
        let users: Option<Vec<u64>> = options.scenarios.iter().map(|source| source.users).collect();
        let deal = users.map(|users| UserDeal::new(&users));
        let choice = RequestSource::new(&weights, seed);
        let file = |scenario: &CompiledScenario| scenario.data.as_ref().map(|data| data.file);
        let has_one_file = scenarios.iter().all(|scenario| file(scenario) == Some(0));
        Ok(Self { scenarios, choice, has_one_file, deal, resolver, mask, warnings })
    }

    /// Scenario of the iteration of this number, of a user of a closed loop or of a free one.
    pub(crate) fn pick(&self, number: u64, user: Option<u64>) -> u32 {
        if let (Some(deal), Some(user)) = (&self.deal, user) {
            return deal.scenario(user);
        }
        u32::try_from(self.choice.pick(number)).unwrap_or(0)
    }

    /// Ordinal of the iteration of this number among those with the same data; threads have `ordinals` of their own.
    pub(crate) fn ordinal(&self, ordinals: &mut ScenarioOrdinals, number: u64) -> u64 {
        // Where users have their scenarios, numbers alone do not decide; a row of another file's iteration is left out.
        let is_number = self.has_one_file || self.deal.is_some();
        if is_number { number } else { ordinals.of(|number| self.data_file(number), number) }
    }

    /// File of data of the iteration of this number.
    fn data_file(&self, number: u64) -> Option<usize> {
        Some(self.scenarios.get(self.choice.pick(number))?.data.as_ref()?.file)
    }

    /// Number of iterations of the load until one has no row of data, and the file whose rows have run out.
    pub(crate) fn data_end(&self) -> Option<(u64, &str)> {
        let limited = |data: &&ScenarioData| data.iterations().is_some();
        let mut all = self.scenarios.iter().filter_map(|scenario| scenario.data.as_ref());
        let first = all.find(limited)?;
        if self.has_one_file {
            return Some((first.iterations()?, &first.name));
        }
        if self.deal.is_some() {
            let all = self.scenarios.iter().filter_map(|scenario| scenario.data.as_ref());
            return all.filter_map(|data| Some((data.iterations()?, data.name.as_str()))).min();
        }
        let mut ordinals = ScenarioOrdinals::default();
        (0..MAX_PLANNED_ITERATIONS).find_map(|number| {
            let data = self.scenarios.get(self.choice.pick(number))?.data.as_ref()?;
            let ordinal = ordinals.of(|number| self.data_file(number), number);
            (ordinal >= data.iterations()?).then_some((number, data.name.as_str()))
        })
    }

    /// Whether a scenario has a setup that has not been played.
    pub(crate) fn has_setup(&self) -> bool {
        self.scenarios.iter().any(|scenario| scenario.has_setup)
    }

    /// Checks what the kind of loop must fit: a closed one with this number of users, or an open one.
    pub(crate) fn check_loop(&self, users: Option<u64>) -> Result<(), PlanError> {
        if users.is_none() && self.scenarios.iter().any(|scenario| scenario.pacing.is_some()) {
            return Err(PlanError::Conflict(
                "--pacing is for a closed loop (--users, -c); in the open loop the rate decides when iterations begin",
            ));
        }
        self.scenarios.iter().filter_map(|scenario| scenario.data.as_ref()).try_for_each(|data| data.check_users(users))
    }

    /// Names of the scenarios, in order.
    pub fn names(&self) -> Vec<String> {
        self.scenarios.iter().map(|scenario| scenario.name.clone()).collect()
    }

    /// Names and checks of all steps, in order.
    pub fn step_facts(&self) -> Vec<StepFacts> {
        distinct(self.scenarios.iter().flat_map(|scenario| scenario.steps.iter().cloned()).collect())
    }

    /// When responses to steps are ended on purpose, in the order of the steps; empty if none ever is.
    pub fn stream_ends(&self) -> Vec<StreamEndRule> {
        let steps = self.scenarios.iter().flat_map(|scenario| &scenario.plan.steps);
        let rules: Vec<StreamEndRule> = steps.map(|step| step.stream_end.clone()).collect();
        if rules.iter().all(StreamEndRule::is_empty) { Vec::new() } else { rules }
    }

    /// URLs of all steps, in order: as they are written, without credentials and secrets.
    pub fn step_urls(&self) -> Vec<String> {
        let urls = self.scenarios.iter().flat_map(|scenario| {
            let scheme = if scenario.codec.is_some() { CALL_SCHEME } else { HTTP_SCHEME };
            scenario.plan.steps.iter().map(move |step| step.url_text().replacen(HTTP_SCHEME, scheme, 1))
        });
        let shown = |url: String| if UrlText::of(&url).scheme.is_some() { without_user(&url) } else { url };
        urls.map(|url| self.mask.shown(&shown(url))).collect()
    }

    /// Checks of a step by its index among all steps.
    pub(crate) fn step_checks(&self, step: u32) -> &[String] {
        let mut all = self.scenarios.iter().flat_map(|scenario| &scenario.steps);
        all.nth(step as usize).map_or(&[], |facts| &facts.checks)
    }

    /// Name of a step by its index among all steps.
    pub(crate) fn step_name(&self, step: u32) -> &str {
        let mut all = self.scenarios.iter().flat_map(|scenario| &scenario.steps);
        all.nth(step as usize).map_or("", |facts| facts.name.as_str())
    }

    /// Origins with their addresses.
    pub(crate) fn origins(&self) -> impl Iterator<Item = (&RequestOrigin, &ResolvedOrigin)> {
        self.scenarios.iter().flat_map(|scenario| scenario.plan.origins.iter().zip(&scenario.addresses))
    }
}

/// Checks that all scenarios have one origin to which the credentials of the command line belong.
fn check_homes(options: &Options, homes: &[RequestOrigin]) -> Result<(), PlanError> {
    let secret = options.headers.iter().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    let Some(name) = secret.chain(options.auth.as_ref().map(|_| "Authorization")).find(|name| is_secret_name(name))
    else {
        return Ok(());
    };
    let Some((first, others)) = homes.split_first() else { return Ok(()) };
    match others.iter().find(|home| !first.credential_origin().shares_credentials_with(&home.credential_origin())) {
        Some(other) => Err(PlanError::Scenario(format!(
            "{name} of the command line belongs to one host, and the scenarios have {first} and {other}; write the URL \
             to which it belongs before -s, e.g. weir load {first} -s FILE"
        ))),
        None => Ok(()),
    }
}

/// Steps whose names differ, though they may differ in secrets alone.
pub(crate) fn distinct(mut steps: Vec<StepFacts>) -> Vec<StepFacts> {
    let mut seen: HashMap<(String, String), usize> = HashMap::with_capacity(steps.len());
    for step in &mut steps {
        let count = seen.entry((step.scenario.clone(), step.name.clone())).or_default();
        *count += 1;
        if *count > 1 {
            step.name = format!("{} ({count})", step.name);
        }
    }
    steps
}

/// Warning for think time where no scenario has a second step.
fn think_warning(sources: &[ScenarioSource], all: &[CompiledScenario]) -> Option<&'static str> {
    let is_used = |one: &CompiledScenario| one.plan.steps.len() > 1 || one.pacing.is_some();
    let has_think = all.iter().any(|one| one.plan.think != ThinkTime::None);
    // A step that is repeated has think time between its requests.
    let has_repeat = sources.iter().any(|source| source.text.contains("repeat"));
    (has_think && !has_repeat && !all.iter().any(is_used))
        .then_some("think time has no effect: it is between steps, and there is only one; --pacing spaces iterations")
}
