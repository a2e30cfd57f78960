//! Crash log of users' functions.
//!
//! A crash ends the process, but the log should name the function. So the signals of crashes have a handler that writes
//! one line if its thread runs a function of a library, restores the previous handler, and lets the signal come again.
//!
//! The handler is async-signal-safe: it reads a thread-local cell, builds the line on its stack, and calls write,
//! sigaction and raise. The line is plain text, also with `--log-format json`.
#![allow(unsafe_code, reason = "no safe crate runs code on a crash's own thread, and asks for a stack to run it on")]

use std::cell::{Cell, OnceCell};
use std::mem::{MaybeUninit, zeroed};
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

use libc::{c_int, c_void, sigaction, siginfo_t};

const CRASH_SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGABRT, "SIGABRT"),
];

/// Stack for the handler and the registers that the kernel saves (up to 11 KiB).
const HANDLER_STACK_BYTES: usize = 64 * 1024;

/// Name of a function in the log.
#[derive(Debug)]
pub(super) struct FunctionLabel(Box<[u8]>);

thread_local! {
    /// Function that this thread runs.
    static CURRENT_LABEL: Cell<*const FunctionLabel> = const { Cell::new(null()) };
    /// Stack of this thread's handler, for functions that have used up their own.
    static SIGNAL_STACK: OnceCell<SignalStack> = const { OnceCell::new() };
}

/// Previous handlers, in the order of [`CRASH_SIGNALS`].
static PREVIOUS_HANDLERS: OnceLock<[sigaction; CRASH_SIGNALS.len()]> = OnceLock::new();

impl FunctionLabel {
    pub(super) fn new(text: &str) -> Self {
        Self(text.bytes().map(|byte| if byte.is_ascii_control() { b' ' } else { byte }).collect())
    }
}

/// Runs a call under this label. To log stack overflows, too, call [`install_signal_stack`] on the thread first.
pub(super) fn run_labelled<T>(label: &FunctionLabel, call: impl FnOnce() -> T) -> T {
    /// Restores the previous label, also if `call` unwinds: a dropped label must not be read.
    struct RestoreLabel(*const FunctionLabel);
    impl Drop for RestoreLabel {
        fn drop(&mut self) {
            CURRENT_LABEL.set(self.0);
        }
    }
    let _leave = RestoreLabel(CURRENT_LABEL.replace(label));
    call()
}

/// Installs the signal stack of this thread, once.
pub(super) fn install_signal_stack() {
    SIGNAL_STACK.with(|stack| {
        stack.get_or_init(SignalStack::new);
    });
}

/// Installs the crash handlers of the process, once.
pub(super) fn install_crash_handlers() {
    PREVIOUS_HANDLERS.get_or_init(|| {
        CRASH_SIGNALS.map(|(signal, _)| {
            // SAFETY: all-zero bytes are a valid `sigaction`: no flags, an empty mask, the default action.
            let (mut ours, mut before): (sigaction, sigaction) = unsafe { (zeroed(), zeroed()) };
            ours.sa_sigaction = on_crash as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            // SAFETY: both pointers are to live values, and `on_crash` has the form that SA_SIGINFO asks for and does
            // nothing that is not allowed in a handler. It fails for signals that cannot be handled; these can.
            unsafe { sigaction(signal, &raw const ours, &raw mut before) };
            before
        })
    });
}

extern "C" fn on_crash(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    let at = CRASH_SIGNALS.iter().position(|(known, _)| *known == signal);
    // A second crash while this one is handled is not logged.
    let label = CURRENT_LABEL.replace(null());
    if !label.is_null() {
        // SAFETY: `run_labelled` keeps the label alive while this thread is in its call, which is what crashed.
        let label = unsafe { &*label };
        let name = at.map_or("a signal", |at| CRASH_SIGNALS[at].1);
        write_stderr(&[b"weir: ", &label.0, b" crashed (", name.as_bytes(), b")\n"]);
    }
    // SAFETY: all-zero bytes are a valid `sigaction`, the default one.
    let default: sigaction = unsafe { zeroed() };
    let before = at.zip(PREVIOUS_HANDLERS.get()).map_or(default, |(at, before)| before[at]);
    // SAFETY: the pointer is to a live value that sigaction itself has filled in, or to the default.
    unsafe { sigaction(signal, &raw const before, null_mut()) };
    // SAFETY: with SA_SIGINFO the kernel hands over a valid siginfo_t.
    let sent = unsafe { (*info).si_code } <= 0;
    if sent {
        // A fault comes again when the instruction is tried again; a signal that was sent (abort, kill) does not.
        // SAFETY: raise may be called in a handler; the signal waits until this one has returned.
        unsafe { libc::raise(signal) };
    }
}

/// Writes a line of at most 512 bytes to stderr.
fn write_stderr(parts: &[&[u8]]) {
    let mut line = [0_u8; 512];
    let mut length = 0;
    for byte in parts.iter().copied().flatten() {
        if let Some(free) = line.get_mut(length) {
            *free = *byte;
            length += 1;
        }
    }
    // SAFETY: the pointer is to at least `length` bytes that live. A failure cannot be reported.
    unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), length) };
}

/// Signal stack of a thread, until it ends.
struct SignalStack(Box<[MaybeUninit<u8>]>);

impl SignalStack {
    fn new() -> Self {
        let mut own = Self(Box::new_uninit_slice(HANDLER_STACK_BYTES));
        let stack = libc::stack_t { ss_sp: own.0.as_mut_ptr().cast(), ss_flags: 0, ss_size: HANDLER_STACK_BYTES };
        // SAFETY: the bytes are this thread's until `drop` has unset them. If it fails, a function that uses up its
        // stack goes unnamed.
        unsafe { libc::sigaltstack(&raw const stack, null_mut()) };
        own
    }
}

impl Drop for SignalStack {
    fn drop(&mut self) {
        let none = libc::stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        // SAFETY: a thread that ends runs no handler of ours, and after this the kernel does not use the bytes.
        unsafe { libc::sigaltstack(&raw const none, null_mut()) };
    }
}
