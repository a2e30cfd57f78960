//! What a request asks for itself: `?delay_ms=&status=&body=&bytes=` in place of the dice.

use http::StatusCode;

use super::end::{Payload, ResponseEnding};
use crate::decide::Nanos;

/// What becomes of a request by its own wish. What it does not name is as usual: status 200, the body of that status,
/// a delay from the dice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseOverrides {
    /// How long it takes, if it says so.
    pub delay: Option<Nanos>,
    /// How it ends.
    pub ending: ResponseEnding,
}

/// An hour, as `delay_ms`.
const MAX_DELAY_MS: f64 = 3_600_000.0;
/// 1 GiB, as `bytes`.
const MAX_BODY_BYTES: u64 = 1 << 30;

impl ResponseOverrides {
    /// Reads a query; `None` if it wishes nothing. Parameters that are not ours do not count, nor does a second one of
    /// the same name.
    ///
    /// # Errors
    /// Which parameter is wrong and what is expected, in one line.
    pub fn read(query: Option<&str>) -> Result<Option<Self>, String> {
        let (mut delay, mut status, mut body, mut bytes) = (None, None, None, None);
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let place = match &*name {
                "delay_ms" => &mut delay,
                "status" => &mut status,
                "body" => &mut body,
                "bytes" => &mut bytes,
                _ => continue,
            };
            place.get_or_insert(value);
        }
        if delay.is_none() && status.is_none() && body.is_none() && bytes.is_none() {
            return Ok(None);
        }
        let payload = match (body, bytes) {
            (None, None) => Payload::Standard,
            (Some(text), None) => Payload::Text(text.into_owned()),
            (None, Some(text)) => Payload::Bytes(read_bytes(&text)?),
            (Some(_), Some(_)) => return Err("body, bytes: one of the two".to_owned()),
        };
        let end = match status.as_deref() {
            None => ResponseEnding::Response(StatusCode::OK, payload),
            Some("reset") => ResponseEnding::Reset,
            Some("hang") => ResponseEnding::Hang,
            Some(text) => ResponseEnding::Response(read_status(text)?, payload),
        };
        Ok(Some(Self { delay: delay.map(|text| read_delay(&text)).transpose()?, ending: end }))
    }
}

fn read_delay(text: &str) -> Result<Nanos, String> {
    let ms = text.parse().ok().filter(|ms| (0.0..=MAX_DELAY_MS).contains(ms));
    ms.map(|ms| Nanos::from_secs_f64(ms / 1e3)).ok_or_else(|| "delay_ms: a number from 0 to 3600000".to_owned())
}

fn read_status(text: &str) -> Result<StatusCode, String> {
    let status = text.parse().ok().filter(|status| (200..600).contains(status));
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    status.ok_or_else(|| "status: a whole number from 200 to 599, or reset, or hang".to_owned())
}

fn read_bytes(text: &str) -> Result<u64, String> {
    let bytes = text.parse().ok().filter(|bytes| *bytes <= MAX_BODY_BYTES);
    bytes.ok_or_else(|| format!("bytes: a whole number from 0 to {MAX_BODY_BYTES}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(query: &str) -> ResponseOverrides {
        ResponseOverrides::read(Some(query)).expect(query).expect(query)
    }

    #[test]
    fn what_a_request_names_it_gets() {
        let usual = ResponseEnding::Response(StatusCode::OK, Payload::Standard);
        assert_eq!(
            read("delay_ms=50"),
            ResponseOverrides { delay: Some(Nanos::from_millis(50)), ending: usual.clone() }
        );
        assert_eq!(read("delay_ms=0.25").delay, Some(Nanos(250_000)));
        assert_eq!(read("delay_ms=3600000").delay, Some(Nanos::from_secs(3600)));
        assert_eq!(
            read("status=503"),
            ResponseOverrides {
                delay: None,
                ending: ResponseEnding::Response(StatusCode::SERVICE_UNAVAILABLE, Payload::Standard)
            }
        );
        let text = Payload::Text("{\"time\": 1} + 1".to_owned());
        assert_eq!(read("body=%7B%22time%22:+1%7D+%2B+1").ending, ResponseEnding::Response(StatusCode::OK, text));
        assert_eq!(read("body=").ending, ResponseEnding::Response(StatusCode::OK, Payload::Text(String::new())));
        assert_eq!(read("bytes=0&status=201").ending, ResponseEnding::Response(StatusCode::CREATED, Payload::Bytes(0)));
        assert_eq!(
            read("status=reset&delay_ms=5"),
            ResponseOverrides { delay: Some(Nanos::from_millis(5)), ending: ResponseEnding::Reset }
        );
        assert_eq!(read("status=hang").ending, ResponseEnding::Hang);
        assert_eq!(read("status=299&status=reset").ending, read("status=299").ending, "the first counts");
    }

    #[test]
    fn what_is_not_ours_leaves_it_to_the_dice() {
        for query in [None, Some(""), Some("&"), Some("id=7&Status=500&delay=3"), Some("%ff=%ff")] {
            assert_eq!(ResponseOverrides::read(query), Ok(None), "{query:?}");
        }
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        for (query, named) in [
            ("delay_ms=", "delay_ms: a number from 0 to 3600000"),
            ("delay_ms=-1", "delay_ms"),
            ("delay_ms=3600000.1", "delay_ms"),
            ("delay_ms=NaN", "delay_ms"),
            ("delay_ms=inf", "delay_ms"),
            ("delay_ms=5ms", "delay_ms"),
            ("status=199", "status: a whole number from 200 to 599, or reset, or hang"),
            ("status=600", "status"),
            ("status=ok", "status"),
            ("status=", "status"),
            ("status=65736", "status"),
            ("bytes=1073741825", "bytes: a whole number from 0 to 1073741824"),
            ("bytes=-1", "bytes"),
            ("bytes=1e3", "bytes"),
            ("bytes=1&body=x", "body, bytes: one of the two"),
            ("status=200&delay_ms=x", "delay_ms"),
        ] {
            let why = ResponseOverrides::read(Some(query)).expect_err(query);
            assert!(why.starts_with(named) && !why.contains('\n'), "{query}: {why}");
        }
    }

    proptest! {
        #[test]
        fn no_query_upsets_the_reading(query in "((delay_ms|status|bytes|body)?=?[0-9a-z.%+&-]{0,8}&?){0,4}") {
            if let Ok(Some(script)) = ResponseOverrides::read(Some(&query)) {
                prop_assert!(script.delay.is_none_or(|delay| delay <= Nanos::from_secs(3600)));
            }
        }
    }
}
