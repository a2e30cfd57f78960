//! One response as it is generated: a slot, the prefill, token by token.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::SharedModel;
use super::record::{GenerationEnd, GenerationRecord, GenerationStart};
use super::request::GenerationRequest;
use crate::vocabulary;
use crate::written_body::BodyWriter;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_server::Timer;

/// Step of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GenerationStep<'a> {
    /// A slot is free: the prefill begins.
    Started,
    /// The text of one token or several.
    Text(&'a str),
    /// All tokens are there.
    Finished,
}

/// Response to be generated.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) shared: Arc<SharedModel>,
    pub(super) timer: Timer,
    /// Number of the request, which indexes the random draws.
    pub(super) number: u64,
    /// Arrival of the request.
    pub(super) began: Nanos,
    /// Time when its body was read and understood.
    pub(super) read: Nanos,
    pub(super) request: GenerationRequest,
    pub(super) output_tokens: u64,
    /// Delay before all else, of slow responses.
    pub(super) extra_delay: Nanos,
    /// Index of the token before which the response breaks off.
    pub(super) cut_at: Option<u64>,
}

/// The response broke off on purpose.
#[derive(Clone, Copy, Debug)]
pub(super) struct CutOff;

impl Generation {
    /// Reason of the end, in OpenAI's words.
    pub(super) fn finish_reason(&self) -> &'static str {
        if self.request.max_tokens == Some(self.output_tokens) { "length" } else { "stop" }
    }

    /// Generates the response, and waits for the writer of its body behind each step. The record is complete when this
    /// ends or is dropped.
    pub(super) async fn run(
        &self,
        writer: &BodyWriter,
        mut on_step: impl FnMut(GenerationStep<'_>),
    ) -> Result<(), CutOff> {
        let Self { shared, timer, began, .. } = self;
        let pace = &shared.options.pace;
        let (began_at, read) = (*began, self.read);
        let start = GenerationStart { number: self.number, began: began_at, read, output_tokens: self.output_tokens };
        let mut record = GenerationRecord::new(shared, timer, &self.request, start);
        timer.sleep_until(*began + self.extra_delay).await;
        // Never closed; first come, first served.
        let Ok(_slot) = shared.slots.acquire().await else { return Err(CutOff) };
        shared.running.fetch_add(1, Ordering::Relaxed);
        let _running = RunningGuard(shared);
        let started = timer.now();
        record.set_started(started - *began);
        on_step(GenerationStep::Started);
        let mut due = started + pace.prefill_time(&shared.rngs.prefill, self.number, self.request.input_tokens);
        let times = SeededRng::new(shared.options.seed, (62 << 48) ^ self.number);
        let words = SeededRng::new(shared.options.seed, (63 << 48) ^ self.number);
        let chunk = shared.options.tokens_per_chunk.max(1);
        let mut text = String::new();
        for index in 0..self.output_tokens {
            if index > 0 {
                due += pace.token_time(&times, index, shared.running.load(Ordering::Relaxed));
                text.push(' ');
            }
            if self.cut_at == Some(index) {
                timer.sleep_until(due).await;
                record.end(GenerationEnd::Cut);
                return Err(CutOff);
            }
            text.push_str(vocabulary::word(&words, index));
            if (index + 1) % chunk == 0 || index + 1 == self.output_tokens {
                timer.sleep_until(due).await;
                on_step(GenerationStep::Text(&text));
                record.add_chunk(timer.now() - *began);
                writer.taken().await;
                text.clear();
            }
        }
        on_step(GenerationStep::Finished);
        record.end(GenerationEnd::Complete);
        Ok(())
    }
}

/// Guard of a running request.
#[derive(Debug)]
struct RunningGuard<'a>(&'a SharedModel);

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}
