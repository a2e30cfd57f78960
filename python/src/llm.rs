//! `weir.llm`: load of a language model's server, with the GIL released and Ctrl-C handled.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use weir::events::llm::LlmApi;
use weir::llm::load::{
    EndpointOptions, LlmLoad, LlmLoadError, LlmLoadOptions, LlmOptions, PromptOptions, RANDOM_WORDS, TraceLoop,
    TraceOptions,
};
use weir::llm::trace::TraceFormat;
use weir::llm::{ReplySource, TokenCount};
use weir::load::steps::ThinkTime;
use weir::pace::live_load::LevelKind;

use crate::arguments::{NotationArg, PythonArgs};
use crate::errors;
use crate::form::{ArrivalsArg, LoadStagesArg, SloArg, http2_options, tls_options};
use crate::run::RunHandle;
use crate::signals::SignalWatch;

/// Runs the load of the form (the arguments of `weir.llm`, by name); returns it, and notes for a person. `command` is
/// recorded in the manifest.
///
/// Python's signal handlers run as in [`crate::load::load`].
#[pyfunction]
#[pyo3(name = "llm")]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over owned values")]
pub(crate) fn run_llm(
    py: Python<'_>,
    form: &Bound<'_, PyDict>,
    command: Vec<String>,
) -> PyResult<(RunHandle, Vec<String>)> {
    let options = llm_options(form)?;
    let mut signals = SignalWatch::default();
    let run = py.detach(|| {
        let mut load = LlmLoad::new(&options).map_err(|reason| errors::flags(&reason))?;
        let run = load.run(&command, &mut || signals.goes_on()).map_err(|error| match error {
            LlmLoadError::Load(error) => errors::load(&error),
            LlmLoadError::Tokens(reason) | LlmLoadError::Trace(reason) => errors::flags(&reason),
        })?;
        Ok((run, load.notes))
    });
    let (run, notes) = signals.settle(py, run)?;
    Ok((RunHandle(run), notes))
}

/// Options of the arguments of `weir.llm`, by name.
fn llm_options(form: &Bound<'_, PyDict>) -> PyResult<LlmOptions> {
    let form = PythonArgs(form.copy()?);
    let options =
        LlmOptions { endpoint: endpoint(&form)?, prompts: prompts(&form)?, load: load(&form)?, trace: trace(&form)? };
    form.is_empty()?;
    Ok(options)
}

fn endpoint(form: &PythonArgs<'_>) -> PyResult<EndpointOptions> {
    Ok(EndpointOptions {
        url: form.take("url")?,
        model: form.take("model")?,
        api: form.take::<Option<NotationArg<LlmApi>>>("api")?.map(|api| api.0),
        path: form.take("endpoint")?,
        api_key_env: form.take("api_key_env")?,
        no_stream: !form.take::<bool>("stream")?,
        extra_body: form.take("extra_body")?,
        body_template: form.take("body_template")?,
        temperature: form.take("temperature")?,
        ignore_eos: form.take("ignore_eos")?,
        headers: form.take("headers")?,
        timeout: form.time("timeout")?,
        stall_timeout: form.time("stall_timeout")?,
        no_keep_alive: !form.take::<bool>("keepalive")?,
        http2: http2_options(form)?,
        unix_socket: form.take("unix_socket")?,
        connect_to: form.take("connect_to")?,
        tls: tls_options(form, "cert_key")?,
        sni: form.take("sni")?,
    })
}

fn prompts(form: &PythonArgs<'_>) -> PyResult<PromptOptions> {
    let count = |name: &str| Ok::<_, PyErr>(form.take::<Option<NotationArg<TokenCount>>>(name)?.map(|count| count.0));
    let think: Option<String> = form.take("think")?;
    let think = think.map(|text| ThinkTime::parse(&text)).transpose();
    Ok(PromptOptions {
        dataset: Some(form.take::<PathBuf>("dataset")?).filter(|file| file.as_os_str() != RANDOM_WORDS),
        input_tokens: count("input_tokens")?,
        output_tokens: count("output_tokens")?,
        prefix_tokens: form.take("prefix_tokens")?,
        prefixes: form.take("prefixes")?,
        shuffle: form.take("shuffle")?,
        turns: form.take("turns")?,
        think: think.map_err(|why| errors::usage(&format!("think: {why}")))?,
        replies: form.take::<ReplySourceArg>("replies")?.0,
    })
}

fn trace(form: &PythonArgs<'_>) -> PyResult<Option<TraceOptions>> {
    let file: Option<PathBuf> = form.take("trace")?;
    let options = TraceOptions {
        file: file.clone().unwrap_or_default(),
        format: form.take::<Option<NotationArg<TraceFormat>>>("trace_format")?.map(|format| format.0),
        speed: form.take("speed")?,
        duration: form.time("trace_duration")?,
        sample: form.take("sample")?,
        block_tokens: form.take("trace_block")?,
        pacing: form.take::<Option<NotationArg<TraceLoop>>>("trace_loop")?.map(|pacing| pacing.0).unwrap_or_default(),
    };
    if file.is_none() && options != TraceOptions::default() {
        return Err(errors::usage(
            "trace_format, trace_duration, trace_block, trace_loop, speed and sample are for a trace",
        ));
    }
    Ok(file.map(|_| options))
}

fn load(form: &PythonArgs<'_>) -> PyResult<LlmLoadOptions> {
    let stages = match form.take::<Option<LoadStagesArg>>("stages")? {
        Some(LoadStagesArg(LevelKind::Users, _)) => {
            return Err(errors::usage("stages: of users are for weir.load; write a rate over time, e.g. '0-8/1m'"));
        }
        Some(LoadStagesArg(LevelKind::Rate, stages)) => stages,
        None => Vec::new(),
    };
    Ok(LlmLoadOptions {
        concurrency: form.take("concurrency")?,
        ramp_up: form.time("ramp_up")?,
        rate: form.take("rate")?,
        arrivals: form.take::<Option<ArrivalsArg>>("arrivals")?.map(|arrivals| arrivals.0),
        stages,
        sweep: None,
        capacity: None,
        num_prompts: form.take("num_prompts")?,
        duration: form.time("duration")?,
        warmup: form.time("warmup")?,
        threads: form.take("threads")?,
        seed: form.take("seed")?,
        goodput: form.take("goodput")?,
        slos: form.take::<Vec<SloArg>>("slo")?.into_iter().map(|slo| slo.0).collect(),
        tokenizer: form.take("tokenizer")?,
    })
}

/// Whose replies the next turn repeats: `"dataset"`, `"server"` or None.
struct ReplySourceArg(ReplySource);

impl FromPyObject<'_, '_> for ReplySourceArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        match value.extract::<Option<&str>>() {
            Ok(None | Some("dataset")) => Ok(Self(ReplySource::Dataset)),
            Ok(Some("server")) => Ok(Self(ReplySource::Server)),
            _ => Err(errors::usage("choose 'dataset' or 'server'")),
        }
    }
}
