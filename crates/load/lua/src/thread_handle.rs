//! `thread` in scripts: a worker thread and its interpreter.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use mlua::{Lua, LuaString, MetaMethod, UserData, UserDataFields, UserDataMethods, Value, WeakLua};
use weir_machine::lock::lock;

use super::address::{ScriptAddress, accepts};
use super::transfer::transfer;

/// A worker thread, as its interpreter and that of `setup` and `done` know it.
pub(crate) struct ThreadState {
    /// Interpreter of the thread, which has a handle of the state itself.
    lua: OnceLock<WeakLua>,
    is_stopped: AtomicBool,
    /// Addresses of the target.
    targets: Arc<[SocketAddr]>,
    /// Addresses that the script has set.
    set_addresses: Mutex<Vec<SocketAddr>>,
    /// Number of the one that is set, from 1; 0: none.
    address: AtomicU32,
    /// Whether it is a thread of another process, which is set up for its number alone.
    is_elsewhere: bool,
}

impl fmt::Debug for ThreadState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadState").field("is_stopped", &self.is_stopped).finish_non_exhaustive()
    }
}

impl ThreadState {
    pub(crate) fn new(targets: Arc<[SocketAddr]>) -> Self {
        Self {
            lua: OnceLock::new(),
            is_stopped: AtomicBool::new(false),
            targets,
            set_addresses: Mutex::default(),
            address: AtomicU32::new(0),
            is_elsewhere: false,
        }
    }

    /// Thread of another process: what is set is not kept.
    pub(crate) fn elsewhere(targets: Arc<[SocketAddr]>) -> Self {
        Self { is_elsewhere: true, ..Self::new(targets) }
    }

    /// Sets its interpreter, once.
    pub(crate) fn set_lua(&self, lua: &Lua) {
        let _ = self.lua.set(lua.weak());
    }

    /// Whether the script has stopped the thread.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Begins the load: a stop before it has no effect, as in wrk.
    pub(crate) fn begin(&self) {
        self.is_stopped.store(false, Ordering::Relaxed);
    }

    /// Number of the address that is set, from 1; 0 for that of the target.
    #[inline]
    pub(crate) fn address_number(&self) -> u32 {
        self.address.load(Ordering::Relaxed)
    }

    /// Address of a number from 1.
    pub(crate) fn address(&self, number: u32) -> Option<SocketAddr> {
        lock(&self.set_addresses).get((number as usize).checked_sub(1)?).copied()
    }

    fn set_address(&self, address: SocketAddr) {
        let mut all = lock(&self.set_addresses);
        let known = all.iter().position(|known| *known == address);
        let at = known.unwrap_or_else(|| {
            all.push(address);
            all.len() - 1
        });
        self.address.store(u32::try_from(at + 1).unwrap_or(0), Ordering::Relaxed);
    }

    /// Address that is set, or the first of the target that accepts a connection.
    fn current_address(&self) -> Option<SocketAddr> {
        let set = self.address(self.address_number());
        set.or_else(|| self.targets.iter().find(|address| accepts(address)).or(self.targets.first()).copied())
    }

    fn other_lua(&self) -> mlua::Result<Lua> {
        let lua = self.lua.get().and_then(WeakLua::try_upgrade);
        lua.ok_or_else(|| mlua::Error::runtime("the thread has no interpreter any more"))
    }
}

/// `thread` in a script.
#[derive(Clone, Debug)]
pub(crate) struct ThreadHandle(pub(crate) Arc<ThreadState>);

impl UserData for ThreadHandle {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("addr", |_, this| Ok(this.0.current_address().map(ScriptAddress)));
        fields.add_field_method_set("addr", |_, this, address: ScriptAddress| {
            this.0.set_address(address.0);
            Ok(())
        });
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("get", |lua, this, name: LuaString| {
            if this.0.is_elsewhere {
                return Ok(Value::Nil);
            }
            let other = this.0.other_lua()?;
            // A slice of bytes would be a table.
            let name = other.create_string(&*name.as_bytes())?;
            let value: Value = other.globals().get(name)?;
            transfer(&value, lua)
        });
        methods.add_method("set", |_, this, (name, value): (LuaString, Value)| {
            if this.0.is_elsewhere {
                return Ok(());
            }
            let other = this.0.other_lua()?;
            let name = other.create_string(&*name.as_bytes())?;
            other.globals().set(name, transfer(&value, &other)?)
        });
        methods.add_method("stop", |_, this, ()| {
            this.0.is_stopped.store(true, Ordering::Relaxed);
            Ok(())
        });
        methods.add_meta_method(MetaMethod::ToString, |_, _, ()| Ok("thread"));
    }
}
