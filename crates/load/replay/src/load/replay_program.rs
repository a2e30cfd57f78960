//! Requests of a log as the program of a load: each is an iteration of one request.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::arrival_batches::ArrivalInbox;
use super::replay_shared::{ReplayShared, StatusClasses};
use super::replayed_request::ReplayedRequest;
use weir_base::Nanos;
use weir_base::failure::FailureKind;
use weir_load::program::{
    ProgramAction, ProgramCall, ProgramResponse, ProgramSend, ProgramThread, ThreadProgram, UserProgram,
};
use weir_machine::lock::lock;
use weir_measure::run_steps::StepFacts;
use weir_pace::arrival_queue::ArrivalQueue;

/// Name of the one scenario.
const SCENARIO: &str = "log";

/// Requests of a log as the program of a load.
#[derive(Debug)]
pub(super) struct ReplayProgram {
    routes: Vec<String>,
    /// Queues of the threads, until they are taken.
    queues: Mutex<Vec<Option<ArrivalInbox<ReplayedRequest>>>>,
    warmup: Nanos,
    shared: Arc<ReplayShared>,
}

impl ReplayProgram {
    /// Program whose threads have these queues. Responses to requests before `warmup` are not compared with the log.
    pub(super) fn new(
        routes: Vec<String>,
        queues: Vec<ArrivalInbox<ReplayedRequest>>,
        warmup: Nanos,
        shared: Arc<ReplayShared>,
    ) -> Self {
        Self { routes, queues: Mutex::new(queues.into_iter().map(Some).collect()), warmup, shared }
    }
}

impl UserProgram for ReplayProgram {
    fn scenarios(&self) -> Vec<String> {
        vec![SCENARIO.to_owned()]
    }

    fn steps(&self) -> Vec<StepFacts> {
        let facts = |name: &String| StepFacts { name: name.clone(), scenario: SCENARIO.to_owned(), checks: Vec::new() };
        self.routes.iter().map(facts).collect()
    }

    fn has_script(&self) -> bool {
        false
    }

    fn thread(&self, thread: ProgramThread) -> Result<Box<dyn ThreadProgram>, String> {
        let mut queues = lock(&self.queues);
        let queue = usize::try_from(thread.index).ok().and_then(|index| queues.get_mut(index)?.take());
        let queue = queue.ok_or_else(|| "a log is replayed once".to_owned())?;
        Ok(Box::new(ReplayThread {
            queue,
            users: Vec::new(),
            warmup: self.warmup,
            classes: BTreeMap::new(),
            shared: Arc::clone(&self.shared),
        }))
    }
}

/// Requests of one thread.
#[derive(Debug)]
struct ReplayThread {
    queue: ArrivalInbox<ReplayedRequest>,
    /// Status that the log has of the request of each user.
    users: Vec<Option<u16>>,
    warmup: Nanos,
    /// Responses by the class of the log's status and their own.
    classes: BTreeMap<StatusClasses, u64>,
    shared: Arc<ReplayShared>,
}

impl ThreadProgram for ReplayThread {
    fn refill(&mut self, arrivals: &mut ArrivalQueue) {
        self.queue.refill(arrivals);
    }

    fn begin(&mut self, call: &mut ProgramCall<'_>) -> ProgramAction {
        let request = self.queue.take(call.iteration);
        let Some(request) = request else { return ProgramAction::End { ok: false } };
        let user = call.user as usize;
        if self.users.len() <= user {
            self.users.resize(user + 1, None);
        }
        self.users[user] = request.status;
        call.put_request(&request.bytes);
        ProgramAction::Send(ProgramSend {
            step: request.route,
            intended: call.intended,
            is_bodyless: request.is_bodyless,
            ..ProgramSend::default()
        })
    }

    fn woken(&mut self, _: &mut ProgramCall<'_>) -> ProgramAction {
        ProgramAction::End { ok: true }
    }

    fn response(&mut self, response: &ProgramResponse<'_>, call: &mut ProgramCall<'_>) -> ProgramAction {
        let recorded = self.users.get(call.user as usize).copied().flatten();
        let class = response.status / 100;
        let mut ok = response.status < 400;
        if let Some(expected) = recorded.map(|status| status / 100) {
            if call.intended >= self.warmup {
                let classes = StatusClasses { recorded: expected, received: class };
                *self.classes.entry(classes).or_default() += 1;
            }
            // A client error that the log has as well is what was asked for; one of the server never is.
            if (expected, class) == (4, 4) {
                ok = true;
                call.is_success = Some(true);
            }
        }
        ProgramAction::End { ok }
    }

    fn failed(&mut self, _: FailureKind, _: usize, _: &mut ProgramCall<'_>) -> ProgramAction {
        ProgramAction::End { ok: false }
    }
}

impl Drop for ReplayThread {
    fn drop(&mut self) {
        let mut all = lock(&self.shared.classes);
        for (classes, count) in std::mem::take(&mut self.classes) {
            *all.entry(classes).or_default() += count;
        }
    }
}
