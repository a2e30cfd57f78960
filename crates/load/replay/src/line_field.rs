//! Fields of a line.

use super::access_time::{AccessTime, StampMoment};
use super::line_error::LineError;
use weir_base::Nanos;

/// Meaning of a field of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineField {
    /// Something that a replay does not need.
    Other,
    /// Time in any notation.
    Time(StampMoment),
    /// Time that the request took, in this unit.
    Took(TookUnit),
    /// Request line: `GET /path HTTP/1.1`.
    RequestLine,
    /// Method.
    Method,
    /// Path with its query, or a whole URL.
    Target,
    /// Path without its query.
    Path,
    /// Query, with a question mark or without.
    Query,
    /// Status of the response.
    Status,
    /// Host that it was sent to.
    Host,
    /// `User-Agent` header.
    UserAgent,
    /// `Referer` header.
    Referer,
    /// Body of the request.
    Body,
}

/// Unit of the time that a request took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TookUnit {
    Seconds,
    Millis,
    Micros,
    Nanos,
}

impl TookUnit {
    fn seconds(self) -> f64 {
        match self {
            Self::Seconds => 1.0,
            Self::Millis => 1e-3,
            Self::Micros => 1e-6,
            Self::Nanos => 1e-9,
        }
    }

    /// Time of a number in this unit; `None` for what is none.
    pub(crate) fn time(self, number: f64) -> Option<Nanos> {
        let seconds = number * self.seconds();
        (seconds.is_finite() && (0.0..=MAX_TOOK_S).contains(&seconds)).then(|| Nanos::from_secs_f64(seconds))
    }
}

/// Longest request that is believed: a year.
const MAX_TOOK_S: f64 = 365.0 * 86_400.0;

/// Fields of a line as texts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FieldTexts<'a> {
    pub(crate) time: Option<AccessTime>,
    pub(crate) took: Option<Nanos>,
    pub(crate) request_line: Option<&'a str>,
    pub(crate) method: Option<&'a str>,
    pub(crate) target: Option<&'a str>,
    pub(crate) path: Option<&'a str>,
    pub(crate) query: Option<&'a str>,
    pub(crate) status: Option<u16>,
    pub(crate) host: Option<&'a str>,
    pub(crate) user_agent: Option<&'a str>,
    pub(crate) referer: Option<&'a str>,
    pub(crate) body: Option<&'a str>,
}

impl<'a> FieldTexts<'a> {
    /// Takes the text of a field; of two fields of a kind the first one that is not empty counts, and a start before an
    /// end.
    pub(crate) fn take(&mut self, field: LineField, text: &'a str) -> Result<(), LineError> {
        let is_empty = matches!(text, "" | "-");
        match field {
            LineField::Other => {}
            _ if is_empty => {}
            LineField::Time(moment) => {
                let time = AccessTime::parse(text).ok_or_else(|| LineError::Time(text.to_owned()))?.marking(moment);
                if self.time.is_none_or(|known| known.is_end() && !time.is_end()) {
                    self.time = Some(time);
                }
            }
            LineField::Took(unit) => {
                let took = text.parse().ok().and_then(|number| unit.time(number));
                self.took = Some(took.ok_or_else(|| LineError::Took(text.to_owned()))?);
            }
            LineField::Status => {
                let status: u16 = text.parse().map_err(|_| LineError::Status(text.to_owned()))?;
                match status {
                    // No response: the client has gone.
                    0 => {}
                    100..=999 => self.status = Some(status),
                    _ => return Err(LineError::Status(text.to_owned())),
                }
            }
            LineField::RequestLine => self.request_line = self.request_line.or(Some(text)),
            LineField::Method => self.method = self.method.or(Some(text)),
            LineField::Target => self.target = self.target.or(Some(text)),
            LineField::Path => self.path = self.path.or(Some(text)),
            LineField::Query => self.query = self.query.or(Some(text)),
            LineField::Host => self.host = self.host.or(Some(text)),
            LineField::UserAgent => self.user_agent = self.user_agent.or(Some(text)),
            LineField::Referer => self.referer = self.referer.or(Some(text)),
            LineField::Body => self.body = self.body.or(Some(text)),
        }
        Ok(())
    }
}
