//! One copy of a call on its way: a place, a connection, the answer's head, and as much of the body as it takes to
//! know whether it is a success.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use http::response::Parts;
use http::{HeaderName, HeaderValue, header};
use http_body_util::BodyExt;

use super::engine::Ask;
use super::upstream::Occupied;
use crate::decide::Nanos;
use crate::decide::policy::{Failure, Kind};
use crate::http::client::{Client, Incoming, OutBody, Outgoing};
use crate::machine::clock::until_date;

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
    Whole(Bytes),
    Coming(Incoming, Occupied),
}

fn failed(failure: Failure, cause: impl Into<Cow<'static, str>>) -> Brought {
    Brought::Failure { failure, cause: Some(cause.into()), retry_after: None, answer: None }
}

/// Sends one copy of `ask`, and judges what comes back.
pub(super) async fn attempt(
    client: &Client,
    ask: &Ask<'_>,
    body: OutBody,
    more: Vec<(HeaderName, HeaderValue)>,
    mut occupied: Occupied,
) -> Brought {
    if occupied.wait_for_place().await.is_err() {
        let failure = Failure::Kind(Kind::Connect);
        occupied.turned_away();
        return failed(failure, "the upstream has all the attempts that it may have, and a full queue");
    }
    let Ask { method, target, headers, upgrade, .. } = *ask;
    let outgoing = Outgoing { method, target, headers, more: &more, body, upgrade };
    let answer = match client.send(occupied.origin(), outgoing).await {
        Ok(answer) => answer,
        Err(error) => {
            let failure = Failure::Kind(error.kind);
            occupied.failed(failure);
            return failed(failure, error.text);
        }
    };
    judge(ask, answer, occupied).await
}

async fn judge(ask: &Ask<'_>, answer: http::Response<Incoming>, mut occupied: Occupied) -> Brought {
    let success = &ask.plan.success;
    let (head, mut body) = answer.into_parts();
    let mut judged = success.judge_head(&head);
    let wanted = if judged.is_ok() { success.wants_body() } else { success.whole };
    let carried = match body.take_whole() {
        Some(bytes) => Ok(bytes),
        None if wanted => match read(body, success.most).await {
            Ok(bytes) => Ok(bytes),
            Err((kind, cause)) => {
                occupied.failed(Failure::Kind(kind));
                return failed(Failure::Kind(kind), cause);
            }
        },
        None => Err(body),
    };
    if let (Ok(()), Ok(bytes)) = (judged, &carried) {
        judged = success.judge_body(bytes);
    }
    match judged {
        Ok(()) => occupied.succeeded(),
        Err(failure) => occupied.failed(failure),
    }
    let carried = match carried {
        Ok(bytes) => Carried::Whole(bytes),
        Err(body) => Carried::Coming(body, occupied),
    };
    Brought::judged(judged, head, carried)
}

/// Reads a body of at most `most` bytes.
async fn read(mut body: Incoming, most: usize) -> Result<Bytes, (Kind, Cow<'static, str>)> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| (error.kind, error.text))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > most {
            return Err((Kind::Body, format!("the answer is longer than the {most} bytes that are looked at").into()));
        }
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() { first } else { [&first[..], &rest[..]].concat().into() })
}

impl Brought {
    fn judged(judged: Result<(), Failure>, head: Parts, carried: Carried) -> Self {
        match judged {
            Ok(()) => Self::Success(head, carried),
            Err(failure) => {
                let retry_after = head.headers.get(header::RETRY_AFTER).and_then(retry_after);
                Self::Failure { failure, cause: None, retry_after, answer: Some((head, carried)) }
            }
        }
    }
}

/// Seconds, or a date (RFC 9110, 10.2.3).
fn retry_after(value: &HeaderValue) -> Option<Nanos> {
    let text = value.to_str().ok()?.trim();
    match text.parse::<u32>() {
        Ok(seconds) => Some(Nanos::from_secs(seconds.into())),
        Err(_) => until_date(text),
    }
}
