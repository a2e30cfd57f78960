//! Scripted requests: `?delay_ms=&status=&body=&bytes=` in place of random choices.

use http::StatusCode;

use super::ending::{Payload, ResponseEnding};
use weir_base::Nanos;

/// Response that a request asks for. Defaults of what it does not name: status 200, the body of the status, a random
/// delay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseOverrides {
    /// Delay, if the request names one.
    pub delay: Option<Nanos>,
    /// Ending of the request.
    pub ending: ResponseEnding,
}

/// Maximum of `delay_ms`: an hour.
const MAX_DELAY_MS: f64 = 3_600_000.0;
/// Maximum of `bytes`: 1 GiB.
const MAX_BODY_BYTES: u64 = 1 << 30;

impl ResponseOverrides {
    /// Parses a query; none if it has no parameter of a scripted request. Other parameters are ignored, and the first
    /// of a name counts.
    ///
    /// # Errors
    /// First invalid parameter with its expected range, in one line.
    pub fn read(query: Option<&str>) -> Result<Option<Self>, String> {
        let (mut delay, mut status, mut body, mut bytes) = (None, None, None, None);
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            let value_of = match &*name {
                "delay_ms" => &mut delay,
                "status" => &mut status,
                "body" => &mut body,
                "bytes" => &mut bytes,
                _ => continue,
            };
            value_of.get_or_insert(value);
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
        let ending = match status.as_deref() {
            None => ResponseEnding::Response(StatusCode::OK, payload),
            Some("reset") => ResponseEnding::Reset,
            Some("hang") => ResponseEnding::Hang,
            Some(text) => ResponseEnding::Response(read_status(text)?, payload),
        };
        Ok(Some(Self { delay: delay.map(|text| read_delay(&text)).transpose()?, ending }))
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
    fn a_request_gets_what_it_names() {
        let default = ResponseEnding::Response(StatusCode::OK, Payload::Standard);
        assert_eq!(
            read("delay_ms=50"),
            ResponseOverrides { delay: Some(Nanos::from_millis(50)), ending: default.clone() }
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
    fn other_parameters_are_ignored() {
        for query in [None, Some(""), Some("&"), Some("id=7&Status=500&delay=3"), Some("%ff=%ff")] {
            assert_eq!(ResponseOverrides::read(query), Ok(None), "{query:?}");
        }
    }

    #[test]
    fn a_parameter_out_of_range_is_named() {
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
            let reason = ResponseOverrides::read(Some(query)).expect_err(query);
            assert!(reason.starts_with(named) && !reason.contains('\n'), "{query}: {reason}");
        }
    }

    proptest! {
        #[test]
        fn any_query_is_parsed_or_rejected(query in "((delay_ms|status|bytes|body)?=?[0-9a-z.%+&-]{0,8}&?){0,4}") {
            if let Ok(Some(script)) = ResponseOverrides::read(Some(&query)) {
                prop_assert!(script.delay.is_none_or(|delay| delay <= Nanos::from_secs(3600)));
            }
        }
    }
}
