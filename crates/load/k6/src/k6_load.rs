//! A load of a script, from its file to its result.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use weir_base::Nanos;
use weir_load::program::{ScriptOptions, is_collection};
use weir_load::{LoadPlan, Options, Pacing};
use weir_machine::lock::lock;
use weir_measure::{LoadModel, Run};
use weir_net::target::Target;
use weir_scenario::plan::RequestOrigin;

use crate::engine::module_files::{ModuleFiles, normal};
use crate::init::initialize;
use crate::metrics::MetricSums;
use crate::options::K6Options;
use crate::options::consolidated::{CommandLineLoad, consolidated};
use crate::program::{K6Program, ProgramParts};
use crate::results::{add_counts, judged, results};
use crate::script::{ScenarioFacts, Script, ScriptFile, ScriptInput};
use crate::secret_sources::SecretSources;

/// A load of a script.
#[derive(Debug)]
pub struct K6Load {
    pub(crate) script: Arc<Script>,
    options: ScriptOptions,
    /// Names of the functions that the file exports.
    pub(crate) functions: BTreeSet<String>,
    pub(crate) program: Option<Arc<K6Program>>,
    /// What the functions around the load have measured.
    pub(crate) around: Mutex<MetricSums>,
}

/// Who calls the functions of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum K6Role {
    /// This process, with all users.
    Single,
    /// This process, for one iteration that is shown.
    Played,
    /// Agents, which this process coordinates.
    Coordinator,
}

/// Memory of a user's interpreter, by default.
const HEAP_BYTES: usize = 256 * 1024 * 1024;
/// Name of the function of an iteration.
const DEFAULT: &str = "default";

impl K6Load {
    /// Opens a script: its file runs once.
    ///
    /// # Errors
    /// One line with its mistake.
    pub fn open(options: &ScriptOptions) -> Result<Self, String> {
        let path = std::fs::canonicalize(&options.path);
        let name = options.path.display();
        let path = path.map_err(|error| format!("cannot read the script '{name}': {error}"))?;
        if path.is_dir() {
            return Err(format!("cannot read the script '{name}': it is a folder; name a file in it"));
        }
        let main = path.to_str().ok_or_else(|| format!("cannot read the script '{name}': its path is not UTF-8"))?;
        let environment = environment(&options.environment);
        let read = |path: &str| std::fs::read_to_string(path).map_err(|error| error.to_string());
        let secrets = SecretSources::of(&environment, read).map_err(|why| format!("{name}: {why}"))?;
        let input = ScriptInput {
            main: main.to_owned(),
            url: options.url.clone(),
            environment,
            secrets,
            collection_input: options.collection.json(&options.environment),
            files: ModuleFiles {
                js_lib: options.js_lib.clone(),
                collection: is_collection(&path).then(|| main.to_owned()),
            },
            heap_bytes: options.js_heap.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(HEAP_BYTES),
        };
        let mut script = Script::new(Arc::new(ScriptFile::new(input)));
        let found = initialize(&Arc::new(script.clone()))?;
        let value = serde_json::from_str(&found.options).map_err(|error| format!("{name}: options: {error}"))?;
        script.options = K6Options::read(&value).map_err(|why| format!("{name}: {why}"))?;
        script.options_json = if value.is_null() { "{}".to_owned() } else { found.options };
        let plan = script.options.metric_plan(script.file.registry.all());
        script.metrics = Arc::new(plan.map_err(|why| format!("{name}: {why}"))?);
        for scenario in &script.options.scenarios {
            if !found.functions.contains(&scenario.exec) {
                return Err(format!(
                    "{name}: the scenario '{}' needs the function '{}', which is not exported",
                    scenario.name, scenario.exec
                ));
            }
        }
        if let Some(json) = &options.setup_data {
            let _ = script.setup_data.set(json.clone());
        }
        let around = Mutex::new(MetricSums::new(&script.metrics));
        let functions = found.functions;
        Ok(Self { script: Arc::new(script), options: options.clone(), functions, program: None, around })
    }

    /// Name of the function that is an iteration of a load of the command line.
    fn function(&self, role: K6Role) -> Result<String, String> {
        let missing = "no function is exported by default; add e.g. export default function () { ... }";
        let named = self.options.user.clone().filter(|_| role == K6Role::Played);
        let first = self.script.options.scenarios.first().map(|scenario| scenario.exec.clone());
        let name = match named {
            Some(name) => name,
            None if self.functions.contains(DEFAULT) => DEFAULT.to_owned(),
            None => first.ok_or(missing)?,
        };
        if self.functions.contains(&name) { Ok(name) } else { Err(format!("no function '{name}' is exported")) }
    }

    /// Users of the script's options, if these are the short form of one scenario.
    pub fn users_of_short_form(&self) -> Option<u64> {
        match &self.script.options.scenarios[..] {
            [only] if only.name == DEFAULT => Some(only.pace.users()),
            _ => None,
        }
    }

    /// Whether the options of the script describe a load.
    pub fn has_load(&self) -> bool {
        !self.script.options.scenarios.is_empty()
    }

    /// The options of a load with what the script's options say; those that are given win.
    pub fn apply(&self, options: &mut Options, has_own_load: bool) {
        let own = &self.script.options;
        options.tls.insecure |= own.skips_tls_verification;
        options.no_keepalive |= own.no_connection_reuse;
        options.tls.offer.clone_from(&own.tls);
        options.address_rules = own.address_rules;
        if !has_own_load && self.has_load() {
            options.users = Some(self.users());
            options.duration = Some(Duration::from_nanos(self.until().0));
        }
        if !has_own_load && !self.has_load() {
            // As in k6, one iteration of one user.
            (options.connections, options.requests) = (Some(1), Some(1));
        }
        options.script_name = Some(self.options.path.display().to_string());
    }

    /// Secrets of the script, which nothing shows.
    pub fn secrets(&self) -> &[String] {
        self.script.file.secrets.values()
    }

    fn users(&self) -> u64 {
        self.script.options.scenarios.iter().map(|scenario| scenario.pace.users()).sum()
    }

    fn until(&self) -> Nanos {
        let ends = self.script.options.scenarios.iter().map(|scenario| scenario.pace.until());
        ends.max().unwrap_or(Nanos::ZERO)
    }

    /// The load with the script's users. `has_own_load`: the command line has the load, and not the script's options.
    ///
    /// # Errors
    /// One line.
    pub fn prepare(
        &mut self,
        options: &Options,
        plan: LoadPlan,
        has_own_load: bool,
        role: K6Role,
    ) -> Result<LoadPlan, String> {
        let name = self.options.path.display().to_string();
        let mut script = (*self.script).clone();
        let has_paces = !has_own_load && self.has_load() && role != K6Role::Played;
        let has_arrivals = has_paces && script.options.scenarios.iter().any(|it| it.executor.ends_with("arrival-rate"));
        let paces = match has_paces {
            true => {
                script.scenarios = script.options.scenarios.iter().map(ScenarioFacts::of).collect();
                let paces = script.options.scenarios.iter().map(|scenario| scenario.pace.clone().sharded(plan.shard));
                paces.collect()
            }
            false => {
                let exec = self.function(role).map_err(|why| format!("{name}: {why}"))?;
                let executor = match plan.pacing {
                    Pacing::Closed(_) => "constant-vus",
                    Pacing::Open(_) | Pacing::Recorded => "constant-arrival-rate",
                };
                script.scenarios = vec![ScenarioFacts::of_command_line(DEFAULT, executor, plan.until)];
                script.scenarios[0].exec = exec;
                Vec::new()
            }
        };
        let of_command_line = script.scenarios.first().filter(|_| !has_paces).map(|scenario| CommandLineLoad {
            executor: scenario.executor_name(),
            exec: &scenario.exec,
            users: plan.users,
            seconds: plan.until.as_secs_f64(),
        });
        let written = serde_json::from_str(&script.options_json).unwrap_or_default();
        script.options_json = consolidated(&written, of_command_line).to_string();
        script.users = plan.users;
        script.seed = plan.seed;
        script.load = Arc::new(options.clone());
        script.head = head(&script, &plan.script_headers(options).map_err(|error| error.to_string())?);
        let program = K6Program::new(ProgramParts {
            script: Arc::new(script),
            paces,
            stops_at_exceptions: false,
            keeps_result: false,
            target: (!options.url.is_empty()).then(|| origin(&plan.target)),
            is_closed: matches!(plan.pacing, Pacing::Closed(_)) && !has_arrivals,
            shard: plan.shard,
        });
        self.program = Some(Arc::clone(&program));
        // Its requests have their own methods.
        let plan = LoadPlan { method: String::new(), ..plan }.masking(self.secrets());
        if role == K6Role::Coordinator {
            return Ok(plan);
        }
        let plan = plan.driven_by(program.clone(), options).map_err(|error| error.to_string())?;
        program.set_until(plan.until);
        Ok(plan.masking(self.secrets()))
    }

    /// The script as agents open it.
    pub fn for_agents(&self, has_own_load: bool) -> ScriptOptions {
        let own = self.script.options.scenarios.iter().map(|scenario| scenario.name.clone());
        let has_paces = !has_own_load && self.has_load();
        ScriptOptions {
            scenarios: if has_paces { own.collect() } else { vec![DEFAULT.to_owned()] },
            has_own_load,
            setup_data: self.script.setup_data.get().cloned(),
            js_lib: self.options.js_lib.as_deref().map(absolute),
            files: if self.is_shippable() { self.files() } else { Vec::new() },
            ..self.options.clone()
        }
    }

    /// Paths of the files that the script has read so far: its own, modules, and those that it opens.
    fn files(&self) -> Vec<PathBuf> {
        let file = &self.script.file;
        let paths = file.modules.paths().into_iter().chain(file.files.paths());
        paths.map(|path| absolute(&path)).collect::<BTreeSet<PathBuf>>().into_iter().collect()
    }

    /// Whether other machines can run it with copies of what it has read. The rows of a collection have an absolute path,
    /// and sources of secrets are files of this machine.
    fn is_shippable(&self) -> bool {
        self.options.collection.data.is_none() && self.secrets().is_empty()
    }

    /// What the script of an agent leaves to that of the coordinator.
    pub fn report(&self) -> Option<String> {
        self.program.as_ref().map(|program| program.saved())
    }

    /// Takes what the scripts of agents have left.
    ///
    /// # Errors
    /// One line, if it is not that of this script.
    pub fn add_reports(&self, reports: &[String]) -> Result<(), String> {
        let Some(program) = &self.program else { return Ok(()) };
        reports.iter().try_for_each(|report| program.add_saved(report))
    }

    /// Adds to the result what the script has measured itself.
    pub fn complete(&self, run: &mut Run) {
        let Some(program) = &self.program else { return };
        let script = &program.script;
        let mut sums = program.sums();
        sums.merge(&lock(&self.around));
        add_counts(&mut sums, run, program.dropped());
        let seconds = run.duration_s;
        if program.offers_arrivals()
            && let Some(iterations) = &mut run.iterations
        {
            // The scenarios have their rates themselves: the engine has seen users that wait for them.
            run.model = LoadModel::Open;
            iterations.rate_per_s.offered = (iterations.total + program.dropped()) as f64 / seconds.max(1e-9);
        }
        let mut results = results((&script.metrics, &sums), &script.options, &program.notes(), seconds);
        results.failure = lock(&script.file.failure).take();
        run.slo = judged(&script.options, &script.metrics, &sums, seconds);
        run.script = Some(results);
        if run.needs_no_requests() {
            run.trust.allow_no_requests();
        }
        // What the script itself has ended is not an error of it.
        if let Some(why) = program.stop_reason() {
            (run.aborted, run.ended_by) = (Some(why), None);
        }
        if let Some(target) = program.target() {
            run.target.url = format!("{} at {target}", self.options.path.display());
        }
    }
}

/// Absolute path without `.` and `..`.
fn absolute(path: &Path) -> PathBuf {
    normal(&std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}

/// Variables of `__ENV`: those of the process, and those that are given, which win.
fn environment(given: &[(String, String)]) -> Vec<(String, String)> {
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(text).chain(given.iter().cloned()).collect()
}

/// Header lines of all requests.
pub(crate) fn head(script: &Script, given: &[(String, String)]) -> Vec<u8> {
    let default_agent = concat!("weir/", env!("CARGO_PKG_VERSION"));
    let agent = script.options.user_agent.as_deref().unwrap_or(default_agent);
    let has_agent = given.iter().any(|(name, _)| name.eq_ignore_ascii_case("user-agent"));
    let mut head = if has_agent { String::new() } else { format!("User-Agent: {agent}\r\n") };
    for (name, value) in given {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.into_bytes()
}

fn origin(target: &Target) -> RequestOrigin {
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    RequestOrigin { is_tls: target.tls, host, port: target.port }
}
