//! Actions of programs: requests, waits, and ends of iterations, threads and runs.

use weir_base::Nanos;
use weir_scenario::plan::OriginId;

/// Next action of a user, as its program decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramAction {
    /// Sends the request of the call.
    Send(ProgramSend),
    /// Sends the request of the call, beside others of the user; [`more`](super::ThreadProgram::more) is called next.
    SendBeside(ProgramSend),
    /// Waits; [`woken`](super::ThreadProgram::woken) is called at this time, in place of an earlier one.
    WaitUntil(Nanos),
    /// Begins the iteration at this time, in place of now; [`woken`](super::ThreadProgram::woken) is called.
    BeginAt(Nanos),
    /// Has no iteration, now or later.
    Idle,
    /// Nothing: other responses to the same send, or events of the response, are still to come.
    Await,
    /// Ends the response that is read as a stream of events where it is; [`response`](super::ThreadProgram::response)
    /// follows.
    EndStream,
    /// Ends the iteration; `ok`: it counts as a success.
    End {
        /// Whether the iteration counts as a success.
        ok: bool,
    },
    /// Ends the iteration where it is: it has been cut off, and counts as neither success nor failure.
    Cut,
    /// Ends this thread; the others go on.
    StopThread,
    /// Ends the run, since the program cannot go on, with the reason.
    Abort(String),
}

/// How the request of a call is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramSend {
    /// Index of the step that the request is counted under.
    pub step: u32,
    /// Destination: 0 is the target of the load, others are those of
    /// [`ThreadProgram::origin`](super::ThreadProgram::origin).
    pub origin: OriginId,
    /// Time at which it should have been sent.
    pub intended: Nanos,
    /// Timeout, if it has one of its own.
    pub timeout: Option<Nanos>,
    /// Whether the response has no body in any case: to a HEAD.
    pub is_bodyless: bool,
    /// Parts of the response that are kept.
    pub keeps: KeptParts,
    /// Number that the program gives it, if a user sends several at a time: its response, or its failure, has it.
    pub key: u32,
}

/// Parts of a response that are kept for the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeptParts {
    /// Nothing but the status: the response costs as in a plain load.
    #[default]
    Nothing,
    /// The head.
    Head,
    /// The head, and the start of the body if its status is 400 or above.
    HeadAndErrorBody,
    /// The head and the body.
    HeadAndBody,
    /// The head, and the events of the body as they arrive: [`events`](super::ThreadProgram::events).
    Events,
    /// The head and the trailers of a call of gRPC that is a stream, and its messages as they arrive:
    /// [`message`](super::ThreadProgram::message). Its request goes on until a [`CallCommand`](super::CallCommand) ends
    /// it.
    Messages,
}

/// One of several requests that are sent together on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelinedRequest {
    /// Offset of its end in the bytes of all of them.
    pub end: usize,
    /// Whether its response has no body in any case: to a HEAD.
    pub is_bodyless: bool,
}

/// Decision about a response whose record was held back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleasedRecord {
    /// Number that the record was held back under.
    pub number: u64,
    /// Whether the response is a success, if the program has decided; otherwise its status does.
    pub is_success: Option<bool>,
    /// Why it is a failure.
    pub failures: Vec<String>,
}
