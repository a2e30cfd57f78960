//! The headers that tell a client where its key stands.

use http::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};

use super::book::Judged;
use crate::decide::Nanos;
use crate::decide::account::Judgement;
use crate::decide::limit::{Model, Retry, Standing};

/// Which headers an answer has. All lengths are in whole seconds, rounded up: who waits that long is not early.
///
/// | word | headers | on |
/// |---|---|---|
/// | `retry-after` | `Retry-After` (RFC 9110): when the same request would be accepted | 429 with a time after which |
/// | `ratelimit` | `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-11), an item per window | all that the limiter judged |
/// | `x-ratelimit` | `X-RateLimit-Limit`, `-Remaining`, `-Reset` (as GitHub's) of the window with the least room | all that the limiter judged |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// `Retry-After`.
    pub retry_after: bool,
    /// `RateLimit-Policy` and `RateLimit`.
    pub rate_limit: bool,
    /// `X-RateLimit-*`.
    pub x_rate_limit: bool,
}

impl Headers {
    /// Reads words with commas between: `retry-after,ratelimit,x-ratelimit`; `none` and `all` alone.
    ///
    /// # Errors
    /// What is expected, in words.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut read = Self::default();
        for word in text.split(',').map(str::trim) {
            match word {
                "retry-after" => read.retry_after = true,
                "ratelimit" => read.rate_limit = true,
                "x-ratelimit" => read.x_rate_limit = true,
                "all" if text == "all" => return Ok(Self { retry_after: true, rate_limit: true, x_rate_limit: true }),
                "none" if text == "none" => {}
                _ => {
                    return Err(format!(
                        "'{word}' names no headers; write retry-after, ratelimit and x-ratelimit with commas between, all, or none"
                    ));
                }
            }
        }
        Ok(read)
    }

    /// Whether the standings of a key's windows are shown.
    pub(super) fn show_standings(self) -> bool {
        self.rate_limit || self.x_rate_limit
    }

    pub(super) fn add_to(self, headers: &mut HeaderMap, judged: &Judged<'_>) {
        let refusal = match judged.judgement {
            // Room in its windows is of no use to it.
            Judgement::Blocked => return,
            Judgement::Exceeded(refusal) => Some(refusal),
            Judgement::Accepted | Judgement::InvalidNonce => None,
        };
        if self.retry_after
            && let Some(s) = refusal.and_then(|refusal| seconds(refusal.retry))
        {
            headers.insert(RETRY_AFTER, s.into());
        }
        if self.rate_limit {
            put(headers, "ratelimit-policy", &list(&judged.standings, policy));
            put(headers, "ratelimit", &list(&judged.standings, limit));
        }
        if self.x_rate_limit {
            let least = judged.standings.iter().min_by_key(|standing| standing.remaining);
            let refusing = refusal.and_then(|refusal| judged.standings.get(refusal.window));
            if let Some(standing) = refusing.or(least) {
                x_rate_limit(headers, standing, judged.at);
            }
        }
    }
}

/// `"20/1s";q=20;w=1`: what a window allows. A window is named by how it is written.
fn policy(Standing { window, .. }: &Standing) -> String {
    match window.model() {
        Model::Concurrency => format!("\"{window}\";q={};qu=\"concurrent-requests\"", window.limit()),
        _ => format!("\"{window}\";q={};w={}", window.limit(), whole_seconds(window.per())),
    }
}

/// `"20/1s";r=3;t=1`: what is left of it, and for how long there will not be more.
fn limit(standing: &Standing) -> String {
    let Standing { window, remaining, more, .. } = standing;
    match seconds(*more).filter(|s| *s > 0) {
        Some(s) => format!("\"{window}\";r={remaining};t={s}"),
        None => format!("\"{window}\";r={remaining}"),
    }
}

/// The reset is when the window will be as good as new, in seconds since 1970.
fn x_rate_limit(headers: &mut HeaderMap, standing: &Standing, at: Nanos) {
    headers.insert(HeaderName::from_static("x-ratelimit-limit"), standing.window.limit().into());
    headers.insert(HeaderName::from_static("x-ratelimit-remaining"), standing.remaining.into());
    if let Retry::After(length) = standing.all {
        headers.insert(HeaderName::from_static("x-ratelimit-reset"), whole_seconds(at + length).into());
    }
}

fn list(standings: &[Standing], item: fn(&Standing) -> String) -> String {
    standings.iter().map(item).collect::<Vec<_>>().join(", ")
}

fn put(headers: &mut HeaderMap, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(HeaderName::from_static(name), value);
    }
}

fn seconds(retry: Retry) -> Option<u64> {
    match retry {
        Retry::After(length) => Some(whole_seconds(length)),
        Retry::Finished | Retry::Never => None,
    }
}

fn whole_seconds(length: Nanos) -> u64 {
    length.0.div_ceil(Nanos::SECOND.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::account::Account;
    use crate::decide::limit::{Limiter, Window};

    const AT: Nanos = Nanos(1_700_000_000_250_000_000);

    /// The headers after so many requests at once, in the order of their names.
    fn after(requests: usize, windows: &[&str], which: &str) -> Vec<String> {
        let windows: Vec<Window> =
            windows.iter().map(|text| Window::read(text, Model::SlidingLog).expect("valid")).collect();
        let mut account = Account::new(Limiter::new(&windows, Nanos::MILLI), 10);
        let judgement = (1..=requests as i128).map(|nonce| account.judge(AT, 1, Some(nonce))).last().expect("one");
        let judged = Judged { judgement, standings: account.limiter().standings(AT), at: AT, slot: None };
        let mut headers = HeaderMap::new();
        Headers::read(which).expect("valid").add_to(&mut headers, &judged);
        let text = |value: &HeaderValue| value.to_str().expect("ASCII").to_owned();
        let mut all: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect();
        all.sort();
        all
    }

    #[test]
    fn a_key_is_told_where_it_stands() {
        assert_eq!(
            after(17, &["20/1s", "bucket:100/1m", "concurrency:30"], "ratelimit"),
            [
                r#"ratelimit-policy: "20/1s";q=20;w=1, "bucket:100/1m";q=100;w=60, "concurrency:30";q=30;qu="concurrent-requests""#,
                // 1001 ms are more than a second; a token takes 0.6 s.
                r#"ratelimit: "20/1s";r=3;t=2, "bucket:100/1m";r=83;t=1, "concurrency:30";r=13"#,
            ]
        );
    }

    #[test]
    fn the_window_with_the_least_room_is_the_one_of_the_old_headers() {
        assert_eq!(
            after(3, &["100/1m", "aligned:5/1s"], "x-ratelimit"),
            ["x-ratelimit-limit: 5", "x-ratelimit-remaining: 2", "x-ratelimit-reset: 1700000001"]
        );
        assert_eq!(
            after(3, &["concurrency:2", "100/1m"], "x-ratelimit"),
            ["x-ratelimit-limit: 2", "x-ratelimit-remaining: 0"],
            "time alone frees nothing"
        );
    }

    #[test]
    fn retry_after_is_on_refusals_that_time_heals() {
        assert_eq!(after(2, &["2/1s"], "retry-after"), [""; 0]);
        assert_eq!(after(3, &["2/1s"], "retry-after"), ["retry-after: 2"]);
        assert_eq!(after(3, &["2/999ms"], "retry-after"), ["retry-after: 1"]);
        assert_eq!(after(3, &["concurrency:2"], "retry-after"), [""; 0]);
        assert_eq!(after(3, &["2/1s"], "none"), [""; 0]);
        assert_eq!(after(3, &["2/1s"], "all").len(), 6);
        assert_eq!(after(13, &["2/1s"], "all"), [""; 0], "the key is blocked");
    }

    #[test]
    fn words_for_headers() {
        assert_eq!(Headers::read("none"), Ok(Headers::default()));
        let two = Headers { retry_after: true, rate_limit: false, x_rate_limit: true };
        assert_eq!(Headers::read("x-ratelimit, retry-after"), Ok(two));
        for wrong in ["", "date", "retry-after,", "all,none"] {
            assert!(Headers::read(wrong).is_err_and(|why| why.contains("write retry-after")), "{wrong}");
        }
    }
}
