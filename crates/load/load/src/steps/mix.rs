//! Scenarios of a plan, compiled.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use weir_base::Nanos;
use weir_hurl::{Assertion, ErrorReport, ParseError};
use weir_measure::run_steps::StepFacts;
use weir_net::wire::parse_header;
use weir_pace::source::RequestSource;
use weir_request::secret_mask::SecretMask;
use weir_request::secret_names::is_secret_name;
use weir_request::url::HttpUrl;
use weir_request::url_text::UrlText;
use weir_scenario::data::{ScenarioOrdinals, ThinkTime};
use weir_scenario::plan::{
    BodyCodec, RequestOrigin, ScenarioPlan, ScenarioSettings, StepRules, StreamEndRule, call_status_mistake,
    merge_missing_values,
};
use weir_scenario::value::Value;

use super::file_root::FileRoot;
use super::scenario_data::{ParsedData, ScenarioData};
use super::single_request::{LITERAL_BRACES, mistake};
use super::user_deal::UserDeal;
use super::{OriginResolver, ResolvedOrigin, ScenarioSource, first_iteration, scenario_hook, without_user};
use crate::grpc::JsonCodec;
use crate::options::Options;
use crate::plan::{PlanError, typed_auth};

/// Beginning of the URLs of steps, with TLS as well, and that of calls of gRPC in their place.
const HTTP_SCHEME: &str = "http";
const CALL_SCHEME: &str = "grpc";

/// Wait of a client before its first retry, on average.
const CLIENT_RETRY_INTERVAL: Nanos = Nanos::from_millis(100);

/// Warning about data that no step uses.
fn unused_columns(data: &ScenarioData) -> String {
    let columns = data.columns().join(", ");
    let example = data.columns().first().map_or("name", String::as_str);
    format!("nothing uses the columns of {}: {columns}; write e.g. {{{{{example}}}}}", data.name)
}

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

/// Scenario of a mix.
#[derive(Debug)]
pub(crate) struct CompiledScenario {
    /// Name, unique in the mix.
    pub(crate) name: String,
    pub(crate) plan: ScenarioPlan,
    /// Index of its first step among the steps of the mix.
    pub(crate) first_step: u32,
    /// Addresses of the origins of the plan.
    pub(crate) addresses: Vec<ResolvedOrigin>,
    /// Rows of data, one for each iteration.
    pub(crate) data: Option<ScenarioData>,
    /// Minimum time between the starts of two iterations of a user.
    pub(crate) pacing: Option<Nanos>,
    /// Coding of messages, if the steps are calls of gRPC.
    pub(crate) codec: Option<Arc<JsonCodec>>,
    has_setup: bool,
    steps: Vec<StepFacts>,
}

impl ScenarioMix {
    /// Compiles the scenarios of a load, and resolves their hosts.
    pub(crate) fn compile(options: &Options, keep_alive: bool, seed: u64) -> Result<Self, PlanError> {
        let resolver = OriginResolver::new(options)?;
        let (mut scenarios, mut warnings, mut mistakes) = (Vec::new(), Vec::new(), Vec::new());
        let mut homes = Vec::new();
        let mask = options.secret_mask();
        let mut first_step = 0;
        let mut parsed = ParsedData::default();
        for source in &options.scenarios {
            let mut settings = settings(source, options, keep_alive)?;
            let target = source.made_for.as_ref().or(options.grpc.target());
            let codec = target.map(|target| target.call().map(|call| Arc::new(JsonCodec(call))));
            let codec = codec.transpose().map_err(PlanError::Grpc)?;
            settings.codec = codec.clone().map(|codec| codec as Arc<dyn BodyCodec>);
            let success_mistake = settings.success.as_ref().filter(|_| codec.is_some()).and_then(call_status_mistake);
            if let (Some(error), Some(text)) = (success_mistake, &options.success) {
                return Err(PlanError::Scenario(mistake(&format!("--success '{text}'"), &error, "")));
            }
            let hooks = scenario_hook::check(source, &settings)?;
            homes.extend(hooks.homes);
            let data = source.data.as_ref().map(|data| parsed.parse(data)).transpose()?;
            settings.columns =
                data.iter().flat_map(|data| data.columns().iter().cloned()).chain(hooks.variables).collect();
            let root = FileRoot::of(source);
            let mut files = |name: &str| root.read(name);
            let compiled = weir_hurl::parse(&source.text)
                .and_then(|file| ScenarioPlan::compile(&file, &settings, &mut files))
                .map_err(|errors| described(source, &errors));
            let plan = match compiled {
                Ok(plan) => plan,
                Err(description) => {
                    mistakes.push(description);
                    continue;
                }
            };
            homes.extend(plan.home.clone());
            if codec.is_some() {
                first_iteration::check_first_call(source, &plan, data.as_ref(), seed)?;
            }
            warnings.extend(plan.warnings.iter().map(|warning| format!("{}:{warning}", source.name)));
            if let Some(data) = data.as_ref().filter(|_| !plan.uses_columns) {
                warnings.push(unused_columns(data));
            }
            let addresses = plan.origins.iter().map(|origin| resolver.resolve(origin)).collect::<Result<_, _>>()?;
            let name = unique_name(&mask.text(source.scenario_name()), &scenarios);
            let prefix = if options.scenarios.len() > 1 { format!("{name}: ") } else { String::new() };
            let steps: Vec<StepFacts> = plan.steps.iter().map(|step| facts(&name, &prefix, step, &mask)).collect();
            let count = u32::try_from(steps.len()).unwrap_or(u32::MAX);
            let pacing = source.pacing.map(Nanos::from);
            let has_setup = source.setup.is_some();
            scenarios.push(CompiledScenario {
                name,
                plan,
                first_step,
                addresses,
                data,
                pacing,
                codec,
                has_setup,
                steps,
            });
            first_step += count;
        }
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

fn facts(scenario: &str, prefix: &str, step: &weir_scenario::plan::ScenarioStep, mask: &SecretMask) -> StepFacts {
    let checks = (0..step.checks.len()).filter_map(|check| step.checks.text(u32::try_from(check).ok()?));
    StepFacts {
        name: mask.shown(&format!("{prefix}{}", step.name)),
        scenario: scenario.to_owned(),
        checks: checks.map(|check| mask.shown(check)).collect(),
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

/// Name that no earlier scenario has: `shop (2)` of a second `shop`.
fn unique_name(stem: &str, earlier: &[CompiledScenario]) -> String {
    let is_taken = |name: &str| earlier.iter().any(|scenario| scenario.name == name);
    if !is_taken(stem) {
        return stem.to_owned();
    }
    let numbered = (2_usize..).map(|number| format!("{stem} ({number})"));
    numbered.into_iter().find(|name| !is_taken(name)).unwrap_or_else(|| stem.to_owned())
}

/// Mistakes of a scenario with their places: lines of a file, or options.
fn described(source: &ScenarioSource, errors: &[ParseError]) -> String {
    if source.line_origins.is_empty() {
        return ErrorReport::new(&source.name, &source.text, &merge_missing_values(errors)).to_string();
    }
    let of_option = |error: &ParseError| {
        let line = usize::try_from(error.position.line).unwrap_or_default().saturating_sub(1);
        let origin = source.line_origins.get(line).map_or("", String::as_str);
        let is_template = error.expected.contains("variable") && !origin.starts_with("--check");
        mistake(origin, error, if is_template { LITERAL_BRACES } else { "" })
    };
    errors.iter().map(of_option).collect::<Vec<_>>().join("\n")
}

fn settings(source: &ScenarioSource, options: &Options, keep_alive: bool) -> Result<ScenarioSettings, PlanError> {
    let header = |text: &String| {
        // Templates are checked where they are compiled.
        let (name, value) = match text.split_once(':').filter(|_| text.contains("{{")) {
            Some((name, value)) => (name.trim(), value.trim()),
            None => parse_header(text)?,
        };
        Ok((name.to_owned(), value.to_owned()))
    };
    let think = match &source.think {
        Some(text) => ThinkTime::parse(text).map_err(|why| PlanError::Value("think", why.to_string()))?,
        None => ThinkTime::default(),
    };
    let given = source.variables.iter().map(|(name, value)| (name.clone(), Value::of_text(value)));
    let captured = source.captured.iter().map(|(name, json)| (name.clone(), Value::of_json(json.as_bytes())));
    let success = options.success.as_ref().map(|text| {
        let named = |error| PlanError::Scenario(mistake(&format!("--success '{text}'"), &error, ""));
        Assertion::parse(text).map_err(named)
    });
    Ok(ScenarioSettings {
        variables: given.chain(captured).collect(),
        secret_variables: options.redact.clone(),
        base_url: base_url(&options.url)?,
        headers: options.headers.iter().map(header).collect::<Result<_, PlanError>>()?,
        user: typed_auth(options)?.map(Cow::into_owned),
        keep_alive,
        accept_encoding: "gzip, deflate, br".to_owned(),
        think,
        rules: rules(source),
        continue_on_error: source.continue_on_error,
        keep_cookies: source.keep_cookies,
        success: success.transpose()?,
        ..ScenarioSettings::default()
    })
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

/// URL before paths, with its scheme; checked here, since it is the one of the command line.
fn base_url(typed: &str) -> Result<Option<String>, PlanError> {
    if typed.is_empty() {
        return Ok(None);
    }
    HttpUrl::parse_typed(typed)?;
    let scheme = if UrlText::of(typed).scheme.is_some() { "" } else { "http://" };
    Ok(Some(format!("{scheme}{typed}")))
}

/// Rules of steps without options: with a maximum of redirects they follow them, and with one of retries they are retried
/// as by clients.
fn rules(source: &ScenarioSource) -> StepRules {
    let mut rules = StepRules::default();
    if let Some(max) = source.max_redirects.filter(|max| *max > 0) {
        (rules.follow_redirects, rules.max_redirects) = (true, max);
    }
    if let Some(max) = source.client_retries.filter(|max| *max > 0) {
        (rules.max_retries, rules.retry_interval, rules.retries_as_client) = (max, CLIENT_RETRY_INTERVAL, true);
    }
    rules
}
