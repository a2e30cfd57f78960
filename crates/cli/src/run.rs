//! `weir run`: one iteration of a scenario or script, with each request and response, for a person or a program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use weir_load::Options;
use weir_load::grpc::is_grpc_url;
use weir_load::options::RequestBodySource;
use weir_load::steps::{DataSource, RowOrder, ScenarioSource, Value};
use weir_machine::input_file;
use weir_request::secret_mask::SecretMask;
use weir_request::url_text::UrlText;

use super::auth_timeout_args::{AuthTimeoutArgs, REQUEST};
use super::connection_args::ConnectionArgs;
use super::grpc_args::GrpcArgs;
use super::k6_flags::K6Flags;
use super::request_args::{collection_input, named_value, whole_body};
use weir_command::Messages;
use weir_command::stdout::reserve_stdout;
use weir_load::program::{ScriptOptions, is_collection, is_javascript, is_python, is_script};
use weir_load::websocket::{WebSocketOptions, is_websocket_url};
use weir_scenario_files::{import_scenarios, read_variables};
use weir_scripts::{PythonHost, play_script, replace_process};
use weir_session::play::{PlayDetail, PlayOutput, play, play_conversation};

const EXAMPLES: &str = "Examples:\n  weir run shop.hurl --variable host=http://localhost:8080\n  \
    weir run shop.py http://localhost:8080 --user Shopper -v";

const SCENARIO: &str = "Scenario";
const OUTPUT: &str = "Output";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RunArgs {
    /// scenario (hurl), script (Python, JavaScript, Lua), or grpc or ws URL
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// URL in front of paths in the file, such as GET /items
    #[arg(value_name = "BASE_URL", default_value = "", hide_default_value = true)]
    base_url: String,

    /// set a variable of the scenario; repeatable
    #[arg(long = "variable", value_name = "NAME=VALUE", help_heading = SCENARIO)]
    variables: Vec<String>,
    /// read variables from FILE, one NAME=VALUE per line; repeatable
    #[arg(long = "variables-file", value_name = "FILE", help_heading = SCENARIO)]
    variable_files: Vec<PathBuf>,
    /// set a variable whose value is never printed; repeatable
    #[arg(long = "secret", value_name = "NAME=VALUE", help_heading = SCENARIO)]
    secrets: Vec<String>,
    /// use the first row of FILE (CSV, JSON, JSONL) as variables
    #[arg(long, value_name = "FILE", help_heading = SCENARIO)]
    data: Option<PathBuf>,
    /// look for files of the scenario in this folder [default: its own]
    #[arg(long, value_name = "FOLDER", help_heading = SCENARIO)]
    file_root: Option<PathBuf>,
    /// seed random values
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SCENARIO)]
    seed: u64,

    /// play this user class of a script [default: that of the first user]
    #[arg(long, value_name = "CLASS", help_heading = SCENARIO)]
    user: Option<String>,
    /// arguments of a script, after --
    #[arg(value_name = "ARGS")]
    script_args: Vec<String>,

    /// print whole bodies, not only their first 2 KiB
    #[arg(short, long, help_heading = OUTPUT)]
    verbose: bool,
    /// mask this header, variable, parameter or field as a secret; repeatable
    #[arg(long, value_name = "NAME", help_heading = SCENARIO)]
    redact: Vec<String>,
    /// print credentials, cookies and secrets instead of ***
    #[arg(long, help_heading = OUTPUT)]
    show_secrets: bool,
    /// print in this format
    #[arg(short, long, value_enum, default_value_t = RunFormat::Text, help_heading = OUTPUT)]
    format: RunFormat,
    /// print JSON; short for --format json
    #[arg(long, help_heading = OUTPUT)]
    json: bool,

    /// add a header to all requests; repeatable
    #[arg(short = 'H', long = "header", value_name = "'NAME: VALUE'", help_heading = REQUEST)]
    headers: Vec<String>,
    #[command(flatten)]
    auth_timeout_args: AuthTimeoutArgs,

    /// send this message (grpc or ws URL), @FILE or @-; repeatable
    #[arg(short, long = "body", value_name = "TEXT|@FILE", allow_hyphen_values = true, help_heading = REQUEST)]
    bodies: Vec<RequestBodySource>,
    /// offer a subprotocol to a ws URL; repeatable
    #[arg(long = "subprotocol", value_name = "NAME", help_heading = REQUEST)]
    subprotocols: Vec<String>,
    #[command(flatten)]
    grpc_args: GrpcArgs,
    #[command(flatten)]
    k6_flags: K6Flags,
    #[command(flatten)]
    connection_args: ConnectionArgs,
}

/// Format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RunFormat {
    Text,
    Json,
}

pub(super) fn run(
    asked: RunArgs,
    args: &[OsString],
    messages: &Messages,
    host: Option<&dyn PythonHost>,
) -> Result<u8, String> {
    if asked.is_call() {
        let output = asked.output();
        return play(&asked.into_call()?, &output, messages);
    }
    if asked.is_conversation() {
        let output = asked.output();
        return play_conversation(&asked.into_conversation()?, &output, messages);
    }
    if !asked.subprotocols.is_empty() {
        return Err("--subprotocol is for a ws:// URL".to_owned());
    }
    let is_url = asked.file.to_str().is_some_and(|text| UrlText::of(text).is_url());
    if !asked.bodies.is_empty() && !is_url {
        return Err("--body is for a grpc or ws URL; the steps of a file have their own".to_owned());
    }
    if is_script(&asked.file) || is_python(&asked.file) || is_javascript(&asked.file) {
        return asked.play_script(args, messages, host);
    }
    if let Some(argument) = asked.script_args.first() {
        let argument = argument.escape_debug();
        return Err(format!("unexpected argument '{argument}'; arguments after the URL are for a script"));
    }
    if asked.user.is_some() {
        return Err("--user is for Python scripts; a scenario has one kind of user".to_owned());
    }
    let output = asked.output();
    play(&asked.into_options()?, &output, messages)
}

impl RunArgs {
    /// Whether the file is a URL of gRPC.
    fn is_call(&self) -> bool {
        self.file.to_str().is_some_and(is_grpc_url)
    }

    /// Whether the file is a URL of WebSocket.
    fn is_conversation(&self) -> bool {
        self.file.to_str().is_some_and(is_websocket_url)
    }

    /// Options of a conversation over WebSocket.
    fn into_conversation(self) -> Result<Options, String> {
        let given = [
            ("a base URL", !self.base_url.is_empty()),
            ("--user", self.user.is_some()),
            ("--file-root", self.file_root.is_some()),
            ("an argument of a script", !self.script_args.is_empty()),
        ];
        if let Some((what, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Err(format!("{what} cannot be used with a ws:// URL"));
        }
        let url = self.file.to_string_lossy().into_owned();
        let bodies = self.bodies.iter().map(whole_body).collect::<Result<Vec<_>, _>>()?;
        let (request_scenario, redact) = self.variables()?;
        // Without a message it listens.
        let listens = bodies.is_empty();
        if listens && (request_scenario.data.is_some() || !request_scenario.variables.is_empty()) {
            return Err("--variable and --data are for messages of a ws URL; write -b TEXT".to_owned());
        }
        let base = self.base_options();
        let websocket = WebSocketOptions { subprotocols: self.subprotocols, listens, ..WebSocketOptions::default() };
        Ok(Options { url, request_scenario, redact, bodies, websocket, ..base })
    }

    /// Options of a load of one call.
    fn into_call(self) -> Result<Options, String> {
        let url = self.file.to_string_lossy().into_owned();
        let given = [
            ("a base URL", !self.base_url.is_empty()),
            ("arguments of a script", !self.script_args.is_empty()),
            ("--user", self.user.is_some()),
            ("--file-root", self.file_root.is_some()),
        ];
        if let Some((what, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Err(format!("{what} cannot be used with a grpc URL"));
        }
        if self.bodies.len() > 1 {
            return Err("--body: a call takes one message here; give it once".to_owned());
        }
        let body = self.bodies.first().map(whole_body).transpose()?;
        let (request_scenario, redact) = self.variables()?;
        let (base, bodies) = (self.base_options(), body.into_iter().collect());
        Ok(Options { url, request_scenario, redact, bodies, grpc: self.grpc_args.into_options(), ..base })
    }

    /// Options of every request, without what the requests are.
    fn base_options(&self) -> Options {
        Options {
            headers: self.headers.clone(),
            auth: self.auth_timeout_args.auth.clone(),
            timeout: self.auth_timeout_args.timeout,
            seed: Some(self.seed),
            ..self.connection_args.clone().into_options()
        }
    }

    fn play_script(
        mut self,
        args: &[OsString],
        messages: &Messages,
        host: Option<&dyn PythonHost>,
    ) -> Result<u8, String> {
        let takes_variables = is_collection(&self.file);
        let given = [
            ("--variable", !self.variables.is_empty() && !takes_variables),
            ("--variables-file", !self.variable_files.is_empty() && !takes_variables),
            ("--secret", !self.secrets.is_empty() && !takes_variables),
            ("--data", self.data.is_some() && !takes_variables),
            ("--file-root", self.file_root.is_some()),
        ];
        if let Some((flag, _)) = given.iter().find(|(_, is_given)| *is_given) {
            return Err(format!("{flag} cannot be used with a script; give arguments after --"));
        }
        if !is_javascript(&self.file) {
            self.k6_flags.check_unused()?;
        }
        let mut own = std::mem::take(&mut self.script_args);
        // Without a URL the first argument after -- stands in its place.
        if self.base_url.starts_with('-') {
            own.insert(0, std::mem::take(&mut self.base_url));
        }
        let (output, base) = (self.output(), self.base_options());
        let pairs: Vec<String> = self.variables.iter().chain(&self.secrets).cloned().collect();
        let files = std::mem::take(&mut self.variable_files).into_iter();
        let collection = collection_input(files, &pairs, self.data.as_deref())?;
        let script = ScriptOptions {
            collection,
            args: own,
            user: self.user,
            users: Some(1),
            scenarios: Vec::new(),
            ..self.k6_flags.script(self.file, &self.base_url)
        };
        if is_python(&script.path) && host.is_none() {
            return Err(replace_process(args));
        }
        if output.is_json {
            reserve_stdout()?;
        }
        let options = Options { url: self.base_url, no_template: true, ..base };
        play_script(&script, options, &output, host, messages)
    }

    /// Parts of each iteration that are printed.
    fn output(&self) -> PlayOutput {
        PlayOutput {
            detail: if self.verbose { PlayDetail::Whole } else { PlayDetail::Full },
            is_json: self.json || self.format == RunFormat::Json,
            mask: match self.show_secrets {
                true => SecretMask::off(),
                false => SecretMask::new(&self.redact).with_values(&self.secret_values()),
            },
        }
    }

    /// Values of `--secret`, whatever their names.
    fn secret_values(&self) -> Vec<String> {
        self.secrets.iter().filter_map(|text| text.split_once('=')).map(|(_, value)| value.to_owned()).collect()
    }

    /// Settings of a scenario with the variables of the flags, and names of secrets.
    fn variables(&self) -> Result<(ScenarioSource, Vec<String>), String> {
        let mut variables = Vec::new();
        for path in &self.variable_files {
            variables.extend(read_variables(path)?);
        }
        for (flag, pairs) in [("variable", &self.variables), ("secret", &self.secrets)] {
            for pair in pairs {
                let (name, value) = named_value(flag, pair)?;
                // A secret is a text, whatever it looks like.
                let value = if flag == "secret" { Value::quoted_text(&value) } else { value };
                variables.push((name, value));
            }
        }
        let names = self.secrets.iter().filter_map(|text| text.split_once('=')).map(|(name, _)| name.to_owned());
        let redact = self.redact.iter().cloned().chain(names).collect();
        let data = self.data.as_deref().map(|path| DataSource::read(path, RowOrder::default())).transpose()?;
        Ok((ScenarioSource { variables, data, ..ScenarioSource::default() }, redact))
    }

    /// Options of a load of one scenario.
    fn into_options(self) -> Result<Options, String> {
        let mut source = match import_scenarios(&self.file, self.file_root.as_deref())? {
            Some(imported) => imported.into_single(&self.file)?,
            None => read_scenario(&self.file)?,
        };
        source.file_root = self.file_root.clone().or(source.file_root);
        let (variables, redact) = self.variables()?;
        source.variables.extend(variables.variables);
        source.data = variables.data.or(source.data);
        let base = self.base_options();
        Ok(Options { url: self.base_url, scenarios: vec![source], redact, ..base })
    }
}

fn read_scenario(path: &Path) -> Result<ScenarioSource, String> {
    let name = path.display().to_string();
    if UrlText::of(&name).is_url() {
        return Err(format!("'{name}' is a URL and not a scenario; write weir run FILE.hurl, or weir load {name}"));
    }
    let bytes = input_file::read(path).map_err(|error| format!("cannot read the scenario '{name}': {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| format!("the scenario '{name}' is not UTF-8"))?;
    let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
    Ok(ScenarioSource { name, text, folder, weight: 1.0, ..ScenarioSource::default() })
}
