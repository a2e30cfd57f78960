//! Queries: values of a response.

use std::borrow::Cow;

use md5::Md5;
use sha2::{Digest, Sha256};
use weir_hurl::{CookieAttribute, ParseError, PlainQuery, QueryKind, ResponseQuery, Template, TextQuery};
use weir_json::JsonPath;

use super::regexes::{CompiledRegex, first_group};
use super::response_needs::ResponseNeeds;
use super::template::CompiledTemplate;
use super::variables::{VariableNames, VariableSlot};
use super::view::ResponseView;
use super::xpath::CompiledXPath;
use super::{Scope, charset, dates, mistake, unsupported};
use crate::markup::MarkupTree;
use crate::value::Value;

/// Query with its paths, patterns and templates compiled.
#[derive(Clone, Debug)]
pub(super) enum CompiledQuery {
    Plain(PlainQuery),
    Header(CompiledTemplate),
    Cookie(CompiledTemplate, Option<CookieAttribute>),
    JsonPath(CompiledPath),
    Regex(CompiledRegex),
    Variable(VariableSlot),
    XPath(CompiledXPath),
}

/// JSONPath: compiled once, or for each value of its variables.
#[derive(Clone, Debug)]
pub(super) enum CompiledPath {
    Fixed(JsonPath),
    Dynamic(CompiledTemplate),
}

impl CompiledQuery {
    pub(super) fn compile(query: &ResponseQuery, names: &mut VariableNames) -> Result<Self, ParseError> {
        Ok(match &query.kind {
            QueryKind::Plain(plain) => Self::Plain(*plain),
            QueryKind::Text(TextQuery::Header, name) => Self::Header(CompiledTemplate::compile(name, names)?),
            QueryKind::Text(TextQuery::JsonPath, path) => Self::JsonPath(CompiledPath::compile(path, names)?),
            QueryKind::Text(TextQuery::Variable, name) => match name.as_text() {
                Some(name) => Self::Variable(names.slot(name)),
                None => return Err(mistake(name.position, "the name of a variable", "an expression")),
            },
            QueryKind::Text(TextQuery::XPath, path) => Self::XPath(CompiledXPath::compile(path, names)?),
            QueryKind::Regex(pattern) => Self::Regex(CompiledRegex::compile(pattern, query.position, names)?),
            QueryKind::Cookie(path) => Self::Cookie(CompiledTemplate::compile(&path.name, names)?, path.attribute),
            QueryKind::Certificate(_) => {
                return Err(unsupported(query.position, "certificate", "weir checks it when it connects"));
            }
        })
    }

    /// Parts of the response that the value is in.
    pub(super) fn needs(&self) -> ResponseNeeds {
        use PlainQuery::{Body, Bytes, Ip, Md5, RawBytes, Redirects, Sha256, Url};
        let nothing = ResponseNeeds::default();
        match self {
            Self::Plain(Body | Bytes | Md5 | RawBytes | Sha256) | Self::JsonPath(_) | Self::Regex(_) => {
                ResponseNeeds { body: true, ..nothing }
            }
            Self::XPath(_) => ResponseNeeds { body: true, headers: true, ..nothing },
            Self::Header(_) | Self::Cookie(..) | Self::Plain(Ip) => ResponseNeeds { headers: true, ..nothing },
            Self::Plain(Url) => ResponseNeeds { url: true, ..nothing },
            Self::Plain(Redirects) => ResponseNeeds { redirects: true, ..nothing },
            Self::Plain(_) | Self::Variable(_) => nothing,
        }
    }

    pub(super) fn is_about_status(&self) -> bool {
        matches!(self, Self::Plain(PlainQuery::Status))
    }

    /// Value in a response; `None` if there is none.
    pub(super) fn evaluate(&self, view: &ResponseView<'_>, scope: &mut Scope<'_, '_>) -> Result<Option<Value>, String> {
        if let (true, Some(error)) = (self.needs().body, view.body_error) {
            return Err(error.to_owned());
        }
        Ok(match self {
            Self::Plain(PlainQuery::Body) => Some(Value::text(view.text()?)),
            Self::Plain(plain) => plain_value(*plain, view),
            Self::Header(name) => {
                let name = name.evaluate(scope).map_err(|error| error.to_string())?;
                let mut values: Vec<Value> =
                    view.values(&name).map(|value| Value::text(String::from_utf8_lossy(value))).collect();
                if values.len() > 1 { Some(Value::List(values)) } else { values.pop() }
            }
            Self::Cookie(name, attribute) => {
                let name = name.evaluate(scope).map_err(|error| error.to_string())?;
                let mut set = view.values("set-cookie").filter_map(|value| std::str::from_utf8(value).ok());
                set.find(|cookie| cookie.split(['=', ';']).next().is_some_and(|given| given.trim() == name))
                    .map_or(Ok(None), |cookie| cookie_value(cookie, *attribute))?
            }
            Self::JsonPath(path) => path.find(view.text()?.as_bytes(), scope)?,
            Self::Regex(regex) => {
                let text = view.text()?;
                regex.with(scope, |regex| first_group(regex, &text))?.map(Value::Text)
            }
            Self::XPath(path) => {
                let text = view.text()?;
                let tree = match charset::is_html(view.header("content-type")) {
                    true => MarkupTree::of_html(&text),
                    false => MarkupTree::of_xml(&text).map_err(|reason| format!("the body is no XML: {reason}"))?,
                };
                path.find(&tree, scope)?
            }
            Self::Variable(slot) => scope.variables.get(*slot).cloned(),
        })
    }
}

impl CompiledPath {
    pub(super) fn compile(path: &Template, names: &mut VariableNames) -> Result<Self, ParseError> {
        match path.as_text() {
            Some(text) => JsonPath::parse(text)
                .map(Self::Fixed)
                .map_err(|error| mistake(path.position, "a JSONPath", format!("'{text}': {error}"))),
            None => CompiledTemplate::compile(path, names).map(Self::Dynamic),
        }
    }

    /// Value of a single node, or the list of several, as in hurl.
    pub(super) fn find(&self, json: &[u8], scope: &mut Scope<'_, '_>) -> Result<Option<Value>, String> {
        let parsed;
        let path = match self {
            Self::Fixed(path) => path,
            Self::Dynamic(template) => {
                let text = template.evaluate(scope).map_err(|error| error.to_string())?;
                parsed = JsonPath::parse(&text).map_err(|error| format!("'{text}': {error}"))?;
                &parsed
            }
        };
        if path.is_singular() {
            let found = path.find_one(json).map_err(|error| error.to_string())?;
            return Ok(found.map(Value::of_json));
        }
        let mut matches = Vec::new();
        path.find(json, &mut matches).map_err(|error| error.to_string())?;
        Ok(match matches.as_slice() {
            [] => None,
            [node] => Some(Value::of_json(node)),
            all => Some(Value::List(all.iter().map(|node| Value::of_json(node)).collect())),
        })
    }
}

fn plain_value(query: PlainQuery, view: &ResponseView<'_>) -> Option<Value> {
    Some(match query {
        PlainQuery::Body => Value::text(String::from_utf8_lossy(view.body)),
        PlainQuery::Bytes => Value::Bytes(view.body.to_vec()),
        PlainQuery::RawBytes => Value::Bytes(view.raw_body.to_vec()),
        PlainQuery::Duration => Value::Integer(i64::try_from(view.duration.0 / 1_000_000).unwrap_or(i64::MAX)),
        PlainQuery::Ip => Value::text(view.ip),
        PlainQuery::Md5 => Value::Bytes(Md5::digest(view.body).to_vec()),
        PlainQuery::Sha256 => Value::Bytes(Sha256::digest(view.body).to_vec()),
        PlainQuery::Status => Value::Integer(view.status.into()),
        PlainQuery::Url => Value::text(view.url),
        PlainQuery::Version => Value::text(view.version),
        PlainQuery::Redirects => Value::List(view.redirects.iter().map(Value::text).collect()),
    })
}

/// Value of a `Set-Cookie`, or of an attribute of it.
fn cookie_value(cookie: &str, attribute: Option<CookieAttribute>) -> Result<Option<Value>, String> {
    let mut parts = cookie.split(';');
    let Some((_, value)) = parts.next().and_then(|pair| pair.split_once('=')) else { return Ok(None) };
    let attribute = match attribute {
        None | Some(CookieAttribute::Value) => return Ok(Some(Value::text(value.trim()))),
        Some(attribute) => attribute,
    };
    let given = parts.map(|part| part.split_once('=').unwrap_or((part, "")));
    let mut given = given.map(|(name, value)| (name.trim(), value.trim()));
    let Some((_, text)) = given.find(|(name, _)| name.eq_ignore_ascii_case(attribute.as_str())) else {
        return Ok(None);
    };
    Ok(Some(match attribute {
        CookieAttribute::MaxAge => text.parse().map_or_else(|_| Value::text(text), Value::Integer),
        CookieAttribute::Secure | CookieAttribute::HttpOnly => Value::Unit,
        CookieAttribute::Expires => {
            Value::Date(dates::of_cookie(text).ok_or_else(|| format!("Expires '{text}' is not a date"))?)
        }
        _ => Value::text(text),
    }))
}

/// Text of bytes that may be no UTF-8.
pub(super) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}
