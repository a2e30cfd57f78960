//! Exchanges as entries of a HAR file, a line each. PURE.

use base64::Engine;
use chrono::{DateTime, SecondsFormat};
use http::{HeaderMap, header};
use serde_json::{Map, Value, json};

use crate::exchange::{ExchangeResponse, RecordedBody, RecordedExchange, content_type, header_text};
use crate::resource::resource_type;
use weir_net::content_coding::{decoded, read_up_to};

/// Longest body of a response without its coding that is searched for values; that of imports.
pub(crate) const MAX_SEARCHED_BYTES: usize = 4 << 20;

/// Entry of a HAR file.
pub(crate) fn har_entry(exchange: &RecordedExchange) -> String {
    let mut entry = json!({
        "startedDateTime": timestamp(exchange.started_unix_ms),
        "time": rounded(exchange.duration_ms),
        "request": request(exchange),
        "response": response(exchange),
        "cache": {},
        "timings": {
            "send": 0,
            "wait": rounded(exchange.wait_ms),
            "receive": rounded((exchange.duration_ms - exchange.wait_ms).max(0.0)),
        },
    });
    if let Some(map) = entry.as_object_mut() {
        if exchange.page > 0 {
            map.insert("pageref".to_owned(), format!("page_{}", exchange.page).into());
        }
        if let Some(kind) = resource_type(&exchange.headers) {
            map.insert("_resourceType".to_owned(), kind.into());
        }
        if let Some(reason) = &exchange.left_out {
            map.insert("_leftOut".to_owned(), reason.as_str().into());
        }
    }
    entry.to_string()
}

/// Time of a HAR file: RFC 3339 with milliseconds.
pub(crate) fn timestamp(unix_ms: i64) -> String {
    DateTime::from_timestamp_millis(unix_ms).unwrap_or_default().to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Milliseconds with three digits.
fn rounded(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

fn request(exchange: &RecordedExchange) -> Value {
    let mut request = json!({
        "method": exchange.method,
        "url": exchange.url,
        "httpVersion": exchange.version,
        "cookies": [],
        "headers": headers(&exchange.headers),
        "queryString": query(&exchange.url),
        "headersSize": -1,
        "bodySize": exchange.body.length,
    });
    if exchange.body.length > 0
        && let Some(map) = request.as_object_mut()
    {
        map.insert("postData".to_owned(), post_data(&exchange.body, &content_type(&exchange.headers)));
    }
    request
}

fn post_data(body: &RecordedBody, media_type: &str) -> Value {
    let is_multipart = media_type.trim_start().to_ascii_lowercase().starts_with("multipart/");
    match std::str::from_utf8(&body.bytes) {
        // Parts that are files have line ends and names that a text in JSON would have to keep exactly.
        Ok(text) if !(is_multipart && text.contains("filename")) => json!({ "mimeType": media_type, "text": text }),
        _ => json!({
            "mimeType": media_type,
            "text": base64::engine::general_purpose::STANDARD.encode(&body.bytes),
            "encoding": "base64",
        }),
    }
}

fn response(exchange: &RecordedExchange) -> Value {
    let nothing = ExchangeResponse::default();
    let response = exchange.response.as_ref().unwrap_or(&nothing);
    json!({
        "status": response.status,
        "statusText": http::StatusCode::from_u16(response.status).ok().and_then(|s| s.canonical_reason()).unwrap_or(""),
        "httpVersion": exchange.version,
        "cookies": [],
        "headers": headers(&response.headers),
        "content": content(response),
        "redirectURL": header_text(&response.headers, header::LOCATION.as_str()),
        "headersSize": -1,
        "bodySize": response.body.length,
    })
}

fn content(response: &ExchangeResponse) -> Value {
    let media_type = content_type(&response.headers);
    let mut content = Map::new();
    let encoding = header_text(&response.headers, header::CONTENT_ENCODING.as_str());
    let body = decoded(&response.body.bytes, encoding.as_bytes(), read_up_to(MAX_SEARCHED_BYTES)).ok();
    let body = body.filter(|_| !response.body.is_cut());
    let length = body.as_ref().map_or(response.body.length, |body| body.len() as u64);
    content.insert("size".to_owned(), length.into());
    content.insert("mimeType".to_owned(), media_type.into());
    if let Some(text) = body.as_ref().and_then(|body| std::str::from_utf8(body).ok()).filter(|text| !text.is_empty()) {
        content.insert("text".to_owned(), text.into());
    }
    if response.body.is_cut() && response.body.length > 0 {
        content.insert("comment".to_owned(), "the body is not kept".into());
    }
    content.into()
}

fn headers(headers: &HeaderMap) -> Value {
    let pair = |(name, value): (&http::HeaderName, &http::HeaderValue)| json!({ "name": title(name.as_str()), "value": String::from_utf8_lossy(value.as_bytes()) });
    headers.iter().map(pair).collect()
}

/// Name of a header as people write it, which is the same to every service: `Content-Type`.
fn title(name: &str) -> String {
    let mut is_first = true;
    let letter = |c: char| {
        let begins = std::mem::replace(&mut is_first, c == '-');
        if begins { c.to_ascii_uppercase() } else { c }
    };
    name.chars().map(letter).collect()
}

/// Parameters of a URL as they are written.
fn query(url: &str) -> Value {
    let query = url.split_once('?').map(|(_, query)| query.split('#').next().unwrap_or_default()).unwrap_or_default();
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(n, v)| json!({"name": n, "value": v})).collect()
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use proptest::prelude::*;
    use weir_import::{ImportFile, ImportSettings, import, to_hurl};

    use super::*;

    fn headers_of(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn body(bytes: &[u8]) -> RecordedBody {
        RecordedBody { bytes: bytes.to_vec(), length: bytes.len() as u64 }
    }

    fn hurl(entries: &[String]) -> String {
        let text = format!("{{\"log\": {{\"version\": \"1.2\", \"entries\": [\n{}\n]}}}}", entries.join(",\n"));
        let imported =
            import([ImportFile { name: "x.har", text: (&text).into(), kind: None }], &ImportSettings::default());
        imported.unwrap().scenarios.iter().map(to_hurl).collect()
    }

    #[test]
    fn what_is_recorded_is_imported_as_it_was_sent() {
        let login = RecordedExchange {
            started_unix_ms: 1_767_323_045_000,
            duration_ms: 12.5,
            method: "POST".into(),
            url: "http://shop.example/login?x=1".into(),
            version: "HTTP/1.1".into(),
            headers: headers_of(&[("content-type", "application/json"), ("x-a", "1")]),
            body: body(br#"{"user": "ada"}"#),
            response: Some(ExchangeResponse {
                status: 200,
                headers: headers_of(&[("content-type", "application/json")]),
                body: body(br#"{"token": "t1-0-59ea4717472f1c4b"}"#),
            }),
            ..RecordedExchange::default()
        };
        let upload = RecordedExchange {
            started_unix_ms: 1_767_323_046_600,
            method: "POST".into(),
            url: "http://shop.example/upload".into(),
            headers: headers_of(&[
                ("content-type", "multipart/form-data; boundary=x"),
                ("authorization", "Bearer t1-0-59ea4717472f1c4b"),
            ]),
            body: body(b"--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\n\xff\r\n--x--\r\n"),
            response: Some(ExchangeResponse { status: 204, ..ExchangeResponse::default() }),
            ..RecordedExchange::default()
        };
        let chat = RecordedExchange {
            started_unix_ms: 1_767_323_047_000,
            method: "GET".into(),
            url: "ws://shop.example/chat".into(),
            ..RecordedExchange::default()
        };
        let gone = RecordedExchange {
            started_unix_ms: 1_767_323_048_000,
            method: "GET".into(),
            url: "http://shop.example/gone".into(),
            left_out: Some("no response: connection refused".into()),
            ..RecordedExchange::default()
        };
        let made = hurl(&[login, upload, chat, gone].map(|exchange| har_entry(&exchange)));
        let expected = "# token: 21 characters of the JSON at $.token that come again in the header Authorization of request 2\n\
            POST {{base_url}}/login?x=1\nX-A: 1\n{\"user\": \"ada\"}\nHTTP 200\n[Captures]\ntoken: jsonpath \"$.token\"\n";
        assert!(made.starts_with(expected), "{made}");
        assert!(made.contains("Content-Type: multipart/form-data; boundary=x\nAuthorization: Bearer {{token}}\n[Options]\ndelay: 1500ms\nbase64,LS14"), "{made}");
        assert!(
            made.contains("# left out: GET ws://shop.example/chat: the scheme ws, weir sends http and https\n"),
            "{made}"
        );
        assert!(made.contains("# left out: GET http://shop.example/gone: no response: connection refused\n"), "{made}");
    }

    proptest! {
        /// Whatever is recorded: a line of JSON, which is imported, with the body as it was.
        #[test]
        fn any_exchange_is_a_line_that_is_imported(
            bytes in proptest::collection::vec(any::<u8>(), 0..60), value in "[ -~]{0,20}", text in "\\PC{0,40}",
            length in 0..100_u64, status in 0..700_u16, started in any::<i64>(), encoding in "|gzip|br|zstd|x",
            left_out in proptest::option::of("\\PC{0,20}"), page in 0..3_u32,
        ) {
            let mut headers = HeaderMap::new();
            headers.insert("x-value", HeaderValue::from_str(&value).unwrap());
            headers.insert("content-type", HeaderValue::from_bytes(&bytes).unwrap_or(HeaderValue::from_static("x")));
            let mut response_headers = headers.clone();
            response_headers.insert("content-encoding", HeaderValue::from_str(&encoding).unwrap());
            let exchange = RecordedExchange {
                started_unix_ms: started,
                left_out: left_out.clone(),
                page,
                method: "PUT".into(),
                url: format!("http://h/{text}"),
                headers,
                body: body(&bytes),
                response: Some(ExchangeResponse {
                    status,
                    headers: response_headers,
                    body: RecordedBody { bytes: bytes.clone(), length },
                }),
                ..RecordedExchange::default()
            };
            let line = har_entry(&exchange);
            prop_assert!(!line.contains('\n'));
            let read: Value = serde_json::from_str(&line).unwrap();
            prop_assert_eq!(read["request"]["url"].as_str(), Some(exchange.url.as_str()));
            let text = hurl(&[line]);
            prop_assert!(left_out.is_none() || text.lines().all(|line| line.starts_with('#')), "{}", text);
        }
    }
}
