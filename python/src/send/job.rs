//! Jobs of the core from Python's arguments.
//!
//! A `weir.Job`, a mapping with the names of its fields, or a URL. `weir/_job.py` documents the fields.

use std::borrow::Cow;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyMapping, PyString};
use weir::send::{ApiKey, Job, JobDefaults, JobOverrides, UnixMs};

use crate::arguments::TimeArg;
use crate::client::request::shown_header_name;
use crate::errors;

/// Defaults and keys that all jobs of a sender share.
pub(crate) struct SenderJobContext {
    pub(crate) job_defaults: JobDefaults,
    pub(crate) keys: Vec<ApiKey>,
}

/// Names of a job's fields, as in `weir/_job.py`.
const JOB_FIELDS: [&str; 11] =
    ["url", "json", "content", "data", "headers", "method", "id", "ttl", "weight", "priority", "pinned_key"];

/// Fields that define a body; at most one is given.
#[derive(Default)]
struct JobBodyArgs<'py> {
    json: Option<Bound<'py, PyAny>>,
    content: Option<Bound<'py, PyAny>>,
    data: Option<Bound<'py, PyAny>>,
}

impl SenderJobContext {
    /// Reads jobs. With `first`, the index of the first job, errors name the index of the invalid one.
    pub(crate) fn jobs(&self, items: &Bound<'_, PyList>, first: Option<usize>, now: UnixMs) -> PyResult<Vec<Job>> {
        let with_place = |(place, item): (usize, Bound<'_, PyAny>)| {
            self.job(&item, now).map_err(|error| {
                let py = item.py();
                let Some(first) = first else { return error };
                let why = format!("job {}: {}", first + place, error.value(py));
                match () {
                    () if error.is_instance_of::<PyTypeError>(py) => PyTypeError::new_err(why),
                    () if error.is_instance_of::<PyValueError>(py) => errors::usage(&why),
                    () => error,
                }
            })
        };
        items.iter().enumerate().map(with_place).collect()
    }

    fn job(&self, item: &Bound<'_, PyAny>, now: UnixMs) -> PyResult<Job> {
        let py = item.py();
        let (mut overrides, mut body) = (JobOverrides::default(), JobBodyArgs::default());
        if let Ok(dict) = item.cast::<PyDict>() {
            for (name, value) in dict {
                self.field(&mut overrides, &mut body, name.cast::<PyString>()?, value)?;
            }
        } else if let Ok(url) = item.cast::<PyString>() {
            overrides.url = Some(url.to_cow()?.into_owned());
        } else if item.is_instance(job_class(py)?)? {
            for name in field_names(py) {
                let name = name.bind(py);
                self.field(&mut overrides, &mut body, name, item.getattr(name)?)?;
            }
        } else if let Ok(mapping) = item.cast::<PyMapping>() {
            for pair in mapping.items()? {
                let (name, value): (Bound<'_, PyString>, Bound<'_, PyAny>) = pair.extract()?;
                self.field(&mut overrides, &mut body, &name, value)?;
            }
        } else {
            let kind = item.get_type();
            return Err(PyTypeError::new_err(format!("a job is a weir.Job, a mapping or a URL, not {kind}")));
        }
        body.apply(py, &mut overrides)?;
        self.job_defaults.build(overrides, now).map_err(|why| errors::job(&why))
    }

    fn field<'py>(
        &self,
        overrides: &mut JobOverrides,
        body: &mut JobBodyArgs<'py>,
        name: &Bound<'py, PyString>,
        value: Bound<'py, PyAny>,
    ) -> PyResult<()> {
        if value.is_none() {
            return Ok(());
        }
        let name = name.to_cow()?;
        match &*name {
            "url" => overrides.url = Some(extract_field(&name, &value)?),
            "json" => body.json = Some(value),
            "content" => body.content = Some(value),
            "data" => body.data = Some(value),
            "headers" => overrides.headers = headers(&value)?,
            "method" => overrides.method = Some(method(&extract_field::<String>(&name, &value)?)?),
            "id" => overrides.id = Some(extract_field::<JobIdArg>(&name, &value)?.0),
            "ttl" => overrides.ttl_ms = Some(extract_field::<TtlMsArg>(&name, &value)?.0),
            "weight" => overrides.weight = Some(extract_field(&name, &value)?),
            "priority" => overrides.priority = Some(extract_field(&name, &value)?),
            "pinned_key" => overrides.key_hint = Some(self.key(&extract_field::<String>(&name, &value)?)?),
            other => {
                let all = JOB_FIELDS.join(", ");
                return Err(PyTypeError::new_err(format!("unknown field '{other}' of a job; choose {all}")));
            }
        }
        Ok(())
    }

    /// Name of a key that is given by its name or its secret.
    fn key(&self, given: &str) -> PyResult<String> {
        let found = self.keys.iter().find(|key| key.secret() == given || key.matches(given));
        found.map(|key| key.name().to_owned()).ok_or_else(|| {
            // The value is not printed: it may be a secret.
            errors::usage("unknown pinned_key; give one of the sender's keys, or its name")
        })
    }
}

impl JobBodyArgs<'_> {
    fn apply(self, py: Python<'_>, overrides: &mut JobOverrides) -> PyResult<()> {
        static BODY_OF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        if self.json.is_none() && self.data.is_none() {
            // The fast path: no body, or bytes.
            match &self.content {
                None => return Ok(()),
                Some(content) => {
                    if let Ok(bytes) = content.cast::<PyBytes>() {
                        overrides.body = Some(bytes.as_bytes().to_vec());
                        return Ok(());
                    }
                }
            }
        }
        let body_of = BODY_OF.import(py, "weir._request", "body_of")?;
        let (bytes, lines): (Option<Bound<'_, PyBytes>>, Bound<'_, PyDict>) =
            body_of.call1((self.json, self.content, self.data))?.extract()?;
        overrides.body = bytes.map(|bytes| bytes.as_bytes().to_vec());
        let kind: Option<String> =
            lines.get_item(intern!(py, "content-type"))?.map(|kind| kind.extract()).transpose()?;
        overrides.content_type = kind.map(Cow::Owned);
        Ok(())
    }
}

fn job_class(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CLASS.import(py, "weir._job", "Job")
}

/// Interned names of the fields.
fn field_names(py: Python<'_>) -> &[Py<PyString>] {
    static NAMES: PyOnceLock<Vec<Py<PyString>>> = PyOnceLock::new();
    NAMES.get_or_init(py, || JOB_FIELDS.map(|name| PyString::intern(py, name).unbind()).into())
}

fn extract_field<'py, T>(name: &str, value: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    value.extract().map_err(|error: <T as FromPyObject<'_, 'py>>::Error| {
        let error: PyErr = error.into();
        errors::argument(value.py(), name, value, &error)
    })
}

/// Validated headers from a mapping or pairs.
pub(crate) fn headers(value: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let items = match value.cast::<PyMapping>() {
        Ok(mapping) => mapping.items()?.into_any(),
        Err(_) => value.clone(),
    };
    let mut headers = Vec::new();
    for item in items.try_iter()? {
        let (name, text): (String, String) = extract_field("headers", &item?)?;
        if http::HeaderName::from_bytes(name.as_bytes()).is_err() {
            let why = format!("invalid header name {:?}; use letters, digits and '-'", shown_header_name(&name));
            return Err(errors::usage(&why));
        }
        if http::HeaderValue::from_str(&text).is_err() {
            let why = format!("invalid value of header {name:?}: has a control character; leave it out");
            return Err(errors::usage(&why));
        }
        headers.push((name, text));
    }
    Ok(headers)
}

/// Validated method, in upper case.
pub(crate) fn method(text: &str) -> PyResult<String> {
    if http::Method::from_bytes(text.as_bytes()).is_err() {
        return Err(errors::usage(&format!("invalid method {text:?}; write e.g. GET")));
    }
    Ok(text.to_ascii_uppercase())
}

/// Job ID: text or a whole number.
struct JobIdArg(String);

impl FromPyObject<'_, '_> for JobIdArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = value.cast::<PyString>() {
            return Ok(Self(text.to_cow()?.into_owned()));
        }
        value
            .extract::<i64>()
            .map(|number| Self(number.to_string()))
            .map_err(|_| PyTypeError::new_err(format!("an id is text or a whole number, not {}", value.get_type())))
    }
}

/// Time to live, in milliseconds.
pub(crate) struct TtlMsArg(pub(crate) u64);

impl FromPyObject<'_, '_> for TtlMsArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let TimeArg(length) = value.extract()?;
        Ok(Self(u64::try_from(length.as_millis()).unwrap_or(u64::MAX)))
    }
}
