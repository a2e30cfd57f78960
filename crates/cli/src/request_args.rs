//! Flags of the request and of the connections, shared by `load` and `capacity`.

mod script_choice;

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};

pub(super) use self::script_choice::{collection_input, named_value};
use super::auth_timeout_args::{AuthTimeoutArgs, REQUEST};
use super::connection_args::{CONNECTION, ConnectionArgs};
use super::file_as_url::reject_file;
use super::grpc_args::GrpcArgs;
use super::http2_args::Http2Args;
use super::log_args::MixFromArgs;
use super::scenario_args::ScenarioArgs;
use super::stream_args::{EVENT_SOURCE, EventStreamArgs};
use super::websocket_args::WebSocketArgs;
use weir_load::Options;
use weir_load::mix_file::{FlagCheck, MixFile};
use weir_load::options::RequestBodySource;
use weir_load::program::{is_javascript, is_python, is_script};
use weir_load::steps::{ScenarioFile, ScenarioSource};
use weir_request::secret_mask::SecretMask;
use weir_request::url_text::UrlText;
use weir_scenario_files::{ImportedScenarios, import_scenarios, read_variables};

const SCENARIO: &str = "Scenario";

/// Request, and the connections that carry it.
#[derive(Clone, Debug, Args)]
#[command(group = ArgGroup::new(EVENT_SOURCE).args(["stream", "listen"]).multiple(true))]
pub(super) struct RequestArgs {
    /// target URL, e.g. http://localhost:8080/path or grpc://localhost:50051/pkg.Service/Method; or a .hurl scenario
    #[arg(required_unless_present = "scenarios", default_value = "", hide_default_value = true)]
    url: String,

    /// play a scenario: hurl, TOML mix, k6, Locust, wrk, HAR, Postman; repeatable
    #[arg(short, long = "scenario", value_name = "FILE", help_heading = SCENARIO)]
    scenarios: Vec<PathBuf>,
    /// check each response with a hurl assert; repeatable
    #[arg(long = "check", value_name = "ASSERT", help_heading = REQUEST)]
    checks: Vec<String>,
    /// count a response as a success if this holds [default: 'status < 400', or what a step expects]
    #[arg(long, value_name = "ASSERT", help_heading = REQUEST)]
    success: Option<String>,
    /// take {{ in URL, headers and bodies literally
    #[arg(long = "no-template", help_heading = REQUEST)]
    no_template: bool,
    /// set a variable of scenarios and templates; repeatable
    #[arg(long = "variable", value_name = "NAME=VALUE", help_heading = SCENARIO)]
    variables: Vec<String>,
    /// read variables from FILE, one NAME=VALUE per line; repeatable
    #[arg(long = "variables-file", value_name = "FILE", help_heading = SCENARIO)]
    variable_files: Vec<PathBuf>,
    /// wait between steps, not iterations (--pacing): 1s..3s, exponential 2s, lognormal 2s 8s
    #[arg(long, value_name = "TIME", help_heading = SCENARIO)]
    think: Option<String>,
    #[command(flatten)]
    pub(super) scenario_args: ScenarioArgs,
    #[command(flatten)]
    pub(super) mix_from_args: MixFromArgs,
    #[arg(skip)]
    sources: Vec<ScenarioSource>,
    #[arg(skip)]
    request_scenario: ScenarioSource,

    /// use this method [default: GET, or POST with a body]
    #[arg(short, long, value_name = "METHOD", help_heading = REQUEST)]
    method: Option<String>,
    /// add a request header; 'NAME:' removes a default one; repeatable
    #[arg(short = 'H', long = "header", value_name = "'NAME: VALUE'", help_heading = REQUEST)]
    headers: Vec<String>,
    /// send this body, @FILE or @- (stdin); repeatable, picked at random
    #[arg(short, long = "body", value_name = "TEXT|@FILE", allow_hyphen_values = true, help_heading = REQUEST)]
    bodies: Vec<RequestBodySource>,
    /// weight the bodies, in order [default: equal]
    #[arg(long, value_name = "W,W,...", value_delimiter = ',', help_heading = REQUEST)]
    weights: Vec<f64>,
    #[command(flatten)]
    auth_timeout_args: AuthTimeoutArgs,

    /// open a new connection for each request
    #[arg(long = "no-keepalive", help_heading = CONNECTION)]
    no_keep_alive: bool,
    /// keep N requests in flight per connection [default: 1]
    #[arg(long, value_name = "N", help_heading = CONNECTION)]
    pipeline: Option<u64>,
    #[command(flatten)]
    http2_args: Http2Args,
    #[command(flatten)]
    stream_args: EventStreamArgs,
    #[command(flatten)]
    websocket_args: WebSocketArgs,
    #[command(flatten)]
    grpc_args: GrpcArgs,
    #[command(flatten)]
    connection_args: ConnectionArgs,
    /// send this TLS server name [default: the URL's host]
    #[arg(long, value_name = "NAME", help_heading = CONNECTION)]
    sni: Option<String>,
}

/// Command line for the manifest, without secrets in any notation (`-a X`, `-qaX`, `--auth=X`, `X@host`).
pub(super) fn redacted(args: &[OsString], mask: &SecretMask) -> Vec<String> {
    mask.command(args.iter().map(|arg| arg.to_string_lossy()))
}

/// A body whose bytes are read now, if it is stdin.
///
/// # Errors
/// One line, if stdin cannot be read.
pub(super) fn whole_body(body: &RequestBodySource) -> Result<RequestBodySource, String> {
    match body {
        RequestBodySource::File(path) if path.as_os_str() == "-" => {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).map_err(|e| format!("-b @-: cannot read stdin: {e}"))?;
            Ok(RequestBodySource::Bytes(bytes))
        }
        body => Ok(body.clone()),
    }
}

impl RequestArgs {
    /// Reads the body `@-` from stdin. Must run once, before the load, also with agents.
    ///
    /// # Errors
    /// One line, if stdin cannot be read or is given to two bodies.
    pub(super) fn read_stdin(&mut self) -> Result<(), String> {
        let is_stdin =
            |body: &&mut RequestBodySource| matches!(body, RequestBodySource::File(path) if path.as_os_str() == "-");
        let mut wanted = self.bodies.iter_mut().filter(is_stdin);
        let Some(body) = wanted.next() else { return Ok(()) };
        if wanted.next().is_some() {
            return Err("-b @-: stdin can be read once; give it to one body".into());
        }
        *body = whole_body(body)?;
        Ok(())
    }

    /// Reads the files of scenarios, relative to `folder`; returns the mix file, if one is given. Must run once, before
    /// the load.
    ///
    /// # Errors
    /// One line, if a file cannot be read or a variable has no value.
    pub(super) fn read_scenarios(&mut self, folder: &Path, check: &FlagCheck<'_>) -> Result<Option<MixFile>, String> {
        if self.is_scenario_url() {
            self.scenarios.push(std::mem::take(&mut self.url).into());
        }
        if self.scenarios.is_empty() && self.think.is_some() && !self.mix_from_args.is_given() {
            return Err("--think needs a scenario; name one with -s FILE".to_owned());
        }
        let mut variables = Vec::new();
        for path in &self.variable_files {
            variables.extend(read_variables(&folder.join(path))?);
        }
        variables
            .extend(self.variables.iter().map(|pair| named_value("variable", pair)).collect::<Result<Vec<_>, _>>()?);
        let settings = ScenarioSource { variables, think: self.think.clone(), ..ScenarioSource::default() };
        let settings = self.scenario_args.apply(settings)?;
        if self.mix_from_args.is_given() {
            self.sources = self.mix_from_args.log_load().scenarios(&settings)?;
            return Ok(None);
        }
        if self.scenarios.is_empty() {
            self.request_scenario = settings;
            return Ok(None);
        }
        if let Some(path) = self.scenarios.iter().find(|path| MixFile::is_named(path)) {
            if self.scenarios.len() > 1 {
                return Err(format!("a mix file must be the only scenario; add the others to {}", path.display()));
            }
            let mix = MixFile::read(&folder.join(path), check)?;
            self.add_mix(&mix, &settings);
            return Ok(Some(mix));
        }
        self.reject_scripts()?;
        let mut warnings = Vec::new();
        for path in self.scenarios.clone() {
            let path = folder.join(path);
            if let Some(imported) = import_scenarios(&path, self.scenario_args.file_root.as_deref())? {
                let ImportedScenarios { sources, flags, users, warnings: lost } = imported;
                if self.scenarios.len() == 1 {
                    let mix = MixFile { scenarios: sources, flags, users, warnings: lost, ..MixFile::default() };
                    self.add_mix(&mix, &settings);
                    return Ok(Some(mix));
                }
                // Beside other scenarios, the load is that of the command line.
                let sources = sources.into_iter().map(|source| ScenarioSource { users: None, weight: 1.0, ..source });
                self.add_mix(&MixFile { scenarios: sources.collect(), ..MixFile::default() }, &settings);
                warnings.extend(lost);
                continue;
            }
            let ScenarioFile { name, text, folder } = ScenarioFile::read(&path)?;
            self.sources.push(ScenarioSource { name, text, folder, weight: 1.0, ..settings.clone() });
        }
        Ok((!warnings.is_empty()).then(|| MixFile { warnings, ..MixFile::default() }))
    }

    /// Rejects scripts, which only `weir load` runs.
    fn reject_scripts(&self) -> Result<(), String> {
        for path in &self.scenarios {
            let (name, instead) = match path {
                path if is_python(path) => ("Python", "a scenario"),
                path if is_javascript(path) => ("k6", "a scenario"),
                path if is_script(path) => ("Lua", "a .hurl file"),
                _ => continue,
            };
            return Err(format!("{}: {name} scripts are for weir load; write {instead} here", path.display()));
        }
        Ok(())
    }

    /// Rejects a file in the place of the URL; a scenario may stand there.
    ///
    /// # Errors
    /// One line with the command that takes the file.
    pub(super) fn reject_file(&self, command: &str) -> Result<(), String> {
        if self.is_scenario_url() { Ok(()) } else { reject_file(&self.url, command) }
    }

    /// URL; empty if none is given.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Takes the URL away.
    pub(super) fn take_url(&mut self) -> String {
        std::mem::take(&mut self.url)
    }

    /// Sets the URL.
    pub(super) fn set_url(&mut self, url: String) {
        self.url = url;
    }

    /// Takes the scenarios of a mix file; options of the command line take precedence.
    fn add_mix(&mut self, mix: &MixFile, settings: &ScenarioSource) {
        self.sources.extend(mix.scenarios.iter().map(|source| {
            let mut source = source.clone();
            source.variables.extend(settings.variables.iter().cloned());
            source.think = settings.think.clone().or(source.think);
            source.data = settings.data.clone().or(source.data);
            source.pacing = settings.pacing.or(source.pacing);
            source.setup = settings.setup.clone().or(source.setup);
            source.teardown = settings.teardown.clone().or(source.teardown);
            source.max_redirects = settings.max_redirects.or(source.max_redirects);
            source.continue_on_error |= settings.continue_on_error;
            source.keep_cookies |= settings.keep_cookies;
            source.file_root = settings.file_root.clone().or(source.file_root);
            source
        }));
        if let (true, Some(base)) = (self.url.is_empty(), &mix.base_url) {
            self.url.clone_from(base);
        }
    }

    /// Takes flags that the command line does not give.
    pub(super) fn add_defaults(&mut self, other: Self) {
        let timeout = &mut self.auth_timeout_args.timeout;
        *timeout = timeout.or(other.auth_timeout_args.timeout);
        self.success = self.success.take().or(other.success);
        self.no_keep_alive |= other.no_keep_alive;
        self.connection_args.insecure |= other.connection_args.insecure;
        let name = |line: &String| line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
        let given: Vec<String> = self.headers.iter().map(name).collect();
        self.headers.extend(other.headers.into_iter().filter(|line| !given.contains(&name(line))));
        for source in &mut self.sources {
            source.think = source.think.take().or_else(|| other.think.clone());
        }
    }

    /// Whether the URL is a file of a scenario.
    pub(super) fn is_scenario_url(&self) -> bool {
        (self.url.ends_with(".hurl") || self.url.ends_with(".toml")) && !UrlText::of(&self.url).is_url()
    }

    /// Secrets of the request and of the variables, which no result shows.
    pub(super) fn secret_mask(&self) -> SecretMask {
        let mut mask = self.clone().into_options().secret_mask();
        let pairs = self.variables.iter().filter_map(|text| text.split_once('='));
        pairs.for_each(|(name, value)| mask.add_named(name, value));
        mask
    }

    /// Options of a load, without rate, users and length.
    pub(super) fn into_options(self) -> Options {
        Options {
            url: self.url,
            scenarios: self.sources,
            request_scenario: self.request_scenario,
            checks: self.checks,
            success: self.success,
            no_template: self.no_template,
            redact: self.scenario_args.redact,
            method: self.method,
            headers: self.headers,
            bodies: self.bodies,
            weights: self.weights,
            auth: self.auth_timeout_args.auth,
            timeout: self.auth_timeout_args.timeout,
            no_keepalive: self.no_keep_alive,
            pipeline: self.pipeline,
            http2: self.http2_args.into_options(),
            streams: self.stream_args.into_options(self.websocket_args.listen),
            websocket: self.websocket_args.into_options(),
            grpc: self.grpc_args.into_options(),
            sni: self.sni,
            ..self.connection_args.into_options()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_holds_no_password() {
        let typed = [
            "weir",
            "load",
            "http://me:pw@h/a@b?x=1&token=secret-9",
            "-a",
            "me:secret-1",
            "-ame:secret-1",
            "--auth=me:secret-1",
            "-H",
            "Authorization: Bearer secret-2",
            "-HX-Api-Key: secret-4",
            "--header=cookie: a=secret-3",
            "--variable=tok=secret-5",
            "--body={\"password\": \"secret-6\"}",
            "-bpassword=secret-7",
            "--out-influx",
            "http://h/write?db=a&p=1&token=secret-8",
            "-H",
            "Accept: */*",
        ];
        let options = Options {
            auth: Some("me:secret-1".to_owned()),
            headers: vec!["Authorization: Bearer secret-2".to_owned(), "cookie: a=secret-3".to_owned()],
            ..Options::default()
        };
        let kept = redacted(&typed.map(OsString::from), &options.secret_mask());
        assert!(!kept.join(" ").contains("secret-"), "{kept:?}");
        assert_eq!(kept[2], "http://***@h/a@b?x=1&token=***");
        assert_eq!(kept.last().map(String::as_str), Some("Accept: */*"));
    }
}
