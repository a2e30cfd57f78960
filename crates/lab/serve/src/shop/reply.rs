//! Responses of the shop.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONNECTION, CONTENT_ENCODING, HeaderValue, LOCATION, SET_COOKIE};
use http::{Response, StatusCode};
use serde_json::{Value, json};

use super::endpoint::ShopEndpoint;
use super::parse::{SESSION_COOKIE, VISITOR_COOKIE};
use crate::responses::{CONTENT_TYPE_JSON, CONTENT_TYPE_TEXT, response};
use crate::shop::rules::catalog::CatalogItem;
use crate::shop::rules::store::{ShopOutcome, ShopResult};
use weir_server::ResponseBody;

const CONTENT_TYPE_HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const HOME_PAGE: &str =
    "<!doctype html><title>Shop</title><h1>Welcome</h1><form action=/login method=post><input name=user></form>\n";

/// Ways in which a response differs from that of a shop without faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReplyFaults {
    /// The body is cut off.
    pub(super) is_garbage: bool,
    /// The price of an item is another than the list's.
    pub(super) has_wrong_price: bool,
    /// A login is redirected.
    pub(super) redirects_login: bool,
    /// The connection is closed after the response.
    pub(super) closes: bool,
    /// The body is compressed.
    pub(super) uses_gzip: bool,
}

/// Response of an outcome.
pub(super) fn outcome_response(
    endpoint: ShopEndpoint,
    outcome: &ShopOutcome,
    pages: u32,
    faults: ReplyFaults,
) -> Response<ResponseBody> {
    let (status, kind, body) = match &outcome.result {
        Err(kind) => {
            let status = StatusCode::from_u16(kind.status()).unwrap_or(StatusCode::BAD_REQUEST);
            (status, CONTENT_TYPE_JSON, to_bytes(&json!({"error": kind.name()})))
        }
        Ok(result) => result_parts(endpoint, result, pages, faults),
    };
    let body = if faults.is_garbage { body.slice(..body.len() / 2) } else { body };
    let mut reply = plain_response(status, kind, body, faults);
    let headers = reply.headers_mut();
    if status == StatusCode::FOUND {
        headers.insert(LOCATION, HeaderValue::from_static("/home"));
    }
    let cookie = match (&outcome.result, &outcome.new_cookie) {
        (Ok(ShopResult::Welcome { visitor }), _) => {
            Some(format!("{VISITOR_COOKIE}={visitor}; Path=/home; Max-Age=3600"))
        }
        (Ok(ShopResult::LoggedOut), _) => Some(format!("{SESSION_COOKIE}=; Path=/; Max-Age=0; HttpOnly")),
        (_, Some(cookie)) => Some(format!("{SESSION_COOKIE}={cookie}; Path=/; HttpOnly; SameSite=Lax")),
        _ => None,
    };
    if let Some(cookie) = cookie.and_then(|cookie| HeaderValue::from_str(&cookie).ok()) {
        headers.append(SET_COOKIE, cookie);
    }
    reply
}

/// Response without an outcome: an injected error.
pub(super) fn error_response(status: StatusCode, faults: ReplyFaults) -> Response<ResponseBody> {
    let text = status.canonical_reason().unwrap_or_default();
    plain_response(status, CONTENT_TYPE_TEXT, Bytes::from_static(text.as_bytes()), faults)
}

fn plain_response(status: StatusCode, kind: HeaderValue, body: Bytes, faults: ReplyFaults) -> Response<ResponseBody> {
    let compressed = if faults.uses_gzip && !body.is_empty() { gzip(&body) } else { None };
    let is_compressed = compressed.is_some();
    let mut reply = response(status, kind, compressed.unwrap_or(body));
    let headers = reply.headers_mut();
    if is_compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if faults.closes {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    reply
}

fn gzip(body: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len()), Compression::fast());
    encoder.write_all(body).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

fn result_parts(
    endpoint: ShopEndpoint,
    result: &ShopResult,
    pages: u32,
    faults: ReplyFaults,
) -> (StatusCode, HeaderValue, Bytes) {
    let (status, body) = match result {
        ShopResult::Welcome { .. } => return (StatusCode::FOUND, CONTENT_TYPE_TEXT, Bytes::new()),
        ShopResult::VisitorHome => {
            return (StatusCode::OK, CONTENT_TYPE_HTML, Bytes::from_static(HOME_PAGE.as_bytes()));
        }
        ShopResult::Session { .. } if endpoint == ShopEndpoint::Login && faults.redirects_login => {
            return (StatusCode::FOUND, CONTENT_TYPE_TEXT, Bytes::new());
        }
        ShopResult::LoggedOut => return (StatusCode::NO_CONTENT, CONTENT_TYPE_TEXT, Bytes::new()),
        ShopResult::Session { user, token, csrf } => {
            (StatusCode::OK, json!({"user": user, "token": token, "csrf": csrf}))
        }
        ShopResult::Items { page, items } => {
            let items: Vec<Value> = items.iter().map(|item| item_json(*item)).collect();
            (StatusCode::OK, json!({"page": page, "pages": pages, "items": items}))
        }
        ShopResult::Item(item) => {
            let shown = CatalogItem { price_cents: item.price_cents + u32::from(faults.has_wrong_price), ..*item };
            (StatusCode::OK, item_json(shown))
        }
        ShopResult::Cart { lines, total_cents } => {
            let status = if endpoint == ShopEndpoint::Add { StatusCode::CREATED } else { StatusCode::OK };
            let lines = lines.iter().map(
                |line| json!({"id": line.item.id, "price_cents": line.item.price_cents, "quantity": line.quantity}),
            );
            (status, json!({"items": lines.collect::<Vec<_>>(), "total_cents": total_cents}))
        }
        ShopResult::Paid { order, total_cents } => {
            (StatusCode::CREATED, json!({"order": order, "state": "paid", "total_cents": total_cents}))
        }
    };
    (status, CONTENT_TYPE_JSON, to_bytes(&body))
}

fn item_json(item: CatalogItem) -> Value {
    json!({"id": item.id, "name": format!("item {}", item.id), "price_cents": item.price_cents})
}

fn to_bytes(value: &Value) -> Bytes {
    Bytes::from(value.to_string())
}
