//! A user: its stack, and what it waits for.

use std::rc::Rc;

use weir_base::Nanos;
use weir_pace::scenario_pace::GivenIteration;

use super::exchange::HttpExchange;
use super::life::run_user;
use crate::engine::fiber::Fiber;
use crate::host::UserState;
use crate::host::state::{IterationEnd, Pause, Resume};

/// What a user waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserWait {
    /// Nothing: it has no iteration.
    Nothing,
    /// The start of the iteration that it has been given.
    Start(Nanos),
    /// The end of a request, at most until this time.
    Request(Nanos),
    /// This time.
    Until(Nanos),
}

/// A user: its stack, and what it waits for.
#[derive(Debug)]
pub(super) struct K6User {
    fiber: Fiber<Resume, Pause>,
    pub(super) state: Rc<UserState>,
    /// Requests on their way.
    pub(super) exchanges: Vec<HttpExchange>,
    pub(super) wait: UserWait,
    /// End of its scenario, up to which it stays though no iteration arrives.
    pub(super) lingers_until: Nanos,
    /// Iteration that it has, or waits for.
    pub(super) given: Option<GivenIteration>,
    /// Whether the iteration that it has been given has begun.
    pub(super) has_begun: bool,
    /// Number of iterations that it was given.
    pub(super) done: u64,
    /// Beginning of the iteration.
    pub(super) began: Nanos,
    /// Time at which the next request should be sent: the intended start of the iteration, the arrival of the last
    /// response, or the end of a wait. What the script takes after it is lateness.
    pub(super) due: Nanos,
    /// Time at which the request that it has to send may be sent, where a rate has put it off.
    pub(super) send_at: Option<Nanos>,
    pub(super) has_failed: bool,
}

impl K6User {
    /// User with this state; the file of its script has run.
    ///
    /// # Errors
    /// If there is no memory for it, or the file has thrown.
    pub(super) fn new(state: UserState) -> Result<Self, String> {
        let state = Rc::new(state);
        let (own, pauses) = (Rc::clone(&state), Rc::clone(&state.pauses));
        let mut fiber = Fiber::new(move |_, _: &_| run_user(&own), move || Rc::clone(&pauses))?;
        match fiber.resume(Resume::Load) {
            Some(Pause::Loaded) => {}
            Some(Pause::End(IterationEnd::Aborted(why))) => return Err(why),
            _ => return Err("the script of a user has ended".to_owned()),
        }
        Ok(Self {
            fiber,
            state,
            exchanges: Vec::new(),
            wait: UserWait::Nothing,
            lingers_until: Nanos::NEVER,
            given: None,
            has_begun: false,
            done: 0,
            began: Nanos::ZERO,
            due: Nanos::ZERO,
            send_at: None,
            has_failed: false,
        })
    }

    /// Continues its script until it pauses; `None` if it has ended.
    pub(super) fn resume(&mut self, input: Resume, now: Nanos) -> Option<Pause> {
        self.state.now.set(now);
        self.state.compute.begin_turn();
        self.fiber.resume(input)
    }
}

impl K6User {
    /// Forgets what belongs to the iteration that has ended.
    pub(super) fn end_iteration(&mut self) {
        (self.has_begun, self.wait, self.send_at) = (false, UserWait::Nothing, None);
        self.exchanges.clear();
        self.state.exchanges.borrow_mut().clear();
        self.state.sockets.borrow_mut().clear();
    }

    /// Takes the request of this key that was on its way.
    pub(super) fn take_exchange(&mut self, key: u32) -> Option<Box<HttpExchange>> {
        let at = self.exchanges.iter().position(|exchange| exchange.key == key)?;
        Some(Box::new(self.exchanges.swap_remove(at)))
    }
}

impl Drop for K6User {
    fn drop(&mut self) {
        // An interpreter is freed on its own stack: the script ends, whatever it does, within a few steps.
        const MAX_STEPS: usize = 1000;
        self.state.compute.end();
        for _ in 0..MAX_STEPS {
            if self.fiber.is_done() || self.fiber.resume(Resume::Stop).is_none() {
                return;
            }
        }
    }
}
