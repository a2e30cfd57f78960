//! Interrupt of an interpreter from another thread.
//!
//! A hook is the only thing that ends a script's call. LuaJIT lets it be set at any time, also while another thread
//! runs the interpreter; it looks at the hook between instructions, and, as it is built here
//! (`LUAJIT_ENABLE_CHECKHOOK` in `.cargo/config.toml`), also in each turn of a compiled loop. Built without that, and in
//! functions of C, it does not: the [watchdog](super::watchdog) ends the process then.
#![allow(unsafe_code, reason = "mlua's own way to set a hook waits for the end of the call that it should interrupt")]

use std::os::raw::c_int;

use mlua::Lua;
use mlua::ffi::{self, lua_Debug, lua_State};

/// Interpreter that can be interrupted. It is valid as long as the interpreter is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InterruptHandle(*mut lua_State);

// SAFETY: the pointer is only passed to lua_sethook, which other threads may call at any time.
unsafe impl Send for InterruptHandle {}
// SAFETY: as for Send.
unsafe impl Sync for InterruptHandle {}

impl InterruptHandle {
    /// Handle of an interpreter.
    pub(crate) fn new(lua: &Lua) -> mlua::Result<Self> {
        let mut state = std::ptr::null_mut();
        // SAFETY: the closure stores the pointer and touches no stack.
        unsafe { lua.exec_raw::<()>((), |pointer| state = pointer)? };
        Ok(Self(state))
    }

    /// Lets the running call fail at its next instruction, and at each further one.
    pub(crate) fn set(self) {
        // SAFETY: the owner of the handle keeps the interpreter; lua_sethook only writes fields that it reads anew.
        unsafe { ffi::lua_sethook(self.0, Some(fail), ffi::LUA_MASKCOUNT, 1) };
    }

    /// Ends an interrupt, between two calls.
    pub(crate) fn clear(self) {
        // SAFETY: as for `set`.
        unsafe { ffi::lua_sethook(self.0, None, 0, 0) };
    }
}

/// Hook that raises an error. It stays set, so that a script that catches the error is interrupted again.
unsafe extern "C-unwind" fn fail(state: *mut lua_State, _: *mut lua_Debug) {
    // SAFETY: hooks may raise errors; nothing is to be dropped in this frame.
    let _: c_int = unsafe { ffi::luaL_error(state, c"the call took longer than --script-timeout".as_ptr()) };
}
