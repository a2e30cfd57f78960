//! Lines that are JSON objects: Caddy, Traefik, load balancers of clouds, logs of frameworks, and weir's own.

use serde_json::{Map, Value};

use super::access_record::AccessRecord;
use super::access_time::{AccessTime, StampMoment};
use super::line_error::LineError;
use super::line_field::{FieldTexts, LineField, TookUnit};
use super::raw_fields::TextEscapes;
use super::request_text::is_method;
use weir_base::units;

/// Lines that are JSON objects. Members are recognized by their names, in any case and with any punctuation, and of
/// objects in objects with the names of those: `http.request.method`, `request_method` and `{"request": {"method":
/// ...}}`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonLines {
    /// Names that a user has given, as they are compared, before the known ones.
    given: Vec<(LineField, String)>,
}

/// Known names of each field, the preferred ones first, without punctuation and in small letters.
const NAMES: [(LineField, &[&str]); 14] = [
    (
        LineField::Time(StampMoment::Start),
        &["starttime", "startutc", "requeststarttime", "requestcreationtime", "startedat", "startlocal", "started"],
    ),
    (
        LineField::Time(StampMoment::End),
        &["ts", "timestamp", "time", "timeiso8601", "timelocal", "msec", "datetime", "date", "eventtime", "times"],
    ),
    (
        LineField::Took(TookUnit::Millis),
        &[
            "durationms",
            "responsetimems",
            "latencyms",
            "elapsedms",
            "tookms",
            "requesttimems",
            "timetakenms",
            "responsetime",
            "durationmillis",
        ],
    ),
    (LineField::Took(TookUnit::Seconds), &["requesttime", "durations", "latencys", "elapseds", "durationseconds"]),
    (LineField::Took(TookUnit::Micros), &["durationus", "latencyus", "elapsedus", "durationmicros"]),
    (LineField::Took(TookUnit::Nanos), &["durationns", "latencyns", "elapsedns", "durationnanos"]),
    (LineField::RequestLine, &["request", "requestline", "httprequest", "req", "message", "msg"]),
    (
        LineField::Method,
        &[
            "method",
            "requestmethod",
            "httpmethod",
            "verb",
            "httprequestmethod",
            "reqmethod",
            "httpverb",
            "httprequestrequestmethod",
        ],
    ),
    (
        LineField::Target,
        &[
            "requesturi",
            "requestpath",
            "originalpath",
            "uri",
            "url",
            "target",
            "path",
            "requesturl",
            "httptarget",
            "urloriginal",
            "httpurl",
            "httprequestrequesturl",
            "requri",
            "requrl",
            "urlpath",
            "httppath",
            "originalurl",
            "reqpath",
        ],
    ),
    (LineField::Query, &["query", "querystring", "urlquery", "requestquery", "args", "querystring"]),
    (
        LineField::Status,
        &[
            "status",
            "statuscode",
            "responsestatus",
            "responsecode",
            "httpstatus",
            "responsestatuscode",
            "httpresponsestatuscode",
            "httpstatuscode",
            "downstreamstatus",
            "resstatuscode",
            "httprequeststatus",
            "resstatus",
            "code",
        ],
    ),
    (LineField::Host, &["host", "requesthost", "httphost", "authority", "vhost", "servername", "reqhost"]),
    (
        LineField::UserAgent,
        &[
            "useragent",
            "httpuseragent",
            "requestheadersuseragent",
            "httprequestuseragent",
            "requestuseragent",
            "useragentoriginal",
            "reqheadersuseragent",
        ],
    ),
    (
        LineField::Referer,
        &["referer", "httpreferer", "requestheadersreferer", "httprequestreferer", "referrer", "httprequestreferrer"],
    ),
];

/// Known names of the body.
const BODY_NAMES: [&str; 4] = ["requestbody", "body", "httprequestbodycontent", "reqbody"];
/// Objects within objects that are looked into.
const MAX_DEPTH: usize = 4;
/// Maximum members of a line that are read.
const MAX_MEMBERS: usize = 500;
/// Names of fields in [`JsonLines::with_names`].
const GIVEN: [(&str, LineField); 12] = [
    ("time", LineField::Time(StampMoment::End)),
    ("start", LineField::Time(StampMoment::Start)),
    ("took_s", LineField::Took(TookUnit::Seconds)),
    ("took_ms", LineField::Took(TookUnit::Millis)),
    ("request", LineField::RequestLine),
    ("method", LineField::Method),
    ("path", LineField::Target),
    ("query", LineField::Query),
    ("status", LineField::Status),
    ("host", LineField::Host),
    ("agent", LineField::UserAgent),
    ("body", LineField::Body),
];

impl JsonLines {
    /// Lines whose members have these names: `time=when,method=verb`; others are recognized by the known names.
    ///
    /// # Errors
    /// The invalid part.
    pub fn with_names(text: &str) -> Result<Self, String> {
        let one = |part: &str| {
            let (field, name) = part.split_once('=').ok_or_else(|| format!("'{part}': write FIELD=NAME"))?;
            let known = GIVEN.iter().find(|(known, _)| *known == field.trim());
            let names = || GIVEN.map(|(known, _)| known).join(", ");
            let (_, field) = known.ok_or_else(|| format!("unknown field '{}'; choose {}", field.trim(), names()))?;
            Ok((*field, compared(name)))
        };
        Ok(Self { given: text.split(',').map(one).collect::<Result<_, String>>()? })
    }

    /// Record of a line.
    ///
    /// # Errors
    /// Why the line is not a JSON object, or has no request.
    pub fn record(&self, line: &str) -> Result<AccessRecord, LineError> {
        let object: Map<String, Value> =
            serde_json::from_str(line).map_err(|error| LineError::Json(error.to_string()))?;
        let mut members = Vec::new();
        collect(&object, "", 0, &mut members);
        let mut texts: Vec<(LineField, String)> = Vec::new();
        let find = |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        let body = (LineField::Body, &BODY_NAMES[..]);
        let given = self.given.iter().map(|(field, name)| (*field, std::slice::from_ref(name)));
        for (field, names) in given {
            texts.extend(names.iter().find_map(|name| Some((field, text(field, find(name)?)?))));
        }
        for (field, names) in NAMES.into_iter().chain([body]) {
            texts.extend(names.iter().find_map(|name| Some((field, text(field, find(name)?)?))));
        }
        let mut fields = FieldTexts::default();
        for (field, text) in &texts {
            // Of two durations the first one counts, and a duration that is none is not needed.
            match field {
                LineField::Took(_) if fields.took.is_some() => {}
                LineField::Took(_) => drop(fields.take(*field, text)),
                _ => fields.take(*field, text)?,
            }
        }
        if fields.took.is_none() {
            fields.took = ["duration", "latency", "elapsed", "httprequestlatency"]
                .into_iter()
                .find_map(|name| duration(find(name)?));
        }
        fields.into_record(TextEscapes::None)
    }
}

/// Name as names are compared.
fn compared(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// Collects the members of an object, and those of objects in it.
fn collect<'a>(object: &'a Map<String, Value>, prefix: &str, depth: usize, members: &mut Vec<(String, &'a Value)>) {
    for (name, value) in object {
        if members.len() >= MAX_MEMBERS {
            return;
        }
        let name = format!("{prefix}{}", compared(name));
        match value {
            Value::Object(inner) if depth < MAX_DEPTH => collect(inner, &name, depth + 1, members),
            _ => members.push((name, value)),
        }
    }
}

/// Value of a member as the text of a field; `None` if it is none for that.
fn text(field: LineField, value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        // Caddy has a list of values for each header.
        Value::Array(values) => values.first()?.as_str()?.to_owned(),
        Value::Object(_) if field == LineField::Body => value.to_string(),
        _ => return None,
    };
    let is_valid = match field {
        LineField::RequestLine => {
            text.split_once(' ').is_some_and(|(method, rest)| is_method(method) && rest.starts_with('/'))
        }
        LineField::Method => is_method(&text),
        LineField::Time(_) => AccessTime::parse(&text).is_some(),
        LineField::Target => text.starts_with(['/', 'h']),
        LineField::Status => text.parse::<u16>().is_ok(),
        _ => !text.is_empty(),
    };
    is_valid.then_some(text)
}

/// Duration of a member without a unit in its name: with a fraction in seconds, as a text with its unit. A whole number
/// is in a unit that is not known.
fn duration(value: &Value) -> Option<weir_base::Nanos> {
    match value {
        Value::Number(number) if !number.is_i64() && !number.is_u64() => TookUnit::Seconds.time(number.as_f64()?),
        Value::String(text) => units::time(text).ok().map(Into::into),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_base::Nanos;

    fn record(line: &str) -> AccessRecord {
        JsonLines::default().record(line).expect("a record")
    }

    #[test]
    fn logs_of_caddy_are_read() {
        let line = r#"{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request",
            "request":{"remote_ip":"127.0.0.1","proto":"HTTP/2.0","method":"GET","host":"localhost:8443","uri":"/a?b=c",
            "headers":{"User-Agent":["curl/7.82.0"]}},"bytes_read":0,"duration":0.000929675,"size":10900,"status":200}"#;
        let record = record(&line.replace('\n', ""));
        assert_eq!((&*record.method, &*record.target, record.status), ("GET", "/a?b=c", Some(200)));
        assert_eq!(
            (record.host.as_deref(), record.user_agent.as_deref()),
            (Some("localhost:8443"), Some("curl/7.82.0"))
        );
        assert_eq!((record.took, record.time.is_end()), (Some(Nanos(929_675)), true));
    }

    #[test]
    fn members_are_told_from_their_names() {
        let envoy =
            r#"{"start_time":"2016-04-15T20:17:00.310Z","method":"PUT","path":"/x","response_code":204,"duration":12}"#;
        let record_of_envoy = record(envoy);
        assert_eq!(
            (&*record_of_envoy.method, record_of_envoy.time.is_end(), record_of_envoy.took),
            ("PUT", false, None)
        );
        let ecs = r#"{"@timestamp":"2016-04-15T20:17:00Z","http":{"request":{"method":"GET"},"response":{"status_code":200}},"url":{"path":"/x","query":"a=b"}}"#;
        assert_eq!((&*record(ecs).target, record(ecs).status), ("/x?a=b", Some(200)));
        let nginx = r#"{"time_local":"10/Oct/2000:13:55:36 -0700","request":"POST /x HTTP/1.1","status":"201","request_time":"0.250","request_body":"{\"a\":1}"}"#;
        assert_eq!((&*record(nginx).method, record(nginx).body.as_deref()), ("POST", Some("{\"a\":1}")));
        assert_eq!(record(nginx).took, Some(Nanos::from_millis(250)));
        let cloud = r#"{"httpRequest":{"requestMethod":"GET","requestUrl":"https://h/x","status":200,"latency":"0.5s"},"timestamp":"2016-04-15T20:17:00Z"}"#;
        assert_eq!((&*record(cloud).target, record(cloud).host.as_deref()), ("/x", Some("h")));
        assert_eq!(record(cloud).took, Some(Nanos::from_millis(500)));
        let weir = r#"{"time":1646861401.5,"client":"127.0.0.1","method":"GET","target":"/","version":"HTTP/1.1","status":null,"bytes":0,"duration_ms":1.5}"#;
        assert_eq!((record(weir).status, record(weir).took), (None, Some(Nanos(1_500_000))));
    }

    #[test]
    fn names_can_be_given() {
        let lines = JsonLines::with_names("time=when, method=what,path=x.where").expect("names");
        let record =
            lines.record(r#"{"when":1646861401,"what":"GET","x":{"where":"/a"},"path":"/b"}"#).expect("a record");
        assert_eq!(&*record.target, "/a");
        assert!(JsonLines::with_names("when").is_err() && JsonLines::with_names("x=y").is_err());
    }

    #[test]
    fn lines_without_a_request_have_a_reason() {
        let error = |line: &str| JsonLines::default().record(line).expect_err("an error").to_string();
        assert!(error("{").starts_with("not a JSON object: EOF"));
        assert!(error("[1]").starts_with("not a JSON object"));
        assert_eq!(error("{}"), "no time");
        assert_eq!(error(r#"{"ts":1646861401,"msg":"server started"}"#), "no HTTP request: ''");
    }

    proptest! {
        #[test]
        fn any_line_is_a_record_or_an_error(line in "[{}\\[\\]\":,a-z0-9/ .\\\\é]{0,60}") {
            let _ = JsonLines::default().record(&line);
        }
    }
}
