//! `weir serve grpc`: calls of all four kinds whose behaviour is what the request asks for, faults on purpose, reflection.
//!
//! The service is described in `test.proto`.

mod call;
mod call_error;
mod counts;
mod options;
mod request_messages;
mod schema_service;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::header::CONTENT_TYPE;
use http::{Method, Request, StatusCode};
use prometheus_client::registry::Registry;
use prost::Message;
use weir_base::Nanos;
use weir_base::rng::SeededRng;
use weir_grpc::GrpcSchema;
use weir_grpc::reflection::{ReflectionRequest, ReflectionVersion};
use weir_retry::grpc::is_grpc;
use weir_server::{self as server, RequestBody, RequestContext, ServiceReply};

use self::call::Call;
use self::call_error::{CallError, UNAVAILABLE, UNIMPLEMENTED};
use self::counts::{CallCollector, ServedCalls};
pub use self::options::Options;
use self::request_messages::RequestMessages;
use self::wire::{CollectReply, EchoRequest, ListRequest, ReplyFault, WireDuration};
use crate::responses::{CONTENT_TYPE_JSON, CONTENT_TYPE_TEXT, method_not_allowed, not_found, response};
use crate::written_body::written_to_end;

/// Description of the service.
pub const PROTO: &str = include_str!("test.proto");

/// Full names of the services.
const SERVICES: [&str; 3] =
    ["weir.test.v1.Test", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// Salts of random draws.
const DELAY_SALT: u64 = 1;
const UNAVAILABLE_SALT: u64 = 2;

/// Service with the methods of `weir.test.v1.Test`, reflection and `/stats`.
#[derive(Debug)]
pub struct Service {
    shared: Arc<SharedCalls>,
}

/// State shared by all calls.
#[derive(Debug)]
struct SharedCalls {
    options: Options,
    delays: SeededRng,
    failures: SeededRng,
    schema: GrpcSchema,
    counts: Arc<ServedCalls>,
    number: AtomicU64,
}

/// Schema of `test.proto`.
///
/// # Errors
/// None but by a mistake in that file.
pub fn schema() -> Result<GrpcSchema, String> {
    let mut read = |name: &str| Ok((name == "weir/test.proto").then(|| PROTO.to_owned()));
    GrpcSchema::compile(&["weir/test.proto".to_owned()], &mut read)
}

impl Service {
    /// Service with these options.
    ///
    /// # Errors
    /// See [`schema`].
    pub fn new(options: Options) -> Result<Self, String> {
        let shared = SharedCalls {
            delays: SeededRng::new(options.seed, DELAY_SALT),
            failures: SeededRng::new(options.seed, UNAVAILABLE_SALT),
            schema: schema()?,
            counts: Arc::default(),
            number: AtomicU64::new(0),
            options,
        };
        Ok(Self { shared: Arc::new(shared) })
    }
}

async fn echo(mut call: Call, mut messages: RequestMessages) -> ServiceReply {
    let request: EchoRequest = match messages.only().await {
        Ok(request) => request,
        Err(error) => return call.trailers_only(Some(&error)).into(),
    };
    call.counted.received();
    if let Err(error) = call.wait_first(&request).await {
        return call.trailers_only(Some(&error)).into();
    }
    let status = request.status.as_ref().and_then(CallError::of);
    match (request.fault(), status) {
        (ReplyFault::Reset, _) => ServiceReply::Reset,
        (ReplyFault::Http503, _) => Call::page(StatusCode::SERVICE_UNAVAILABLE).into(),
        (ReplyFault::Page, _) => Call::page(StatusCode::OK).into(),
        (ReplyFault::TrailersOnly, status) => call.trailers_only(status.as_ref()).into(),
        // As servers do: a status other than OK has no message.
        (ReplyFault::None, Some(status)) => call.trailers_only(Some(&status)).into(),
        (fault, _) => {
            let head = call.head(fault != ReplyFault::CompressedWithoutEncoding);
            head.map(|()| {
                written_to_end(move |writer| async move {
                    let reply = call.reply(&request, 1);
                    call.finish(&writer, &reply, &request).await
                })
            })
            .into()
        }
    }
}

async fn list(mut call: Call, mut messages: RequestMessages) -> ServiceReply {
    let request: ListRequest = match messages.only().await {
        Ok(request) => request,
        Err(error) => return call.trailers_only(Some(&error)).into(),
    };
    call.counted.received();
    let ListRequest { count, gap, echo } = request;
    let (echo, gap) = (echo.unwrap_or_default(), gap.map_or(Nanos::ZERO, WireDuration::time));
    let head = call.head(echo.fault() != ReplyFault::CompressedWithoutEncoding);
    let body = written_to_end(move |writer| async move {
        if let Err(error) = call.wait_first(&echo).await {
            return call.end(Some(&error));
        }
        let first = call.timer.now();
        let count = u64::from(count.min(Options::MAX_MESSAGES));
        for number in 1..=count {
            if let Err(error) = call.wait_until(first + Nanos(gap.0.saturating_mul(number - 1))).await {
                return call.end(Some(&error));
            }
            let reply = call.reply(&echo, number);
            if number == count {
                return call.finish(&writer, &reply, &echo).await;
            }
            writer.write(call.framed(&reply.encode_to_vec(), echo.compressed)?);
            writer.taken().await;
        }
        call.end(echo.status.as_ref().and_then(CallError::of).as_ref())
    });
    head.map(|()| body).into()
}

async fn collect(mut call: Call, mut messages: RequestMessages) -> ServiceReply {
    let mut reply = CollectReply::default();
    loop {
        match messages.next::<EchoRequest>().await {
            Ok(Some(message)) => {
                call.counted.received();
                reply.messages += 1;
                reply.bytes += message.payload.len() as u64;
                if let Some(status) = message.status.as_ref().and_then(CallError::of) {
                    return call.trailers_only(Some(&status)).into();
                }
                if let Err(error) = call.wait_first(&message).await {
                    return call.trailers_only(Some(&error)).into();
                }
                reply.last_text = message.text;
            }
            Ok(None) => break,
            Err(error) => return call.trailers_only(Some(&error)).into(),
        }
    }
    only_message(call, reply.encode_to_vec())
}

fn chat(mut call: Call, mut messages: RequestMessages) -> ServiceReply {
    let head = call.head(true);
    let body = written_to_end(move |writer| async move {
        let mut number = 0;
        loop {
            let request: EchoRequest = match messages.next().await {
                Ok(Some(request)) => request,
                Ok(None) => return call.end(None),
                Err(error) => return call.end(Some(&error)),
            };
            call.counted.received();
            number += 1;
            let delay = request.delay.map_or(Nanos::ZERO, WireDuration::time);
            if let Err(error) = call.wait_until(call.timer.now() + delay).await {
                return call.end(Some(&error));
            }
            if let Some(status) = request.status.as_ref().and_then(CallError::of) {
                return call.end(Some(&status));
            }
            let reply = call.reply(&request, number).encode_to_vec();
            writer.write(call.framed(&reply, request.compressed)?);
            writer.taken().await;
        }
    });
    head.map(|()| body).into()
}

async fn mirror(mut call: Call, mut messages: RequestMessages) -> ServiceReply {
    match messages.only_bytes().await {
        Ok(message) => {
            call.counted.received();
            only_message(call, message)
        }
        Err(error) => call.trailers_only(Some(&error)).into(),
    }
}

/// Response of one message.
fn only_message(mut call: Call, message: Vec<u8>) -> ServiceReply {
    let head = call.head(true);
    let body = written_to_end(move |writer| async move {
        writer.write(call.framed(&message, false)?);
        call.end(None)
    });
    head.map(|()| body).into()
}

fn reflection(mut call: Call, mut messages: RequestMessages) -> ServiceReply {
    let head = call.head(false);
    let body = written_to_end(move |writer| async move {
        loop {
            let request: ReflectionRequest = match messages.next().await {
                Ok(Some(request)) => request,
                Ok(None) => return call.end(None),
                Err(error) => return call.end(Some(&error)),
            };
            call.counted.received();
            let reply = schema_service::reflect(&call.shared.schema, &SERVICES, request);
            writer.write(call.framed(&reply, false)?);
            writer.taken().await;
        }
    });
    head.map(|()| body).into()
}

impl server::StatelessService for Service {
    async fn handle(&self, request: Request<RequestBody>, context: &RequestContext) -> ServiceReply {
        let (head, body) = request.into_parts();
        let shared = &self.shared;
        if head.uri.path() == "/stats" {
            return match head.method {
                Method::GET => response(StatusCode::OK, CONTENT_TYPE_JSON, shared.counts.json()).into(),
                _ => method_not_allowed("GET").into(),
            };
        }
        let is_call = head.headers.get(CONTENT_TYPE).is_some_and(|kind| is_grpc(kind.as_bytes()));
        if !is_call {
            return match head.method {
                Method::POST => {
                    let why = "calls of gRPC have the content type application/grpc";
                    response(StatusCode::UNSUPPORTED_MEDIA_TYPE, CONTENT_TYPE_TEXT, why).into()
                }
                _ => not_found().into(),
            };
        }
        let number = shared.number.fetch_add(1, Ordering::Relaxed);
        let call = Call::new(shared, context.timer(), (number, context.began()), &head.headers);
        let encoding = head.headers.get("grpc-encoding").map_or(&b""[..], |value| value.as_bytes());
        let messages = RequestMessages::new(body, encoding);
        let path = head.uri.path();
        if shared.options.has_reflection && ReflectionVersion::ALL.iter().any(|version| version.path() == path) {
            return reflection(call, messages);
        }
        if shared.failures.unit_at(number) < shared.options.unavailable {
            let error = CallError::new(UNAVAILABLE, "unavailable on purpose");
            return call.trailers_only(Some(&error)).into();
        }
        match path {
            "/weir.test.v1.Test/Echo" => echo(call, messages).await,
            "/weir.test.v1.Test/List" => list(call, messages).await,
            "/weir.test.v1.Test/Collect" => collect(call, messages).await,
            "/weir.test.v1.Test/Chat" => chat(call, messages),
            "/weir.test.v1.Test/Mirror" => mirror(call, messages).await,
            unknown => {
                let error = CallError::new(UNIMPLEMENTED, format!("unknown method {unknown}"));
                call.trailers_only(Some(&error)).into()
            }
        }
    }

    fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(CallCollector(Arc::clone(&self.shared.counts))));
    }
}
