//! Syntax of rate-limit headers: lists of items with parameters, and single numbers.
//!
//! The draft's fields are structured (RFC 9651), where one error invalidates a whole field. Services make errors,
//! mostly names without quotes, so each item is parsed by itself, and its valid parts are used.

use super::{Nanos, Quota, RateLimitHeaders, WallNanos};
use weir_limits::limit_unit::LimitUnit;
use weir_retry::retry_after::retry_after;

/// Parses `"p";q=100;w=60`, or `100;w=60`.
pub(super) fn policies(value: &str, feedback: &mut RateLimitHeaders) {
    for item in split(value, ',') {
        let mut parts = split(item, ';');
        let name = unquoted(parts.next().unwrap_or_default());
        let plain = whole_number(name);
        let name = if plain.is_some() { "" } else { name };
        let Some(quota) = feedback.quota_mut(name) else { return };
        quota.limit = plain.or(quota.limit);
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key.trim() {
                "q" => quota.limit = whole_number(value).or(quota.limit),
                "w" => quota.per = whole_number(value).map(seconds).or(quota.per),
                "qu" => quota.unit = unit(unquoted(value)).or(quota.unit),
                _ => {}
            }
        }
    }
}

/// Parses `"p";r=50;t=30`, or `limit=100, remaining=50, reset=30`.
pub(super) fn limits(value: &str, now: WallNanos, feedback: &mut RateLimitHeaders) {
    for item in split(value, ',') {
        let mut parts = split(item, ';');
        let name = parts.next().unwrap_or_default();
        if let Some((key, number)) = name.split_once('=').filter(|_| !name.starts_with('"')) {
            let Some(quota) = feedback.quota_mut("") else { return };
            set_number(quota, key.trim(), whole_number(number), retry_after(number, now));
            continue;
        }
        let Some(quota) = feedback.quota_mut(unquoted(name)) else { return };
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            match key.trim() {
                "r" => quota.remaining = whole_number(value).or(quota.remaining),
                "t" => quota.reset = retry_after(value, now).or(quota.reset),
                _ => {}
            }
        }
    }
}

/// Parses a custom header such as `x-ratelimit-remaining-tokens`; `name` is in lower case.
pub(super) fn custom(name: &str, value: &str, now: WallNanos, feedback: &mut RateLimitHeaders) {
    let Some((_, rest)) = name.split_once("ratelimit-").or_else(|| name.split_once("rate-limit-")) else { return };
    let Some(field) = rest.split('-').find(|word| matches!(*word, "limit" | "remaining" | "reset")) else { return };
    let of: Vec<&str> = rest.split('-').filter(|word| *word != field && *word != "after").collect();
    let Some(quota) = feedback.quota_mut(&of.join("-")) else { return };
    quota.unit = of.iter().find_map(|word| unit(word)).or(quota.unit);
    quota.per = of.iter().find_map(|word| period(word)).or(quota.per);
    // An older draft's `100, 100;w=60` has the number first, then its policies.
    let mut items = split(value, ',');
    let number = whole_number(items.next().unwrap_or_default());
    if field == "limit"
        && let Some((_, w)) = items.next().and_then(|policy| policy.split_once("w="))
    {
        quota.per = whole_number(w).map(seconds).or(quota.per);
    }
    let reset = (field == "reset").then(|| retry_after(value, now)).flatten();
    set_number(quota, field, number, reset);
}

fn set_number(quota: &mut Quota, field: &str, number: Option<u64>, reset: Option<Nanos>) {
    match field {
        "limit" => quota.limit = number.or(quota.limit),
        "remaining" => quota.remaining = number.or(quota.remaining),
        "reset" => quota.reset = reset.or(quota.reset),
        _ => {}
    }
}

fn unit(word: &str) -> Option<LimitUnit> {
    if word.contains("token") {
        Some(LimitUnit::Weight)
    } else {
        word.contains("request").then_some(LimitUnit::Requests)
    }
}

fn period(word: &str) -> Option<Nanos> {
    let s = match word {
        "second" => 1,
        "minute" => 60,
        "hour" => 3600,
        "day" => 86400,
        _ => return None,
    };
    Some(Nanos::from_secs(s))
}

fn seconds(s: u64) -> Nanos {
    Nanos(s.saturating_mul(Nanos::SECOND.0))
}

/// Parses digits alone; `None` beyond 64 bits.
fn whole_number(text: &str) -> Option<u64> {
    let text = text.trim();
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// Removes quotes.
fn unquoted(text: &str) -> &str {
    text.trim().trim_matches('"')
}

/// Parts between separators outside of quotes, trimmed; empty ones are left out.
fn split(text: &str, by: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let parts = text.split(move |c| {
        quoted ^= c == '"';
        c == by && !quoted
    });
    parts.map(str::trim).filter(|part| !part.is_empty())
}
