//! Requests to the shop as they come: credentials of the head, fields of the body.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderName};
use serde::Deserialize;

use crate::shop::rules::store::ShopCredentials;

/// Header of the token against cross-site requests.
const CSRF_HEADER: HeaderName = HeaderName::from_static("x-csrf-token");

/// Name of the session's cookie.
pub(super) const SESSION_COOKIE: &str = "session";
/// Name of the visitor's cookie.
pub(super) const VISITOR_COOKIE: &str = "visitor";

/// Longest name of a user, in bytes.
const MAX_USER_BYTES: usize = 256;

/// Body of a login.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub(super) struct LoginForm<'a> {
    #[serde(borrow)]
    pub(super) user: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) password: Cow<'a, str>,
}

/// Body of an addition to the cart.
#[derive(Debug, Deserialize, PartialEq, Eq)]
pub(super) struct AddForm {
    pub(super) item: u32,
    #[serde(default = "one")]
    pub(super) quantity: u32,
}

const fn one() -> u32 {
    1
}

impl<'a> LoginForm<'a> {
    pub(super) fn read(headers: &HeaderMap, body: &'a [u8]) -> Option<Self> {
        let form: Self = if is_form(headers) {
            Self { user: field(body, "user")?, password: field(body, "password")? }
        } else {
            serde_json::from_slice(body).ok()?
        };
        (form.user.len() <= MAX_USER_BYTES).then_some(form)
    }
}

impl AddForm {
    pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Option<Self> {
        let form: Self = if is_form(headers) {
            let quantity = field(body, "quantity").map_or(Some(1), |text| text.parse().ok())?;
            Self { item: field(body, "item")?.parse().ok()?, quantity }
        } else {
            serde_json::from_slice(body).ok()?
        };
        (1..=1000).contains(&form.quantity).then_some(form)
    }
}

fn field<'a>(body: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    form_urlencoded::parse(body).find(|(key, _)| key == name).map(|(_, value)| value)
}

fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&[][..], |value| value.as_bytes());
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    kind.trim_ascii().eq_ignore_ascii_case(b"application/x-www-form-urlencoded")
}

/// Credentials in these headers.
pub(super) fn credentials(headers: &HeaderMap) -> ShopCredentials<'_> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let token = text(AUTHORIZATION).and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    ShopCredentials {
        token,
        cookie: cookie(headers, SESSION_COOKIE),
        csrf: text(CSRF_HEADER),
        visitor: cookie(headers, VISITOR_COOKIE),
    }
}

/// First cookie of this name.
fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}
