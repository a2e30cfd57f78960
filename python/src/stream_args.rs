//! Python arguments of streams -> [`StreamOptions`].

use pyo3::prelude::*;
use std::time::Duration;
use weir::events::StreamFormat;
use weir::load::event_streams::StreamOptions;

use crate::arguments::PythonArgs;
use crate::errors;

/// Responses as streams of events, or what connections listen to; `None` if they are not read as such.
pub(crate) fn stream_options(form: &PythonArgs<'_>, listens: bool) -> PyResult<Option<StreamOptions>> {
    let choice: StreamArg = form.take("stream")?;
    let stall_timeout: Option<Duration> = form.time("stall_timeout")?;
    let max_events: Option<u64> = form.take("max_events")?;
    // Connections that listen need no format.
    let Some(format) = choice.0.or(listens.then_some(None)) else {
        let needless = stall_timeout.map(|_| "stall_timeout").or(max_events.map(|_| "max_events"));
        return needless.map_or(Ok(None), |name| Err(errors::usage(&format!("{name} needs stream, e.g. stream=True"))));
    };
    if max_events == Some(0) {
        return Err(errors::usage("max_events: 0 is out of range; give 1 or more"));
    }
    Ok(Some(StreamOptions {
        format,
        stall_timeout: stall_timeout.map(Into::into),
        max_events,
        ..StreamOptions::default()
    }))
}

/// Format of streams: `False`, `True` for that of `Content-Type`, or a name.
struct StreamArg(Option<Option<StreamFormat>>);

impl FromPyObject<'_, '_> for StreamArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(is_wanted) = value.extract::<bool>() {
            return Ok(Self(is_wanted.then_some(None)));
        }
        let format = match value.extract::<&str>() {
            Ok(name) => StreamFormat::parse(name).map_err(|why| errors::usage(&why))?,
            Err(_) => return Err(errors::usage("invalid stream; write True, False or a format, e.g. 'sse'")),
        };
        Ok(Self(Some(Some(format))))
    }
}
