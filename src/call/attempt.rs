//! One copy of a call on its way: a connection, the answer's head, and as much of the body as it takes to
//! know whether it is a success.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use http::response::Parts;
use http::{HeaderMap, Method, StatusCode, header};
use http_body::Body;
use http_body_util::BodyExt;

use super::answer::Coming;
use super::ask::Ask;
use super::headers::{Headers, List};
use super::success::grpc_failure;
use super::upstream::Occupied;
use crate::decide::Nanos;
use crate::decide::feedback::retry_after;
use crate::decide::grpc::Codes;
use crate::decide::policy::{Failure, Kind};
use crate::http::client::{Client, Incoming, OutBody, Outgoing};
use crate::machine::clock;

/// What an attempt brought.
#[derive(Debug)]
pub(super) enum Brought {
    Success(Parts, Carried),
    Failure {
        failure: Failure,
        /// In words, if there is more to say than the kind.
        cause: Option<Cow<'static, str>>,
        /// How long the upstream asks us to wait.
        retry_after: Option<Nanos>,
        /// The answer, if there was one.
        answer: Option<(Parts, Carried)>,
    },
}

/// A body, and the place at its upstream as long as it still comes.
#[derive(Debug)]
pub(super) enum Carried {
    Whole(Whole),
    /// In a box, as it will stay.
    Coming(Box<Coming>),
}

/// A body that has come.
#[derive(Debug, Default)]
pub(super) struct Whole {
    pub(super) bytes: Bytes,
    pub(super) trailers: Option<Box<HeaderMap>>,
}

fn failed(failure: Failure, cause: impl Into<Cow<'static, str>>) -> Brought {
    Brought::Failure { failure, cause: Some(cause.into()), retry_after: None, answer: None }
}

impl Brought {
    /// What an attempt brings that is not there.
    pub(super) fn nothing() -> Self {
        failed(Failure::Kind(Kind::Closed), "it was cancelled")
    }
}

/// One copy of `ask` that has a place to go to.
#[derive(Debug)]
pub(super) struct Launched<'a> {
    pub(super) client: &'a Client,
    pub(super) headers: &'a Headers,
    pub(super) ask: &'a Ask<'a>,
    pub(super) body: OutBody,
    pub(super) more: List,
    pub(super) occupied: Occupied,
}

/// Sends it, and judges what comes back.
pub(super) async fn attempt(launched: Launched<'_>) -> Brought {
    let Launched { client, headers, ask, body, more, mut occupied } = launched;
    // While its caller still speaks, an answer's first word may be due to its next.
    let may_wait = ask.plan.policy.repeats() && !matches!(body, OutBody::Stream(_));
    let outgoing = Outgoing {
        method: ask.method,
        target: ask.target,
        headers: ask.headers,
        more: &more,
        body,
        upgrade: ask.upgrade,
    };
    let sent = client.send(occupied.origin(), outgoing).await;
    headers.spare(more);
    let answer = match sent {
        Ok(answer) => answer,
        Err(error) => {
            let failure = Failure::Kind(error.kind);
            occupied.failed(failure);
            return failed(failure, error.text);
        }
    };
    judge(ask, answer, may_wait, occupied).await
}

async fn judge(ask: &Ask<'_>, answer: http::Response<Incoming>, may_wait: bool, mut occupied: Occupied) -> Brought {
    let success = &ask.plan.success;
    let (head, mut body) = answer.into_parts();
    occupied.answered(head.status.as_u16());
    let mut judged = success.judge_head(&head);
    let codes = success.codes(&head);
    // What comes after a 101 is no body; the body that the others speak of is elsewhere (RFC 9110, 9.3.2, 15.4.5).
    let bodiless = *ask.method == Method::HEAD
        || matches!(head.status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::NOT_MODIFIED);
    let wanted = match judged {
        _ if bodiless => false,
        Ok(()) => success.wants_body(),
        Err(_) => success.whole,
    };
    let carried = match body.take_whole() {
        Some(bytes) if wanted && judged.is_ok() && bytes.len() > success.most => Err(too_long(success.most)),
        Some(bytes) if body.is_end_stream() => Ok(Come::Whole(Whole { bytes, trailers: None })),
        Some(bytes) => Ok(Come::Whole(Whole { bytes, trailers: last(body).await })),
        // A stream may end with its head.
        None if body.is_end_stream() && head.status != StatusCode::SWITCHING_PROTOCOLS => {
            Ok(Come::Whole(Whole::default()))
        }
        None if wanted => read(body, success.most).await.map(Come::Whole),
        // How a call of gRPC has ended stands in its trailers; one that has failed has nothing before them.
        None if may_wait && judged.is_ok() && codes != Codes::NONE => begun(body).await,
        None => Ok(Come::Begun(Bytes::new(), body)),
    };
    let carried = match carried {
        Ok(carried) => carried,
        Err((kind, cause)) => {
            let failure = judged.err().unwrap_or(Failure::Kind(kind));
            occupied.failed(failure);
            return failed(failure, cause);
        }
    };
    if let (Ok(()), false, Come::Whole(whole)) = (judged, bodiless, &carried) {
        judged = success.judge_body(&whole.bytes);
        if let (Ok(()), Some(trailers)) = (judged, &whole.trailers) {
            judged = grpc_failure(codes, trailers).map_or(Ok(()), Err);
        }
    }
    match judged {
        Ok(()) => occupied.succeeded(),
        Err(failure) => occupied.failed(failure),
    }
    let carried = match carried {
        Come::Whole(whole) => {
            occupied.complete();
            Carried::Whole(whole)
        }
        Come::Begun(first, rest) => {
            if judged.is_ok() {
                occupied.fails_with(codes);
            }
            Carried::Coming(Box::new(Coming::new(first, rest, occupied)))
        }
    };
    Brought::judged(judged, head, carried)
}

/// As much of an answer's body as is there, or was waited for.
enum Come {
    Whole(Whole),
    /// What came first, and the rest.
    Begun(Bytes, Incoming),
}

/// Waits for the beginning of a body, or for what stands in its place.
async fn begun(mut body: Incoming) -> Result<Come, Broken> {
    let Some(frame) = body.frame().await else { return Ok(Come::Whole(Whole::default())) };
    let frame = frame.map_err(|error| (error.kind, error.text))?;
    Ok(match frame.into_data() {
        Ok(first) => Come::Begun(first, body),
        Err(frame) => Come::Whole(Whole { bytes: Bytes::new(), trailers: frame.into_trailers().ok().map(Box::new) }),
    })
}

/// Why a body was not read to its end.
type Broken = (Kind, Cow<'static, str>);

fn too_long(most: usize) -> Broken {
    (Kind::Body, format!("the answer is longer than the {most} bytes that are looked at").into())
}

/// The trailers of a body that has come.
async fn last(mut body: Incoming) -> Option<Box<HeaderMap>> {
    Some(Box::new(body.frame().await?.ok()?.into_trailers().ok()?))
}

/// Reads a body of at most `most` bytes.
async fn read(mut body: Incoming, most: usize) -> Result<Whole, Broken> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    let mut trailers = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| (error.kind, error.text))?;
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => {
                trailers = frame.into_trailers().ok().map(Box::new);
                continue;
            }
        };
        if first.len() + rest.len() + data.len() > most {
            return Err(too_long(most));
        }
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    let bytes = if rest.is_empty() { first } else { [&first[..], &rest[..]].concat().into() };
    Ok(Whole { bytes, trailers })
}

impl Brought {
    fn judged(judged: Result<(), Failure>, head: Parts, carried: Carried) -> Self {
        match judged {
            Ok(()) => Self::Success(head, carried),
            Err(failure) => {
                let told = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
                let retry_after = told.and_then(|text| retry_after(text, clock::wall()));
                Self::Failure { failure, cause: None, retry_after, answer: Some((head, carried)) }
            }
        }
    }
}
