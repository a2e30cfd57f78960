//! A user, as the functions of the host see it.
#![allow(unsafe_code, reason = "a type without values of the interpreter may be kept in it")]

use std::cell::{Cell, OnceCell, RefCell};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::Arc;

use rquickjs::{Ctx, Exception, JsLifetime, Result, qjs};
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_scenario::cookie_jar::CookieJar;

use super::exchange::{ExpectedStatuses, UserExchanges};
use super::response_fields::ResponseObjects;
use super::sockets::ScriptSockets;
use crate::engine::failure::{ScriptFailure, of_value};
use crate::engine::fiber::Pauses;
use crate::engine::interrupt::{ComputeTime, Interruption};
use crate::metrics::ThreadMetrics;
use crate::script::Script;
use weir_machine::clock;

/// Longest time that the file itself may run.
pub(crate) const INIT_TIMEOUT: Nanos = Nanos(60_000_000_000);

/// What a user's stack is resumed with.
#[derive(Debug)]
pub(crate) enum Resume {
    /// Runs the script's file.
    Load,
    /// Begins an iteration.
    Begin(IterationFacts),
    /// A wait is over, or a request has ended.
    Woken,
    /// The iteration is cut off.
    Cut,
    /// The user ends.
    Stop,
}

/// Why a user's stack pauses.
#[derive(Debug)]
pub(crate) enum Pause {
    /// The script's file has run.
    Loaded,
    /// A wait for the end of a request, at most until this time.
    Await(Nanos),
    /// A wait until this time.
    WaitUntil(Nanos),
    /// The iteration has ended.
    End(IterationEnd),
}

/// How an iteration has ended.
#[derive(Debug)]
pub(crate) enum IterationEnd {
    /// Its function has returned.
    Returned,
    /// It has thrown, as one line; with the lines that led to it.
    Threw(ScriptFailure),
    /// It was cut off.
    Cut,
    /// The script ends the run, with its reason.
    Aborted(String),
}

/// An iteration that begins.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IterationFacts {
    /// Index of the scenario.
    pub(crate) scenario: usize,
    /// Number of the user's iteration in its scenario, from 0.
    pub(crate) of_user: u64,
    /// Number of the iteration in its scenario, over all users.
    pub(crate) in_scenario: u64,
}

/// Part of a script's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The file itself runs.
    #[default]
    Init,
    /// A function of it runs.
    Run,
}

/// A user.
#[derive(Debug)]
pub(crate) struct UserState {
    pub(crate) script: Arc<Script>,
    pub(crate) pauses: Rc<Pauses<Resume, Pause>>,
    pub(crate) compute: ComputeTime,
    pub(crate) phase: Cell<Phase>,
    /// Number of the user in the whole load, from 1; 0 for none of it.
    pub(crate) number: u64,
    /// Time of the load, as of the last event.
    pub(crate) now: Cell<Nanos>,
    pub(crate) iteration: Cell<IterationFacts>,
    /// Cookie jars; the first is that of all requests without another.
    pub(crate) jars: RefCell<Vec<CookieJar>>,
    pub(crate) exchanges: RefCell<UserExchanges>,
    pub(crate) sockets: RefCell<ScriptSockets>,
    pub(crate) metrics: Rc<ThreadMetrics>,
    /// Group that the script is in, with two colons before each name.
    pub(crate) group: RefCell<String>,
    /// Tags of all samples of the user.
    pub(crate) tags: RefCell<Vec<(String, String)>>,
    pub(crate) rng: RefCell<SeededRng>,
    /// Reasons of promises that were rejected, as long as nothing handles them.
    pub(crate) rejections: RefCell<Vec<ScriptFailure>>,
    /// Reason of the script to end the run.
    pub(crate) abort: RefCell<Option<String>>,
    /// Whether the script computes, while others have their turn.
    pub(crate) computes: Cell<bool>,
    /// Whether the iteration that was cut off computed.
    pub(crate) was_computing: Cell<bool>,
    /// Whether the present iteration is cut off.
    pub(crate) is_cut: Cell<bool>,
    /// Place where the last iteration that was cut off was.
    pub(crate) cut_place: RefCell<Option<String>>,
    /// Place of the last call before the interpreter was interrupted.
    pub(crate) interrupted_at: RefCell<Option<String>>,
    /// Value that the function of the last iteration has returned, as JSON, if it is kept.
    pub(crate) result: RefCell<Option<String>>,
    pub(crate) keeps_result: Cell<bool>,
    /// Statuses of successes, where a request has none of its own.
    pub(crate) default_expected: RefCell<ExpectedStatuses>,
    /// Class of responses; none before a module of requests is imported.
    pub(crate) responses: OnceCell<ResponseObjects>,
    /// Interpreter that it is attached to.
    context: Cell<*mut qjs::JSContext>,
    /// Whether the script has had timers, promises of requests or sockets, which run after its function.
    pub(crate) has_late_work: Cell<bool>,
}

// SAFETY: it holds no value of an interpreter.
unsafe impl JsLifetime<'_> for UserState {
    type Changed<'to> = UserState;
}

impl UserState {
    /// User number `number`, from 1, of a script; its values are those of `metrics`.
    pub(crate) fn new(script: Arc<Script>, number: u64, metrics: Rc<ThreadMetrics>) -> Self {
        let compute = ComputeTime::default();
        compute.set_until(clock::monotonic() + INIT_TIMEOUT);
        let rng = SeededRng::new(script.seed.wrapping_add(number), Self::RANDOM_SALT);
        Self {
            script,
            pauses: Rc::default(),
            compute,
            phase: Cell::default(),
            number,
            now: Cell::default(),
            iteration: Cell::default(),
            jars: RefCell::new(vec![CookieJar::default()]),
            exchanges: RefCell::default(),
            sockets: RefCell::default(),
            metrics,
            group: RefCell::default(),
            tags: RefCell::default(),
            rng: RefCell::new(rng),
            rejections: RefCell::default(),
            abort: RefCell::default(),
            computes: Cell::new(false),
            was_computing: Cell::new(false),
            is_cut: Cell::new(false),
            cut_place: RefCell::default(),
            interrupted_at: RefCell::default(),
            context: Cell::new(std::ptr::null_mut()),
            result: RefCell::default(),
            keeps_result: Cell::new(false),
            default_expected: RefCell::default(),
            responses: OnceCell::new(),
            has_late_work: Cell::new(false),
        }
    }

    /// Makes this user that of an interpreter.
    ///
    /// # Errors
    /// If it has one.
    pub(crate) fn attach(self: &Rc<Self>, ctx: &Ctx<'_>) -> Result<()> {
        if ctx.store_userdata(Rc::clone(self)).map_err(|_| rquickjs::Error::Unknown)?.is_some() {
            return Err(rquickjs::Error::Unknown);
        }
        self.context.set(ctx.as_raw().as_ptr());
        // SAFETY: what is stored keeps the user as long as the interpreter is used.
        unsafe { qjs::JS_SetContextOpaque(ctx.as_raw().as_ptr(), Rc::as_ptr(self).cast_mut().cast()) };
        Ok(())
    }

    /// Whether the present iteration is not to go on.
    pub(crate) fn is_over(&self) -> bool {
        self.is_cut.get() || self.compute.is_ending() || self.abort.borrow().is_some()
    }

    /// Pauses the script of this user.
    ///
    /// # Errors
    /// An exception that nothing catches, if the script is to end; one that `what` is not there in the init context.
    pub(crate) fn pause(&self, ctx: &Ctx<'_>, pause: Pause, what: &str) -> Result<Resume> {
        if self.phase.get() == Phase::Init {
            return Err(Exception::throw_type(ctx, &format!("{what} is not available in the init context")));
        }
        let resumed = self.pauses.pause(pause);
        // Not before the pause: what has come while others had their turn may be what the script waits for.
        self.exchanges.borrow_mut().end_wait();
        self.sockets.borrow_mut().end_wait();
        self.compute.begin_turn();
        match resumed {
            None => Err(Exception::throw_type(ctx, &format!("{what} is not available here"))),
            Some(Resume::Stop) => {
                self.compute.end();
                Err(uncatchable(ctx, "the user ends"))
            }
            Some(Resume::Cut) => {
                self.is_cut.set(true);
                Err(uncatchable(ctx, "the iteration is cut off"))
            }
            Some(resumed) => Ok(resumed),
        }
    }

    /// Takes note of the place of the last call. The exception of an interruption has that of a loop's beginning.
    fn note_place(&self) {
        let Some(context) = NonNull::new(self.context.get()) else { return };
        // SAFETY: the interpreter calls its handler of interruptions, and is there.
        let ctx = unsafe { Ctx::from_raw(context) };
        if let Ok(error) = Exception::from_message(ctx, "") {
            self.interrupted_at.replace(of_value(error.into_object().into_value()).place);
        }
    }

    /// Lets other users have their turn, if that of this one is over.
    pub(crate) fn look_at_turn(&self) {
        if self.compute.look() == Interruption::Turn {
            let _ = self.give_turn();
        }
    }

    /// Lets other users have their turn, while the script computes; true if it is to end.
    pub(crate) fn give_turn(&self) -> bool {
        // Without a load there is no other user.
        if self.phase.get() == Phase::Init || self.number == 0 {
            return false;
        }
        self.computes.set(true);
        // Later than now, so that responses are read before it goes on.
        let until = self.now.get() + self.compute.turn() + Nanos::MILLI;
        let resumed = self.pauses.pause(Pause::WaitUntil(until));
        self.computes.set(false);
        self.compute.begin_turn();
        match resumed {
            Some(Resume::Stop) => {
                self.compute.end();
                true
            }
            Some(Resume::Cut) => {
                self.is_cut.set(true);
                self.was_computing.set(true);
                self.note_place();
                true
            }
            _ => false,
        }
    }
}

/// Calls a function with the user of an interpreter; `None` without one.
pub(crate) fn with_user<T>(ctx: &Ctx<'_>, call: impl FnOnce(&UserState) -> T) -> Option<T> {
    // SAFETY: it is null, or the user that `attach` has set and that the interpreter keeps.
    let user = unsafe { qjs::JS_GetContextOpaque(ctx.as_raw().as_ptr()).cast::<UserState>().as_ref() };
    user.map(call)
}

/// User of an interpreter.
pub(super) fn attached(ctx: &Ctx<'_>) -> Option<Rc<UserState>> {
    // SAFETY: it is null, or what `attach` has set: the contents of an `Rc` that the interpreter keeps.
    unsafe {
        let user = qjs::JS_GetContextOpaque(ctx.as_raw().as_ptr()).cast::<UserState>().cast_const();
        if user.is_null() {
            return None;
        }
        Rc::increment_strong_count(user);
        Some(Rc::from_raw(user))
    }
}

/// Exception that the script cannot catch.
pub(crate) fn uncatchable(ctx: &Ctx<'_>, why: &str) -> rquickjs::Error {
    let Ok(exception) = rquickjs::Exception::from_message(ctx.clone(), why) else {
        return Exception::throw_internal(ctx, why);
    };
    let value = exception.into_object().into_value();
    // SAFETY: both belong to this interpreter, which marks the error object.
    unsafe { rquickjs::qjs::JS_SetUncatchableError(ctx.as_raw().as_ptr(), value.as_raw()) };
    ctx.throw(value)
}
