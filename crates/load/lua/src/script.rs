//! Script that is ready for a load.

use std::fmt;
use std::sync::{Arc, Mutex};

use weir_load::program::{ProgramThread, StepNames, ThreadProgram, UserProgram};
use weir_machine::lock::lock;
use weir_measure::Run;
use weir_measure::run_steps::StepFacts;
use weir_net::target::SocketAddress;
use weir_net::wire::WireRequest;
use weir_pace::shard::Shard;
use weir_scenario::plan::RequestOrigin;

use super::failure::describe;
use super::source::ScriptSource;
use super::statistics::{Statistics, summary};
use super::thread_handle::{ThreadHandle, ThreadState};
use super::user_thread::{DefinedFunctions, LuaThread};
use super::vm::Vm;
use super::watchdog::Watchdog;

/// Threads of a script: those of this process, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptThreads {
    /// Number of threads of this process.
    pub count: u64,
    /// Their numbers among all.
    pub numbers: Shard,
    /// Number of threads of all processes.
    pub all: u64,
}

/// Name of the step that all requests of a script are counted under.
const STEP: &str = "request";

/// Script that is ready for a load: `setup` and `init` have run for each thread.
pub struct LuaScript {
    /// First, so that it ends before the interpreters that it watches.
    _watchdog: Watchdog,
    name: String,
    steps: StepNames,
    /// Interpreter of `setup` and `done`.
    main: Vm,
    threads: Mutex<Vec<Option<LuaThread>>>,
    /// Interpreters of the threads, which `done` asks for values.
    _interpreters: Vec<Arc<Vm>>,
    single_request: Option<WireRequest>,
}

impl fmt::Debug for LuaScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LuaScript").field("name", &self.name).finish_non_exhaustive()
    }
}

impl LuaScript {
    /// Loads a script and runs its `setup` and `init` for each of its threads; those of other processes are set up as
    /// well, so that a script that numbers its threads numbers all of them. `stuck` is called from another
    /// thread when a call of the load can neither be awaited nor interrupted; it should end the process.
    ///
    /// # Errors
    /// One line with the script's mistake; nothing was sent.
    pub fn new(
        source: &ScriptSource,
        threads: ScriptThreads,
        stuck: impl Fn(&str) + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let watchdog = Watchdog::start(source.timeout, Box::new(stuck));
        let watchdog = watchdog.map_err(|error| format!("cannot start a thread: {error}"))?;
        let main = Vm::new(source, 0)?;
        let targets = source.addresses.iter().filter_map(|address| match address {
            SocketAddress::Inet(address) => Some(*address),
            SocketAddress::Unix(_) => None,
        });
        let targets: Arc<[_]> = targets.collect();
        let mut defined = DefinedFunctions::default();
        let (mut users, mut interpreters) = (Vec::new(), Vec::new());
        let own = (0..threads.count).map(|thread| threads.numbers.nth(thread));
        let (mut own, mut index) = (own.peekable(), 0);
        for number in 0..threads.all {
            if own.next_if_eq(&number).is_none() {
                let elsewhere = ThreadHandle(Arc::new(ThreadState::elsewhere(Arc::clone(&targets))));
                main.call("setup", elsewhere)?;
                continue;
            }
            let vm = Arc::new(Vm::new(source, number + 1)?);
            let state = Arc::new(ThreadState::new(Arc::clone(&targets)));
            state.set_lua(&vm.lua);
            begin(&main, &vm, &state, source)?;
            watchdog.add(Arc::clone(&vm.watch));
            if index == 0 {
                let [request, delay, response] = ["request", "delay", "response"].map(|name| vm.defines(name));
                defined = DefinedFunctions { request, delay, response };
            }
            let mut thread = LuaThread::new(&vm, Arc::clone(&state), defined, source.errors, origin(source))?;
            if number == 0 && defined.request {
                // As wrk: the first thread's first request is checked, and not sent.
                thread.checked_request()?;
            }
            state.begin();
            users.push(Some(thread));
            interpreters.push(vm);
            index += 1;
        }
        // What init has printed comes before the load.
        main.call("flush", ())?;
        let single_request = single_request(&users, defined);
        let steps = StepNames::default();
        steps.index(source.stem(), STEP);
        Ok(Self {
            _watchdog: watchdog,
            name: source.stem().to_owned(),
            steps,
            main,
            threads: Mutex::new(users),
            _interpreters: interpreters,
            single_request,
        })
    }

    /// The request that all users send always, if the script has none of `request`, `delay` and `response`: then it is
    /// a plain load.
    pub fn single_request(&self) -> Option<&WireRequest> {
        self.single_request.as_ref()
    }

    /// Checks that `done` can do its work in a process without threads.
    ///
    /// # Errors
    /// One line, if it may ask threads of other processes for values.
    pub fn check_coordinator(&self) -> Result<(), String> {
        if self.main.defines("setup") && self.main.defines("done") {
            let name = &self.name;
            return Err(format!(
                "{name}.lua has setup() and done(), which share values of threads; agents are other processes: leave out --on"
            ));
        }
        Ok(())
    }

    /// Calls `done` with the result, if the script has it.
    ///
    /// # Errors
    /// One line with the script's error.
    pub fn done(&self, run: &Run) -> Result<(), String> {
        if !self.main.defines("done") {
            return Ok(());
        }
        let summary = summary(&self.main.lua, run).map_err(|error| describe(&error, "done"))?;
        let (latencies, rates) = (Statistics::of_latencies(run), Statistics::of_rates(run, run.manifest.threads));
        let result = self.main.call("done", (summary, latencies, rates));
        result.and(self.main.call("flush", ()))
    }
}

/// Sets up a thread and its interpreter.
fn begin(main: &Vm, vm: &Vm, state: &Arc<ThreadState>, source: &ScriptSource) -> Result<(), String> {
    let handle = || ThreadHandle(Arc::clone(state));
    vm.wrk.set("thread", handle()).map_err(|error| describe(&error, "setup"))?;
    main.call("setup", handle())?;
    let args = vm.lua.create_table().map_err(|error| describe(&error, "init"))?;
    // As in wrk, the URL is number 0.
    for (index, arg) in std::iter::once(&source.url).chain(&source.args).enumerate() {
        args.raw_set(index, arg.as_str()).map_err(|error| describe(&error, "init"))?;
    }
    vm.call("init", args)
}

fn origin(source: &ScriptSource) -> RequestOrigin {
    let target = &source.target;
    let host = if target.host.contains(':') { format!("[{}]", target.host) } else { target.host.clone() };
    RequestOrigin { is_tls: target.tls, host, port: target.port }
}

/// The one request of all threads.
fn single_request(threads: &[Option<LuaThread>], defined: DefinedFunctions) -> Option<WireRequest> {
    if defined != DefinedFunctions::default() {
        return None;
    }
    let mut requests = threads.iter().map(|thread| thread.as_ref()?.single_request());
    let first = requests.next()??;
    let bodyless = threads.first()?.as_ref()?.requests().first()?.is_bodyless;
    requests.all(|request| request == Some(first)).then(|| WireRequest { bytes: first.to_vec(), bodyless, weight: 1.0 })
}

impl UserProgram for LuaScript {
    fn scenarios(&self) -> Vec<String> {
        vec![self.name.clone()]
    }

    fn steps(&self) -> Vec<StepFacts> {
        self.steps.facts()
    }

    fn thread(&self, thread: ProgramThread) -> Result<Box<dyn ThreadProgram>, String> {
        let index = usize::try_from(thread.index).unwrap_or(usize::MAX);
        let taken = lock(&self.threads).get_mut(index).and_then(Option::take);
        taken.map(|thread| Box::new(thread) as Box<dyn ThreadProgram>).ok_or_else(|| "the script has run".to_owned())
    }
}
