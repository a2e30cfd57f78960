//! A script: its file, and the load that its options describe.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};

use weir_base::Nanos;
use weir_load::Options;
use weir_load::program::request::absolute;
use weir_machine::lock::lock;
use weir_request::url::HttpUrl;

use crate::engine::compiled::CompiledModules;
use crate::engine::module_files::ModuleFiles;
use crate::metrics::MetricPlan;
use crate::metrics::registry::MetricRegistry;
use crate::options::K6Options;
use crate::options::scenarios::ScenarioOptions;
use crate::secret_sources::SecretSources;
use crate::shared_arrays::SharedArrays;
use crate::shared_channels::SharedChannels;
use crate::shared_files::SharedFiles;
use crate::shared_schemas::SharedSchemas;

/// What a script is started with.
#[derive(Debug, Default)]
pub(crate) struct ScriptInput {
    /// Path of the file.
    pub(crate) main: String,
    /// URL before paths; empty without one.
    pub(crate) url: String,
    /// Variables of `__ENV`.
    pub(crate) environment: Vec<(String, String)>,
    /// Variables and rows of a collection of Postman, as JSON.
    pub(crate) collection_input: String,
    pub(crate) files: ModuleFiles,
    /// Memory of a user's interpreter.
    pub(crate) heap_bytes: usize,
    pub(crate) secrets: SecretSources,
}

/// Iterations of this process, as scripts ask for them.
#[derive(Debug, Default)]
pub(crate) struct EndedIterations {
    pub(crate) completed: AtomicU64,
    /// Those that were cut off.
    pub(crate) interrupted: AtomicU64,
    /// Those that have not ended, which is the number of active users.
    pub(crate) active: AtomicU64,
}

/// File of a script, as all users share it.
#[derive(Debug)]
pub(crate) struct ScriptFile {
    pub(crate) main: String,
    url: String,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) collection_input: String,
    pub(crate) modules: CompiledModules,
    pub(crate) registry: MetricRegistry,
    pub(crate) arrays: SharedArrays,
    pub(crate) files: SharedFiles,
    pub(crate) schemas: SharedSchemas,
    pub(crate) channels: SharedChannels,
    pub(crate) secrets: SecretSources,
    pub(crate) heap_bytes: usize,
    pub(crate) iterations: EndedIterations,
    /// Reason of the script why the run is a failure.
    pub(crate) failure: Mutex<Option<String>>,
    /// Number of lines that were written to the log.
    logged: Mutex<u64>,
}

/// Most lines of the log: a line for each of a million iterations is of no use.
const MAX_LOG_LINES: u64 = 10_000;

impl ScriptFile {
    /// File of these inputs; nothing of it has run.
    pub(crate) fn new(input: ScriptInput) -> Self {
        Self {
            main: input.main,
            url: input.url,
            environment: input.environment,
            collection_input: input.collection_input,
            modules: CompiledModules::new(input.files),
            registry: MetricRegistry::default(),
            arrays: SharedArrays::default(),
            files: SharedFiles::default(),
            schemas: SharedSchemas::default(),
            channels: SharedChannels::default(),
            secrets: input.secrets,
            heap_bytes: input.heap_bytes,
            iterations: EndedIterations::default(),
            failure: Mutex::default(),
            logged: Mutex::new(0),
        }
    }

    /// Writes a line of the script's log to stderr, without its secrets.
    pub(crate) fn log(&self, level: &str, text: &str) {
        let text = self.secrets.masked(text);
        let mut logged = lock(&self.logged);
        *logged += 1;
        match *logged {
            lines if lines < MAX_LOG_LINES && level == "info" => eprintln!("{text}"),
            lines if lines < MAX_LOG_LINES => eprintln!("{level}: {text}"),
            MAX_LOG_LINES => eprintln!("weir: the script has written {MAX_LOG_LINES} lines; further ones are left out"),
            _ => {}
        }
    }
}

/// A scenario, as scripts ask for it.
#[derive(Clone, Debug)]
pub(crate) struct ScenarioFacts {
    pub(crate) name: String,
    /// Name of the function that is an iteration.
    pub(crate) exec: String,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) tags: Vec<(String, String)>,
    executor: &'static str,
    pub(crate) start: Nanos,
    end: Nanos,
    iterations: Option<u64>,
}

impl ScenarioFacts {
    /// Facts of a scenario of the options.
    pub(crate) fn of(options: &ScenarioOptions) -> Self {
        Self {
            name: options.name.clone(),
            exec: options.exec.clone(),
            environment: options.environment.clone(),
            tags: options.tags.clone(),
            executor: options.executor,
            start: options.pace.start(),
            end: options.pace.end(),
            iterations: options.pace.iterations(),
        }
    }

    /// The one scenario of a load that the command line describes.
    pub(crate) fn of_command_line(name: &str, executor: &'static str, end: Nanos) -> Self {
        Self {
            name: name.to_owned(),
            exec: "default".to_owned(),
            environment: Vec::new(),
            tags: Vec::new(),
            executor,
            start: Nanos::ZERO,
            end,
            iterations: None,
        }
    }

    /// Name of its executor.
    pub(crate) fn executor_name(&self) -> &'static str {
        self.executor
    }

    /// Share of it that is over, from 0 to 1.
    pub(crate) fn progress(&self, now: Nanos, iteration: u64) -> f64 {
        let by_time = (now - self.start).as_secs_f64() / (self.end - self.start).as_secs_f64().max(1e-9);
        let by_number = self.iterations.map_or(0.0, |all| iteration as f64 / all.max(1) as f64);
        by_time.max(by_number).clamp(0.0, 1.0)
    }
}

/// A script with its options.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) file: Arc<ScriptFile>,
    pub(crate) options: K6Options,
    /// The object as JSON.
    pub(crate) options_json: String,
    pub(crate) metrics: Arc<MetricPlan>,
    pub(crate) scenarios: Vec<ScenarioFacts>,
    /// Value that `setup` has returned, as JSON.
    pub(crate) setup_data: OnceLock<String>,
    /// Header lines of the command line.
    pub(crate) head: Vec<u8>,
    pub(crate) seed: u64,
    pub(crate) users: u64,
    /// Group of its functions; empty but for those around the load.
    pub(crate) group: String,
    /// Options of the load: the way to its hosts.
    pub(crate) load: Arc<Options>,
}

impl Script {
    /// Script whose file is to run.
    pub(crate) fn new(file: Arc<ScriptFile>) -> Self {
        let facts = file.registry.all();
        Self {
            scenarios: vec![ScenarioFacts::of_command_line("default", "constant-vus", Nanos::NEVER)],
            metrics: Arc::new(MetricPlan::new(facts, Vec::new()).unwrap_or_default()),
            file,
            options: K6Options::none(),
            options_json: "{}".to_owned(),
            setup_data: OnceLock::new(),
            head: Vec::new(),
            seed: 0,
            users: 1,
            group: String::new(),
            load: Arc::default(),
        }
    }

    /// Scenario of an index.
    pub(crate) fn scenario(&self, index: usize) -> &ScenarioFacts {
        // There is one at least.
        self.scenarios.get(index).unwrap_or(&self.scenarios[0])
    }

    /// Number of users of all scenarios.
    pub(crate) fn users(&self) -> u64 {
        self.users
    }

    /// URL of a request; what has no host follows the URL of the command line.
    ///
    /// # Errors
    /// One line.
    pub(crate) fn absolute(&self, url: &str) -> Result<HttpUrl, String> {
        absolute(self.file.url.trim_end_matches('/'), url)
    }

    /// Whether requests of it may be calls of gRPC.
    pub(crate) fn makes_calls(&self) -> bool {
        self.file.modules.has_loaded("k6/net/grpc")
    }
}
