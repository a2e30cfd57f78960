//! One interpreter: the table `wrk`, the script, and its entry points.
#![allow(unsafe_code, reason = "wrk's scripts have all of Lua's libraries, also ffi and debug")]

use std::sync::Arc;

use mlua::{Function, Lua, Table};
use weir_base::rng::SeededRng;
use weir_request::request_framing::FramingError;

use super::address::{ScriptAddress, accepts, lookup};
use super::failure::{describe, place};
use super::interrupt::InterruptHandle;
use super::source::ScriptSource;
use super::watchdog::CallWatch;

/// Stream of the seeds of `math.random`.
const RANDOM_SALT: u64 = 0x6c75_6100;
/// Functions that the load calls, in Lua; run before the script.
const API: &str = include_str!("api.lua");

/// Interpreter with a script.
#[derive(Debug)]
pub(crate) struct Vm {
    pub(crate) lua: Lua,
    pub(crate) wrk: Table,
    pub(crate) watch: Arc<CallWatch>,
    entries: Table,
}

impl Vm {
    /// Interpreter that has run the script; `number` of the thread from 1, or 0 for that of `setup` and `done`.
    ///
    /// # Errors
    /// One line with the script's mistake.
    pub(crate) fn new(source: &ScriptSource, number: u64) -> Result<Self, String> {
        let vm = Self::with_api(source, number).map_err(|error| describe(&error, ""))?;
        // A first line for the shell is not Lua.
        let skipped = match source.text.first() {
            Some(b'#') => source.text.iter().position(|byte| *byte == b'\n').unwrap_or(source.text.len()),
            _ => 0,
        };
        let script = vm.lua.load(&source.text[skipped..]).set_name(format!("@{}", source.name));
        script.exec().map_err(|error| describe(&error, ""))?;
        Ok(vm)
    }

    fn with_api(source: &ScriptSource, number: u64) -> mlua::Result<Self> {
        // SAFETY: the libraries that could break Lua's own safety are the script author's to use, as in wrk.
        let lua = unsafe { Lua::unsafe_new() };
        let native = lua.create_table()?;
        native.set("lookup", lua.create_function(lookup_entry)?)?;
        native.set("connect", lua.create_function(|_, address: ScriptAddress| Ok(accepts(&address.0)))?)?;
        let coding_error = |_: &Lua, value: String| Ok(FramingError::Coding(value).to_string());
        native.set("coding_error", lua.create_function(coding_error)?)?;
        let entries: Table = lua.load(API).set_name("=wrk").call(native)?;
        let wrk: Table = lua.globals().get("wrk")?;
        let target = &source.target;
        wrk.set("scheme", if target.tls { "https" } else { "http" })?;
        wrk.set("host", target.host.as_str())?;
        // As in wrk, only a port that the URL names.
        let has_port =
            target.url.split('/').nth(2).is_some_and(|authority| authority.ends_with(&format!(":{}", target.port)));
        wrk.set("port", has_port.then(|| target.port.to_string()))?;
        wrk.set("path", target.path.as_str())?;
        wrk.set("method", source.method.as_str())?;
        wrk.set("body", source.body.as_ref().map(|body| lua.create_string(body)).transpose()?)?;
        let headers: Table = wrk.get("headers")?;
        for (name, value) in &source.headers {
            headers.set(name.as_str(), value.as_str())?;
        }
        if source.seed != 0 {
            let seed: Function = lua.globals().get::<Table>("math")?.get("randomseed")?;
            // Threads with the same seed would send the same requests.
            seed.call::<()>(SeededRng::new(source.seed, RANDOM_SALT).unit_at(number))?;
        }
        let watch = Arc::new(CallWatch::new(InterruptHandle::new(&lua)?));
        Ok(Self { lua, wrk, watch, entries })
    }

    /// Error in a function of the script as one line. A tail call, as in `return wrk.format(...)`, leaves no line of the
    /// script in the traceback: then it is the one where the function begins.
    pub(crate) fn describe(&self, error: &mlua::Error, called: &str) -> String {
        let text = describe(error, called);
        let place = if place(&text).is_none() { self.place_of(called) } else { None };
        place.map_or(text.clone(), |at| format!("{at}: {text}"))
    }

    /// File and line where a function of the script begins.
    fn place_of(&self, name: &str) -> Option<String> {
        let function = self.lua.globals().get::<Function>(name).or_else(|_| self.wrk.get::<Function>(name)).ok()?;
        let info = function.info();
        Some(format!("{}:{}", info.short_src?, info.line_defined?))
    }

    /// Entry point of the load.
    pub(crate) fn entry(&self, name: &str) -> Result<Function, String> {
        self.entries.get(name).map_err(|error| describe(&error, name))
    }

    /// Calls an entry point once, before or after the load.
    ///
    /// # Errors
    /// One line with the script's error.
    pub(crate) fn call(&self, name: &str, args: impl mlua::IntoLuaMulti) -> Result<(), String> {
        self.entry(name)?.call::<()>(args).map_err(|error| describe(&error, name))
    }

    /// Whether the script defines a function.
    pub(crate) fn defines(&self, name: &str) -> bool {
        self.entry("defines").is_ok_and(|defines| defines.call(name).unwrap_or(false))
    }
}

/// `wrk.lookup(host, service)`; numbers are services too.
fn lookup_entry(_: &Lua, (host, service): (String, String)) -> mlua::Result<Vec<ScriptAddress>> {
    lookup(&host, &service)
}
