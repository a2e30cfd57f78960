//! `weir record`: arguments -> a recording proxy, and then a scenario of what went through it.

mod outcome;
mod progress_line;

use std::env;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use clap::Args;

use weir_base::Nanos;
use weir_base::units;
use weir_import::ImportSettings;
use weir_net::target::Target;
use weir_net::tls::TlsOptions;
use weir_record::{HostPattern, HostScope, Options, RecordingProxy};

use self::outcome::RecordOutcome;
use self::progress_line::ProgressLine;
use super::connection_args::CONNECTION;
use super::exit;
use weir_session::interrupt::Interrupt;
use weir_session::messages::Messages;

const EXAMPLES: &str = "Examples:\n  weir record -o shop.hurl\n  weir record --upstream http://localhost:8080 -o shop.hurl\n  \
    weir record --only shop.example --for 60s -o shop.hurl";

/// Heading of the flags that choose what is recorded.
const CHOICE: &str = "Choice";

/// Flags of `weir record`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RecordArgs {
    /// listen address, HOST:PORT or PORT; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8888", value_parser = RecordAddress::parse)]
    listen: RecordAddress,
    /// the one service to record, without a proxy in the client
    #[arg(long, value_name = "URL", value_parser = upstream, conflicts_with_all = ["only", "exclude", "ca_dir"])]
    upstream: Option<Target>,
    /// file for the scenario; variables beside it [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// HAR file of the recording, which is kept; it has secrets
    #[arg(long, value_name = "FILE")]
    har: Option<PathBuf>,
    /// write over files that are there
    #[arg(long)]
    force: bool,
    /// end after this time [default: Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = units::time)]
    duration: Option<Duration>,
    /// end after this number of recorded requests
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// allow other machines to use the proxy, and so to be anyone
    #[arg(long)]
    allow_remote: bool,

    /// host to record; * is any text; repeatable [default: all]
    #[arg(long, value_name = "HOST", value_parser = HostPattern::parse, help_heading = CHOICE)]
    only: Vec<HostPattern>,
    /// host to pass through unread; repeatable
    #[arg(long, value_name = "HOST", value_parser = HostPattern::parse, help_heading = CHOICE)]
    exclude: Vec<HostPattern>,
    /// static files, too: images, fonts, style sheets, scripts
    #[arg(long = "static", help_heading = CHOICE)]
    keeps_static: bool,
    /// values of responses as they are, not as captures
    #[arg(long, help_heading = CHOICE)]
    no_correlate: bool,
    /// longest body that is recorded; longer ones pass through
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = body_size, help_heading = CHOICE)]
    max_body: usize,

    /// folder of the certificate authority [default: ~/.config/weir]
    #[arg(long, value_name = "DIR", help_heading = CONNECTION)]
    ca_dir: Option<PathBuf>,
    /// CA certificates of services, instead of the system's (PEM)
    #[arg(long = "cacert", value_name = "FILE", help_heading = CONNECTION)]
    ca_cert: Option<PathBuf>,
    /// client certificate (PEM); needs --cert-key
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    cert: Option<PathBuf>,
    /// private key of the client certificate (PEM); needs --cert
    #[arg(long = "cert-key", value_name = "FILE", help_heading = CONNECTION)]
    cert_key: Option<PathBuf>,
    /// no verification of certificates of services
    #[arg(short = 'k', long, help_heading = CONNECTION)]
    insecure: bool,
}

/// Address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordAddress {
    host: String,
    port: u16,
}

impl RecordAddress {
    /// Parses `HOST:PORT`, `[::1]:PORT`, `:PORT` or `PORT`.
    fn parse(text: &str) -> Result<Self, String> {
        let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
        let is_whole = !host.contains(':') || (host.starts_with('[') && host.ends_with(']'));
        let host = if host.is_empty() { "127.0.0.1" } else { host.trim_matches(['[', ']']) };
        match port.parse() {
            Ok(port) if is_whole => Ok(Self { host: host.to_owned(), port }),
            _ => Err("write it as 127.0.0.1:8888, [::1]:8888 or 8888".to_owned()),
        }
    }
}

/// Upstream of a reverse proxy: a scheme, a host, and no path, which would be that of each request.
fn upstream(text: &str) -> Result<Target, String> {
    let target = Target::parse(text).map_err(|error| error.to_string())?;
    match (target.path.as_str(), &target.userinfo) {
        ("/", None) => Ok(target),
        (_, Some(_)) => Err("a user and password are those of requests; write http://host:port".to_owned()),
        _ => Err("a path is that of requests; write http://host:port".to_owned()),
    }
}

/// Size of a body: `512KiB`, `1MiB`, or bytes; at most 64 MiB.
fn body_size(text: &str) -> Result<usize, String> {
    let lower = text.trim().to_ascii_lowercase();
    let (digits, unit) = match lower.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => lower.split_at(at),
        None => (lower.as_str(), ""),
    };
    let factor = match unit.trim() {
        "" | "b" => Some(1),
        "k" | "kib" => Some(1 << 10),
        "m" | "mib" => Some(1 << 20),
        _ => None,
    };
    let size = digits.parse::<usize>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    size.filter(|size| *size <= 64 << 20).ok_or_else(|| "write a size of at most 64MiB, e.g. 512KiB".to_owned())
}

pub(super) fn run(args: &RecordArgs, messages: &Messages) -> u8 {
    match args.try_run(messages) {
        Ok(code) => code,
        Err(why) => {
            messages.errors(&why);
            exit::USAGE
        }
    }
}

impl RecordArgs {
    fn try_run(&self, messages: &Messages) -> Result<u8, String> {
        let out = self.out.as_deref().filter(|path| path.as_os_str() != "-");
        self.check_outputs(out)?;
        // Before the address is printed: a reader of it may send a signal at once.
        let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
        let journal = self.journal(out);
        let line = Rc::new(ProgressLine::new(*messages));
        let options = self.options(journal.clone())?;
        let recorder =
            RecordingProxy::new(&options, Rc::<ProgressLine>::clone(&line)).map_err(|error| error.to_string())?;
        self.announce(&recorder, out.is_some(), messages).inspect_err(|_| remove(&journal, messages))?;
        let counts = recorder.run(|| interrupt.is_requested()).map_err(|error| error.to_string())?;
        line.finish();
        let outcome = RecordOutcome {
            counts,
            journal: &journal,
            keeps_journal: self.har.is_some(),
            path: out,
            settings: ImportSettings {
                all: self.keeps_static,
                correlate: !self.no_correlate,
                ..ImportSettings::default()
            },
            load_flags: self.load_flags(),
        };
        outcome.write(messages)
    }

    fn options(&self, journal: PathBuf) -> Result<Options, String> {
        let ca_dir = match (&self.ca_dir, &self.upstream) {
            (Some(folder), _) => folder.clone(),
            // Of no use to a reverse proxy.
            (None, Some(_)) => PathBuf::new(),
            (None, None) => config_folder()?,
        };
        Ok(Options {
            host: self.listen.host.clone(),
            port: self.listen.port,
            allows_remote: self.allow_remote,
            upstream: self.upstream.clone(),
            scope: HostScope { only: self.only.clone(), exclude: self.exclude.clone() },
            ca_dir,
            overwrites: self.force,
            journal,
            max_body_bytes: self.max_body,
            keeps_static: self.keeps_static,
            duration: self.duration.map_or(Nanos::NEVER, Nanos::from),
            max_requests: self.requests,
            tls: TlsOptions {
                cacert: self.ca_cert.clone(),
                cert: self.cert.clone(),
                key: self.cert_key.clone(),
                insecure: self.insecure,
            },
        })
    }

    /// Rejects files that are there, before an hour of recording and not after it.
    fn check_outputs(&self, out: Option<&Path>) -> Result<(), String> {
        let variables = out.map(|path| path.with_extension("env"));
        for path in [out, variables.as_deref(), self.har.as_deref()].into_iter().flatten() {
            if path.exists() && !self.force {
                let path = path.display();
                return Err(format!("{path} is there already; add --force to write over it, or choose another name"));
            }
        }
        if out.is_some() && out == self.har.as_deref() {
            return Err("-o and --har write to one file; give each its own".to_owned());
        }
        // A folder that cannot be written shows in the journal beside the scenario, but for an own place of the journal.
        let folder = out.and_then(Path::parent).filter(|folder| !folder.as_os_str().is_empty());
        match folder {
            Some(folder) if !folder.is_dir() => Err(format!("cannot write to {}: no such folder", folder.display())),
            _ => Ok(()),
        }
    }

    /// Flags by which services are trusted, as `weir load` has them.
    fn load_flags(&self) -> String {
        let files = [("--cacert", &self.ca_cert), ("--cert", &self.cert), ("--cert-key", &self.cert_key)];
        let given = files.iter().filter_map(|(flag, file)| Some(format!(" {flag} {}", file.as_ref()?.display())));
        let insecure = self.insecure.then(|| " --insecure".to_owned());
        given.chain(insecure).collect()
    }

    /// HAR file that is written while the recording goes on: beside the scenario, where it is found if all else fails.
    fn journal(&self, out: Option<&Path>) -> PathBuf {
        match (&self.har, out) {
            (Some(har), _) => har.clone(),
            (None, Some(out)) => out.with_extension("recording.har"),
            (None, None) => env::temp_dir().join(format!("weir-{}.recording.har", std::process::id())),
        }
    }

    fn announce(&self, recorder: &RecordingProxy, has_file: bool, messages: &Messages) -> Result<(), String> {
        let url = recorder.url();
        match &self.upstream {
            Some(target) => {
                messages.note(&format!("recording {} at {url}; Ctrl-C ends it", target.url.trim_end_matches('/')));
            }
            None => messages.note(&format!("recording; set {url} as the proxy of your client; Ctrl-C ends it")),
        }
        if let Some(file) = recorder.ca_file() {
            messages.note(&format!(
                "for https: trust {} in the client, e.g. curl --cacert (docs/record.md)",
                file.display()
            ));
        }
        if self.allow_remote {
            messages.note("warning: other machines that reach this address can use the proxy");
        }
        if !has_file {
            return Ok(());
        }
        let line = serde_json::json!({ "listening": url });
        writeln!(io::stdout(), "{line}")
            .and_then(|()| io::stdout().flush())
            .map_err(|error| format!("cannot write to stdout: {error}"))
    }
}

/// Folder of weir in the user's configuration.
fn config_folder() -> Result<PathBuf, String> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    base.map(|base| base.join("weir"))
        .ok_or_else(|| "the place of the certificate authority is not known: HOME is not set; give --ca-dir".to_owned())
}

/// Removes a file that is there; what cannot be removed is reported.
fn remove(path: &Path, messages: &Messages) {
    if let Err(error) = fs::remove_file(path) {
        messages.note(&format!("warning: cannot remove {}: {error}", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_upstreams_and_sizes_are_parsed() {
        let address = |host: &str, port| Ok(RecordAddress { host: host.to_owned(), port });
        assert_eq!(RecordAddress::parse("8888"), address("127.0.0.1", 8888));
        assert_eq!(RecordAddress::parse("[::1]:0"), address("::1", 0));
        assert!(RecordAddress::parse("::1").is_err() && RecordAddress::parse("h:x").is_err());
        assert!(upstream("http://h:80/").is_ok() && upstream("h:80").is_ok());
        assert!(upstream("http://h/api").is_err() && upstream("http://a:b@h").is_err() && upstream("ftp://h").is_err());
        assert_eq!(body_size("512KiB"), Ok(512 << 10));
        assert_eq!(body_size("0"), Ok(0));
        assert!(body_size("65MiB").is_err() && body_size("-1").is_err() && body_size("1GiB").is_err());
    }
}
