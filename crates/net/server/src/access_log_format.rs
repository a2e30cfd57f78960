//! Formats of access-log lines: JSON, the two classic ones of the web, and templates with nginx's variables.

use std::fmt::Write;

use http::HeaderName;
use serde::Serialize;

use weir_base::calendar::{CivilDate, DAY_S};

/// Format of access-log lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AccessLogFormat {
    /// One JSON object per line, with the attempt log of the service.
    #[default]
    Json,
    /// Text with variables.
    Template(LogTemplate),
}

/// Text with nginx's variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTemplate {
    pieces: Vec<TemplatePiece>,
    /// Request headers that variables name, each once.
    headers: Vec<HeaderName>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    Variable(LogVariable),
}

/// A value of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogVariable {
    BodyBytesSent,
    Caller,
    /// A request header, by its index.
    Header(usize),
    Msec,
    RemoteAddr,
    RemotePort,
    RemoteUser,
    Request,
    RequestMethod,
    RequestTime,
    RequestUri,
    Route,
    ServerProtocol,
    SslClientSubject,
    SslProtocol,
    SslServerName,
    Status,
    TimeIso8601,
    TimeLocal,
}

/// Variables by name, in order; `http_NAME` beside them is a request header.
const VARIABLES: [(&str, LogVariable); 18] = [
    ("body_bytes_sent", LogVariable::BodyBytesSent),
    ("caller", LogVariable::Caller),
    ("msec", LogVariable::Msec),
    ("remote_addr", LogVariable::RemoteAddr),
    ("remote_port", LogVariable::RemotePort),
    ("remote_user", LogVariable::RemoteUser),
    ("request", LogVariable::Request),
    ("request_method", LogVariable::RequestMethod),
    ("request_time", LogVariable::RequestTime),
    ("request_uri", LogVariable::RequestUri),
    ("route", LogVariable::Route),
    ("server_protocol", LogVariable::ServerProtocol),
    ("ssl_client_s_dn", LogVariable::SslClientSubject),
    ("ssl_protocol", LogVariable::SslProtocol),
    ("ssl_server_name", LogVariable::SslServerName),
    ("status", LogVariable::Status),
    ("time_iso8601", LogVariable::TimeIso8601),
    ("time_local", LogVariable::TimeLocal),
];

/// The Common Log Format (NCSA).
const COMMON_TEMPLATE: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent";
/// The Combined Log Format (Apache), which is nginx's default.
const COMBINED_TEMPLATE: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \
    \"$http_referer\" \"$http_user_agent\"";

/// Request and response as lines of all formats have them.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct LoggedRequest<'a> {
    /// Address and port; `unix:` without a port.
    pub(super) client: &'a str,
    pub(super) method: &'a str,
    pub(super) target: &'a str,
    pub(super) version: &'a str,
    /// None if there was no response: the connection was reset, or the client disconnected.
    pub(super) status: Option<u16>,
    /// Bytes of the body.
    pub(super) bytes: u64,
}

/// Values of a request for a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogValues<'a> {
    /// End of the response, in seconds since 1970.
    pub(super) time_s: f64,
    pub(super) duration_s: f64,
    pub(super) request: LoggedRequest<'a>,
    pub(super) route: Option<&'a str>,
    /// Name of the caller, by the service.
    pub(super) caller: Option<&'a str>,
    /// Version, server name, and subject of the client's certificate.
    pub(super) tls: Option<(&'a str, Option<&'a str>, Option<&'a str>)>,
    /// Values of the template's headers, in their order.
    pub(super) headers: &'a [Option<Vec<u8>>],
}

impl AccessLogFormat {
    /// Parses `json`, `common`, `combined`, or a template.
    ///
    /// # Errors
    /// The error and its remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let template = match text {
            "json" => return Ok(Self::Json),
            "common" => COMMON_TEMPLATE,
            "combined" => COMBINED_TEMPLATE,
            template if template.contains('$') => template,
            _ => return Err("write json, common, combined, or a template such as '$remote_addr $status'".to_owned()),
        };
        LogTemplate::parse(template).map(Self::Template)
    }

    /// Request headers that lines have.
    pub(super) fn headers(&self) -> &[HeaderName] {
        match self {
            Self::Json => &[],
            Self::Template(template) => &template.headers,
        }
    }
}

impl AccessLogFormat {
    /// Whether lines have the name of the caller.
    pub(super) fn has_caller(&self) -> bool {
        let is_caller = |piece: &TemplatePiece| matches!(piece, TemplatePiece::Variable(LogVariable::Caller));
        matches!(self, Self::Template(template) if template.pieces.iter().any(is_caller))
    }
}

impl LogTemplate {
    fn parse(text: &str) -> Result<Self, String> {
        let mut template = Self { pieces: Vec::new(), headers: Vec::new() };
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            if at > 0 {
                template.pieces.push(TemplatePiece::Text(rest[..at].to_owned()));
            }
            let after = &rest[at + 1..];
            let (name, following) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
                Some(braced) => braced,
                None => {
                    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                    after.split_at(after.find(|c| !is_name(c)).unwrap_or(after.len()))
                }
            };
            let variable = template.variable(name)?;
            template.pieces.push(TemplatePiece::Variable(variable));
            rest = following;
        }
        if rest.contains(['\n', '\r']) || text.contains(['\n', '\r']) {
            return Err("the template is one line".to_owned());
        }
        if !rest.is_empty() {
            template.pieces.push(TemplatePiece::Text(rest.to_owned()));
        }
        Ok(template)
    }

    fn variable(&mut self, name: &str) -> Result<LogVariable, String> {
        if let Some((_, variable)) = VARIABLES.iter().find(|(known, _)| *known == name) {
            return Ok(*variable);
        }
        let header = name.strip_prefix("http_").filter(|header| !header.is_empty());
        let Some(header) = header.and_then(|header| header.replace('_', "-").parse::<HeaderName>().ok()) else {
            let known: Vec<&str> = VARIABLES.iter().map(|(name, _)| *name).collect();
            return Err(format!("unknown variable '${name}'; choose {} or http_NAME of a header", known.join(", ")));
        };
        let index = self.headers.iter().position(|known| *known == header).unwrap_or_else(|| {
            self.headers.push(header);
            self.headers.len() - 1
        });
        Ok(LogVariable::Header(index))
    }

    /// Appends one line, with its end.
    pub(super) fn write(&self, values: &LogValues<'_>, line: &mut Vec<u8>) {
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Text(text) => line.extend_from_slice(text.as_bytes()),
                TemplatePiece::Variable(variable) => write_variable(*variable, values, line),
            }
        }
        line.push(b'\n');
    }
}

fn write_variable(variable: LogVariable, values: &LogValues<'_>, line: &mut Vec<u8>) {
    let request = &values.request;
    let address = || match request.client.rsplit_once(':') {
        Some((address, port)) if !port.is_empty() => {
            (address.trim_start_matches('[').trim_end_matches(']'), Some(port))
        }
        _ => (request.client, None),
    };
    let tls = values.tls;
    match variable {
        LogVariable::Caller => text_or_hyphen(values.caller, line),
        LogVariable::BodyBytesSent => escape(request.bytes.to_string().as_bytes(), line),
        LogVariable::Header(index) => match values.headers.get(index) {
            Some(Some(value)) => escape(value, line),
            _ => line.push(b'-'),
        },
        LogVariable::Msec => escape(format!("{:.3}", values.time_s).as_bytes(), line),
        LogVariable::RemoteAddr => escape(address().0.as_bytes(), line),
        LogVariable::RemotePort => text_or_hyphen(address().1, line),
        // Who a caller says to be is not verified here.
        LogVariable::RemoteUser => line.push(b'-'),
        LogVariable::Request => {
            for (index, part) in [request.method, request.target, request.version].into_iter().enumerate() {
                if index > 0 {
                    line.push(b' ');
                }
                escape(part.as_bytes(), line);
            }
        }
        LogVariable::RequestMethod => escape(request.method.as_bytes(), line),
        LogVariable::RequestTime => escape(format!("{:.3}", values.duration_s).as_bytes(), line),
        LogVariable::RequestUri => escape(request.target.as_bytes(), line),
        LogVariable::Route => text_or_hyphen(values.route, line),
        LogVariable::ServerProtocol => escape(request.version.as_bytes(), line),
        LogVariable::SslClientSubject => text_or_hyphen(tls.and_then(|(_, _, subject)| subject), line),
        LogVariable::SslProtocol => text_or_hyphen(tls.map(|(version, ..)| version), line),
        LogVariable::SslServerName => text_or_hyphen(tls.and_then(|(_, name, _)| name), line),
        // nginx's status of a request whose client left before the response.
        LogVariable::Status => escape(request.status.unwrap_or(499).to_string().as_bytes(), line),
        LogVariable::TimeIso8601 => escape(CivilTime::of(values.time_s).iso8601().as_bytes(), line),
        LogVariable::TimeLocal => escape(CivilTime::of(values.time_s).common().as_bytes(), line),
    }
}

fn text_or_hyphen(text: Option<&str>, line: &mut Vec<u8>) {
    match text.filter(|text| !text.is_empty()) {
        Some(text) => escape(text.as_bytes(), line),
        None => line.push(b'-'),
    }
}

/// Appends a value as nginx does: quotes, backslashes and bytes that are not printable ASCII as `\xXX`, so that no value
/// can end its field or its line.
fn escape(value: &[u8], line: &mut Vec<u8>) {
    for byte in value {
        match byte {
            b'"' | b'\\' | ..=0x1f | 0x7f.. => line.extend_from_slice(format!("\\x{byte:02X}").as_bytes()),
            plain => line.push(*plain),
        }
    }
}

/// A time of the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CivilTime {
    date: CivilDate,
    second_of_day: u32,
}

impl CivilTime {
    /// The time of a number of seconds since 1970.
    fn of(unix_s: f64) -> Self {
        let seconds = unix_s as i64;
        let second_of_day = u32::try_from(seconds.rem_euclid(DAY_S)).unwrap_or(0);
        Self { date: CivilDate::of_days(seconds.div_euclid(DAY_S)), second_of_day }
    }

    /// `12/Aug/2026:10:11:12 +0000`.
    fn common(self) -> String {
        let date = self.date;
        format!("{:02}/{}/{}:{} +0000", date.day(), date.month_name(), date.year(), self.clock())
    }

    /// `2026-08-12T10:11:12+00:00`.
    fn iso8601(self) -> String {
        let date = self.date;
        format!("{}-{:02}-{:02}T{}+00:00", date.year(), date.month(), date.day(), self.clock())
    }

    fn clock(self) -> String {
        let mut text = String::new();
        let (minutes, seconds) = (self.second_of_day / 60, self.second_of_day % 60);
        // Writing to a string does not fail.
        let _ = write!(text, "{:02}:{:02}:{seconds:02}", minutes / 60, minutes % 60);
        text
    }
}

#[cfg(test)]
mod tests;
