//! Python arguments -> [`Options`].
//!
//! `weir/_load.py` has the signature and passes its arguments as a dictionary, by name. Each is removed from it when
//! read; one that is left over is a bug and fails every call.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use weir::agents;
use weir::base::Nanos;
use weir::load::Options;
use weir::load::grpc::GrpcOptions;
use weir::load::http2::{Http2Options, Http2Preference};
use weir::load::program::{CollectionInput, ProgramOptions, ScriptOptions, is_javascript};
use weir::measure::slo::Slo;
use weir::net::tls::{TlsOffer, TlsOptions};
use weir::pace::live_load::LevelKind;
use weir::pace::notation;
use weir::pace::schedule::{Arrivals, LoadStage};
use weir::replay::LogLoad;

use crate::arguments::{PythonArgs, TimeArg};
use crate::body_arg::BodyArg;
use crate::errors;
use crate::scenario_args::ScenarioArg;
use crate::stream_args::stream_options;
use crate::websocket_args::websocket_options;

/// Options of a load, its objectives and agents.
pub(crate) struct LoadRequest {
    pub(crate) options: Options,
    pub(crate) slos: Vec<Slo>,
    pub(crate) agents: Option<agents::AgentSpec>,
}

impl LoadRequest {
    /// Reads all arguments.
    pub(crate) fn read(form: &Bound<'_, PyDict>) -> PyResult<Self> {
        let form = PythonArgs(form.copy()?);
        let slos: Vec<SloArg> = form.take("slo")?;
        let on: Option<String> = form.take("on")?;
        let on = on.map(|text| text.parse()).transpose().map_err(|why: String| errors::usage(&why))?;
        let (count, per_node): (Option<u64>, u64) = (form.take("agents")?, form.take("per_node")?);
        let launcher = form.take("launcher")?;
        if on.is_none() && (count.is_some() || per_node != 1) {
            return Err(errors::usage("agents and per_node need on, e.g. on='local'"));
        }
        let agents = on.map(|on| agents::AgentSpec { backend: on, agents: count, per_node, launcher });
        let (stages, user_stages) = match form.take::<Option<LoadStagesArg>>("stages")? {
            Some(LoadStagesArg(LevelKind::Users, stages)) => (Vec::new(), stages),
            Some(LoadStagesArg(LevelKind::Rate, stages)) => (stages, Vec::new()),
            None => (Vec::new(), Vec::new()),
        };
        let logs = LogLoad {
            rate_from: form.take("rate_from")?,
            scale: form.take("scale")?,
            speed: form.take("speed")?,
            mix_from: form.take("mix_from")?,
            log_pattern: form.take("log_pattern")?,
        };
        let websocket = websocket_options(&form)?;
        let mut options = Options {
            address_rules: None,
            url: form.take("url")?,
            scenarios: form.take::<Vec<ScenarioArg>>("scenario")?.into_iter().map(|scenario| scenario.0).collect(),
            request_scenario: form
                .take::<Option<ScenarioArg>>("request_scenario")?
                .map(|scenario| scenario.0)
                .unwrap_or_default(),
            checks: form.take("check")?,
            success: form.take("success")?,
            no_template: !form.take::<bool>("template")?,
            redact: form.take("redact")?,
            connections: form.take("connections")?,
            threads: form.take("threads")?,
            requests: form.take("requests")?,
            duration: form.time("duration")?,
            users: form.take("users")?,
            ramp_up: form.time("ramp_up")?,
            loops: form.take("loops")?,
            rate: form.take("rate")?,
            arrivals: form.take::<ArrivalsArg>("arrivals")?.0,
            stages,
            user_stages,
            method: form.take("method")?,
            headers: form.take("headers")?,
            bodies: form.take::<Vec<BodyArg>>("body")?.into_iter().map(|c| c.0).collect(),
            weights: form.take::<Option<_>>("weights")?.unwrap_or_default(),
            auth: form.take("auth")?,
            timeout: form.time("timeout")?,
            no_keepalive: !form.take::<bool>("keepalive")?,
            pipeline: form.take("pipeline")?,
            http2: http2_options(&form)?,
            streams: stream_options(&form, websocket.listens)?,
            websocket,
            grpc: grpc_options(&form)?,
            traces_requests: false,
            unix_socket: form.take("unix_socket")?,
            connect_to: form.take("connect_to")?,
            tls: tls_options(&form, "cert_key")?,
            sni: form.take("sni")?,
            warmup: form.time("warmup")?,
            seed: form.take("seed")?,
            spin: form.take("spin")?,
            script_name: None,
            program: form.take::<Option<ScriptArg>>("script")?.map(|script| ProgramOptions::of_script(script.0)),
        };
        form.is_empty()?;
        // A log may be long.
        let py = form.0.py();
        py.detach(|| logs.apply(&mut options)).map_err(|why| errors::flags(&why))?;
        Ok(Self { options, slos: slos.into_iter().map(|o| o.0).collect(), agents })
    }
}

/// HTTP/2 of a load's connections.
pub(crate) fn http2_options(form: &PythonArgs<'_>) -> PyResult<Http2Options> {
    Ok(Http2Options {
        over_tls: form.take::<Http2Arg>("http2")?.0,
        cleartext: form.take("h2c")?,
        streams: form.take("streams")?,
        window_bytes: form.take("h2_window")?,
    })
}

fn grpc_options(form: &PythonArgs<'_>) -> PyResult<GrpcOptions> {
    let mut options = GrpcOptions::of_files(form.take("proto")?, form.take("proto_path")?, form.take("protoset")?);
    options.message_interval = form.time("message_interval")?.map(Into::into);
    Ok(options)
}

/// Certificates of connections; `key`: name of the argument that has the private key.
pub(crate) fn tls_options(form: &PythonArgs<'_>, key: &str) -> PyResult<TlsOptions> {
    Ok(TlsOptions {
        offer: TlsOffer::default(),
        cacert: form.take("cacert")?,
        cert: form.take("cert")?,
        key: form.take(key)?,
        insecure: form.take("insecure")?,
    })
}

/// HTTP/2 over TLS: `False`, `True` or `"only"`.
struct Http2Arg(Option<Http2Preference>);

impl FromPyObject<'_, '_> for Http2Arg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(is_wanted) = value.extract::<bool>() {
            return Ok(Self(is_wanted.then_some(Http2Preference::Preferred)));
        }
        match value.extract::<&str>() {
            Ok(Http2Preference::ONLY) => Ok(Self(Some(Http2Preference::Required))),
            _ => Err(errors::usage("invalid http2; write True, False or 'only'")),
        }
    }
}

/// Script of classes of users, or of a file, as `weir/_processes.py` passes it: a dictionary.
struct ScriptArg(ScriptOptions);

impl FromPyObject<'_, '_> for ScriptArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let form = PythonArgs(value.cast::<PyDict>()?.copy()?);
        let options = ScriptOptions {
            path: form.take("path")?,
            scenarios: form.take("scenarios")?,
            url: form.take("url")?,
            classes: form.take("classes")?,
            folders: form.take("folders")?,
            environment: form.take("env")?,
            collection: CollectionInput { variables: form.take("variables")?, data: form.take("data")? },
            ..ScriptOptions::default()
        };
        form.is_empty()?;
        if options.classes.is_empty() && !is_javascript(&options.path) {
            let path = options.path.display();
            return Err(errors::usage(&format!("script: '{path}' is not a collection of Postman with scripts")));
        }
        Ok(Self(options))
    }
}

/// Arrival process: `constant`, `poisson` or `gamma:BURSTINESS`.
pub(crate) struct ArrivalsArg(pub(crate) Arrivals);

impl FromPyObject<'_, '_> for ArrivalsArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        notation::arrivals(&value.extract::<String>()?).map(Self).map_err(|why| errors::usage(&why))
    }
}

/// Stages: text such as `0-200/30s,200/1m` or `0-50u/30s`, or a list of (from per second, to per second, time).
pub(crate) struct LoadStagesArg(pub(crate) LevelKind, pub(crate) Vec<LoadStage>);

impl FromPyObject<'_, '_> for LoadStagesArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = value.cast::<PyString>() {
            return notation::stages_of_load(&text.to_cow()?)
                .map(|(kind, stages)| Self(kind, stages))
                .map_err(|why| errors::usage(&why));
        }
        let stages: Vec<(f64, f64, TimeArg)> = value.extract()?;
        let stage = |(from_per_s, to_per_s, TimeArg(length)): (f64, f64, TimeArg)| {
            let rates_ok = [from_per_s, to_per_s].iter().all(|r| r.is_finite() && *r >= 0.0);
            if !rates_ok || length.is_zero() {
                let why = format!("invalid stage ({from_per_s}, {to_per_s}, {length:?}); write two rates and a time");
                return Err(errors::usage(&why));
            }
            Ok(LoadStage { from_per_s, to_per_s, length: Nanos::from(length) })
        };
        stages.into_iter().map(stage).collect::<PyResult<_>>().map(|stages| Self(LevelKind::Rate, stages))
    }
}

/// Objective such as `p99<200ms`.
pub(crate) struct SloArg(pub(crate) Slo);

impl FromPyObject<'_, '_> for SloArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let text: String = value.extract()?;
        text.parse().map(Self).map_err(|why| errors::usage(&format!("'{text}': {why}")))
    }
}
