//! `weir serve llm`: the APIs of OpenAI and Anthropic, with a language model whose times are known.
//!
//! A request is checked (`error`), limited (`limits`), and then generated (`generation`): it waits for a slot,
//! then for the prefill, then for one token after the other, as [`LlmPace`](crate::llm::pace::LlmPace)
//! decides. The text is made up. `record` has the times that a client has to find.

mod anthropic_text;
mod counts;
mod embeddings;
mod error;
mod generation;
mod limits;
mod models;
mod openai_text;
mod options;
pub mod pace;
mod record;
mod request;
mod responses_text;
mod seen_blocks;
mod texts;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use prometheus_client::registry::Registry;
use tokio::sync::Semaphore;

use self::anthropic_text::AnthropicTexts;
use self::counts::{GenerationCollector, GenerationCounts};
use self::error::LlmError;
use self::generation::{Generation, GenerationStep};
use self::limits::TokenLimits;
use self::openai_text::OpenAiTexts;
pub use self::options::{Options, TokenRange};
use self::request::GenerationRequest;
use self::responses_text::ResponsesTexts;
use self::seen_blocks::SeenBlocks;
use self::texts::ResponseTexts;
use crate::record_log::RecordLog;
use crate::responses::{CONTENT_TYPE_JSON, CONTENT_TYPE_JSON_LINES, response};
use crate::written_body::{BodyWriter, written};
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_events::llm::LlmApi;
use weir_machine::clock;
use weir_server::{self as server, ReadBodyError, RequestBody, RequestContext, ResponseBody, ServiceReply, Timer};
use weir_workload::mix::Behaviour;

/// Service with a language model.
#[derive(Debug)]
pub struct Service {
    shared: Arc<SharedModel>,
}

/// Model and counts that all responses share.
#[derive(Debug)]
struct SharedModel {
    options: Options,
    limits: TokenLimits,
    slots: Semaphore,
    /// Requests that have a slot.
    running: AtomicU64,
    counts: GenerationCounts,
    log: RecordLog,
    /// Blocks of prompts, with a file of records.
    seen_blocks: Option<SeenBlocks>,
    /// Number of the next request, over all event loops; indexes the random draws.
    number: AtomicU64,
    rngs: ModelRngs,
}

/// Streams of random numbers, one per choice.
#[derive(Debug)]
struct ModelRngs {
    mix: SeededRng,
    slow_delay: SeededRng,
    prefill: SeededRng,
    output_tokens: SeededRng,
    cut: SeededRng,
}

/// Maximum body of a request, in bytes.
const MAX_BODY_BYTES: usize = 32 << 20;
/// Retry time of a rate limit on purpose.
const LIMITED_RETRY: Nanos = Nanos::SECOND;

impl Service {
    /// Service with these options.
    ///
    /// # Errors
    /// First invalid option, in one line.
    pub fn new(options: Options) -> Result<Self, String> {
        let [mix, slow_delay, prefill, output_tokens, cut] =
            [64, 65, 66, 67, 68].map(|salt| SeededRng::new(options.seed, salt));
        let shared = SharedModel {
            limits: TokenLimits::new(&options)?,
            slots: Semaphore::new(options.slots.clamp(1, Semaphore::MAX_PERMITS)),
            running: AtomicU64::new(0),
            counts: GenerationCounts::default(),
            log: RecordLog::new(options.record.as_deref())?,
            seen_blocks: options.record.as_ref().map(|_| SeenBlocks::new(options.block_tokens)),
            number: AtomicU64::new(0),
            rngs: ModelRngs { mix, slow_delay, prefill, output_tokens, cut },
            options,
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Handles a request to one of the APIs.
    async fn generate(&self, api: LlmApi, headers: &HeaderMap, body: &[u8], context: &RequestContext) -> ServiceReply {
        let shared = &self.shared;
        shared.counts.enter();
        let number = shared.number.fetch_add(1, Ordering::Relaxed);
        let behaviour = shared.options.mix.at(&shared.rngs.mix, number);
        match behaviour {
            Behaviour::Reset => return ServiceReply::Reset,
            Behaviour::Hang => return context.hang().await,
            _ => {}
        }
        let (reply, limit_headers) = self.decide(api, headers, body, number, (context.timer(), context.began()));
        let mut reply = match reply {
            Ok(generation) => match behaviour {
                Behaviour::Error => LlmError::internal().response(api),
                Behaviour::Limited => LlmError::limited("requests", Some(LIMITED_RETRY)).response(api),
                _ if api == LlmApi::Embeddings => self.embed(&generation, body).await,
                _ if generation.request.is_stream => stream(generation, behaviour == Behaviour::Garbage),
                _ => whole(&generation, behaviour == Behaviour::Garbage).await,
            },
            Err(error) => error.response(api),
        };
        reply.headers_mut().extend(limit_headers);
        let name = HeaderName::from_static(if api == LlmApi::Messages { "request-id" } else { "x-request-id" });
        if let Ok(id) = HeaderValue::from_str(&format!("req_{:x}_{number}", shared.options.seed)) {
            reply.headers_mut().insert(name, id);
        }
        shared.counts.respond(reply.status().as_u16());
        reply.into()
    }

    /// Response to be generated, or the first error of the request; and the rate-limit headers.
    fn decide(
        &self,
        api: LlmApi,
        headers: &HeaderMap,
        body: &[u8],
        number: u64,
        (timer, began): (&Timer, Nanos),
    ) -> (Result<Generation, LlmError>, HeaderMap) {
        let shared = &self.shared;
        let options = &shared.options;
        let key = match self.key(headers) {
            Ok(key) => key,
            Err(error) => return (Err(error), HeaderMap::new()),
        };
        let mut request = match GenerationRequest::read(api, body, shared.seen_blocks.is_some()) {
            Ok(request) if options.has_model(&request.model) => request,
            Ok(request) => return (Err(LlmError::unknown_model(&request.model)), HeaderMap::new()),
            Err(error) => return (Err(error), HeaderMap::new()),
        };
        let output_tokens = self.output_tokens(&request, number);
        let tokens = request.input_tokens.saturating_add(output_tokens);
        if tokens > options.max_context {
            return (Err(LlmError::too_long(tokens, options.max_context)), HeaderMap::new());
        }
        let limited = shared.limits.judge(key, timer.now(), tokens, api);
        let text = std::mem::take(&mut request.text);
        if limited.outcome.is_ok() {
            request.blocks = shared.seen_blocks.as_ref().map(|seen| seen.take(&text));
        }
        let behaviour = options.mix.at(&shared.rngs.mix, number);
        let extra_delay = match behaviour {
            Behaviour::Slow => options.slow_delay.at(&shared.rngs.slow_delay, number),
            _ => Nanos::ZERO,
        };
        let is_cut = request.is_stream && shared.rngs.cut.unit_at(number.wrapping_mul(2)) <= options.cut;
        let cut_draw = shared.rngs.cut.unit_at(number.wrapping_mul(2).wrapping_add(1));
        let generation = Generation {
            shared: Arc::clone(shared),
            timer: timer.clone(),
            number,
            began,
            read: timer.now(),
            request,
            output_tokens,
            extra_delay,
            cut_at: is_cut.then_some(((cut_draw * output_tokens as f64) as u64).min(output_tokens - 1)),
        };
        (limited.outcome.map(|()| generation), limited.headers)
    }

    /// API key of a request; empty without one.
    fn key<'h>(&self, headers: &'h HeaderMap) -> Result<&'h str, LlmError> {
        let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = text(&AUTHORIZATION).and_then(|value| {
            let (scheme, key) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
        });
        let key = text(&HeaderName::from_static("x-api-key")).or(bearer);
        let valid = &self.shared.options.api_keys;
        match key {
            _ if valid.is_empty() => Ok(key.unwrap_or_default()),
            Some(key) if valid.iter().any(|valid| valid == key) => Ok(key),
            _ => Err(LlmError::unauthorized(key.is_none())),
        }
    }

    fn output_tokens(&self, request: &GenerationRequest, number: u64) -> u64 {
        if request.api == LlmApi::Embeddings {
            return 1;
        }
        let drawn = self.shared.options.output_tokens.at(&self.shared.rngs.output_tokens, number);
        match request.max_tokens {
            Some(maximum) if request.ignores_end => maximum,
            Some(maximum) => maximum.min(drawn),
            None => drawn,
        }
    }

    /// Embeddings take a slot and the prefill.
    async fn embed(&self, generation: &Generation, body: &[u8]) -> Response<ResponseBody> {
        let body = match embeddings::body(body, &generation.request.model, self.shared.options.seed) {
            Ok(body) => body,
            Err(error) => return error.response(LlmApi::Embeddings),
        };
        // Nothing is cut that is not streamed.
        let _ = generation.run(&BodyWriter::default(), |_| ()).await;
        response(StatusCode::OK, CONTENT_TYPE_JSON, body)
    }

    /// Response to `GET /v1/models` and `/v1/models/NAME`.
    fn models(&self, headers: &HeaderMap, name: &str) -> Response<ResponseBody> {
        let is_anthropic = models::is_anthropic(headers);
        let api = if is_anthropic { LlmApi::Messages } else { LlmApi::Chat };
        if let Err(error) = self.key(headers) {
            return error.response(api);
        }
        let body = match name {
            "" => models::list(&self.shared.options.models, is_anthropic),
            name if self.shared.options.has_model(name) => models::entry(name, is_anthropic).to_string(),
            name => return LlmError::unknown_model(name).response(api),
        };
        response(StatusCode::OK, CONTENT_TYPE_JSON, body)
    }
}

/// Texts of a response in the form of its API, created at this time, in seconds since 1970.
fn texts_of(generation: &Generation, created_s: u64) -> Box<dyn ResponseTexts> {
    match generation.request.api {
        LlmApi::Messages => Box::new(AnthropicTexts::new(generation)),
        LlmApi::Responses => Box::new(ResponsesTexts::new(generation, created_s)),
        _ => Box::new(OpenAiTexts::new(generation, created_s)),
    }
}

/// A streamed response. Garbage is an event in the middle that is not JSON.
fn stream(generation: Generation, has_garbage: bool) -> Response<ResponseBody> {
    let body = written(move |writer| async move {
        let mut texts = texts_of(&generation, created_s());
        let chunks = generation.output_tokens.div_ceil(generation.shared.options.tokens_per_chunk.max(1));
        let mut chunk = 0;
        let ended = generation.run(&writer, |step| {
            let is_text = matches!(step, GenerationStep::Text(_));
            chunk += u64::from(is_text);
            let mut event = texts.event(&generation, step);
            if has_garbage && is_text && chunk == chunks.div_ceil(2) {
                // The brace that ends the data is missing.
                event = event.replace("}\n\n", "\n\n");
            }
            writer.write(event);
        });
        ended.await.map_err(|_| "cut on purpose".into())
    });
    let mut reply = Response::new(body);
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    reply
}

/// A response that is not streamed. Garbage is its first half.
async fn whole(generation: &Generation, has_garbage: bool) -> Response<ResponseBody> {
    let mut text = String::new();
    let writer = BodyWriter::default();
    let ended = generation.run(&writer, |step| {
        if let GenerationStep::Text(part) = step {
            text.push_str(part);
        }
    });
    // Nothing is cut that is not streamed.
    let _ = ended.await;
    let mut body = Bytes::from(texts_of(generation, created_s()).body(generation, &text));
    if has_garbage {
        body.truncate(body.len() / 2);
    }
    response(StatusCode::OK, CONTENT_TYPE_JSON, body)
}

/// Seconds since 1970.
fn created_s() -> u64 {
    clock::unix_s() as u64
}

/// API of a path.
fn api_of(path: &str) -> Option<LlmApi> {
    match path {
        "/v1/chat/completions" => Some(LlmApi::Chat),
        "/v1/completions" => Some(LlmApi::Completions),
        "/v1/responses" => Some(LlmApi::Responses),
        "/v1/embeddings" => Some(LlmApi::Embeddings),
        "/v1/messages" => Some(LlmApi::Messages),
        _ => None,
    }
}

impl server::StatelessService for Service {
    async fn handle(&self, request: Request<RequestBody>, context: &RequestContext) -> ServiceReply {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        if let Some(api) = api_of(path) {
            if head.method != Method::POST {
                return LlmError::wrong_method().response(api).into();
            }
            return match context.read_body(body, MAX_BODY_BYTES).await {
                Ok(body) => self.generate(api, &head.headers, &body, context).await,
                Err(ReadBodyError::TooLong) => {
                    LlmError::invalid("the body is too long".to_owned(), None).response(api).into()
                }
                Err(ReadBodyError::Broken) => {
                    LlmError::invalid("a body that ends early".to_owned(), None).response(api).into()
                }
            };
        }
        let model = path.strip_prefix("/v1/models").filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_known = model.is_some() || matches!(path, "/record" | "/stats" | "/health");
        if is_known && head.method != Method::GET {
            return LlmError::wrong_method().response(LlmApi::Chat).into();
        }
        match (path, model) {
            (_, Some(name)) => self.models(&head.headers, name.trim_start_matches('/')).into(),
            ("/record", _) => response(StatusCode::OK, CONTENT_TYPE_JSON_LINES, self.shared.log.recent()).into(),
            ("/stats", _) => {
                let running = self.shared.running.load(Ordering::Relaxed);
                response(StatusCode::OK, CONTENT_TYPE_JSON, self.shared.counts.json(running)).into()
            }
            ("/health", _) => response(StatusCode::OK, CONTENT_TYPE_JSON, "{}").into(),
            _ => LlmError::unknown_path(path).response(LlmApi::Chat).into(),
        }
    }

    fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(GenerationCollector(Arc::clone(&self.shared))));
    }
}
