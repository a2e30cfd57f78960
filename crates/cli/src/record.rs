//! `weir record`: arguments -> a recording that becomes a scenario.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use weir_base::Nanos;
use weir_base::units;
use weir_net::target::Target;
use weir_net::tls::TlsOptions;
use weir_record::{HostPattern, HostScope, Options, RecordSession};

use super::connection_args::CONNECTION;
use weir_command::Messages;

const EXAMPLES: &str = "Examples:\n  weir record -o shop.hurl\n  weir record --upstream http://localhost:8080 -o shop.hurl\n  \
    weir record --only shop.example --for 60s -o shop.hurl";

/// Heading of the flags that choose what is recorded.
const CHOICE: &str = "Choice";

/// Flags of `weir record`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RecordArgs {
    /// listen on HOST:PORT or PORT; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8888", value_parser = RecordAddress::parse)]
    listen: RecordAddress,
    /// record only this service; clients need no proxy setting
    #[arg(long, value_name = "URL", value_parser = upstream, conflicts_with_all = ["only", "exclude", "ca_dir"])]
    upstream: Option<Target>,
    /// write the scenario to FILE, variables beside it [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// keep the recording as a HAR file; it contains secrets
    #[arg(long, value_name = "FILE")]
    har: Option<PathBuf>,
    /// overwrite existing files
    #[arg(long)]
    force: bool,
    /// stop after TIME [default: Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = units::time)]
    duration: Option<Duration>,
    /// stop after N recorded requests
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,
    /// let other machines use the proxy, and act as this one
    #[arg(long)]
    allow_remote: bool,

    /// record only this host; * matches any text; repeatable [default: all]
    #[arg(long, value_name = "HOST", value_parser = HostPattern::parse, help_heading = CHOICE)]
    only: Vec<HostPattern>,
    /// pass this host through unread; repeatable
    #[arg(long, value_name = "HOST", value_parser = HostPattern::parse, help_heading = CHOICE)]
    exclude: Vec<HostPattern>,
    /// record static files, too: images, fonts, style sheets, scripts
    #[arg(long = "static", help_heading = CHOICE)]
    keeps_static: bool,
    /// keep recorded values instead of capturing them from responses
    #[arg(long, help_heading = CHOICE)]
    no_correlate: bool,
    /// record bodies up to this size; longer ones pass through
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = body_size, help_heading = CHOICE)]
    max_body: usize,

    /// keep the certificate authority in this folder [default: ~/.config/weir]
    #[arg(long, value_name = "DIR", help_heading = CONNECTION)]
    ca_dir: Option<PathBuf>,
    /// trust these CA certificates (PEM) instead of the system's
    #[arg(long = "cacert", value_name = "FILE", help_heading = CONNECTION)]
    ca_cert: Option<PathBuf>,
    /// present this client certificate (PEM); needs --cert-key
    #[arg(long, value_name = "FILE", help_heading = CONNECTION)]
    cert: Option<PathBuf>,
    /// use this private key (PEM) for --cert
    #[arg(long = "cert-key", value_name = "FILE", help_heading = CONNECTION)]
    cert_key: Option<PathBuf>,
    /// skip certificate verification of services
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
        (_, Some(_)) => Err("user and password belong to requests; write http://host:port".to_owned()),
        _ => Err("paths belong to requests; write http://host:port".to_owned()),
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

pub(super) fn run(args: RecordArgs, messages: &Messages) -> Result<u8, String> {
    args.into_session().run(messages)
}

impl RecordArgs {
    fn into_session(self) -> RecordSession {
        RecordSession {
            proxy: Options {
                host: self.listen.host,
                port: self.listen.port,
                allows_remote: self.allow_remote,
                upstream: self.upstream,
                scope: HostScope { only: self.only, exclude: self.exclude },
                ca_dir: self.ca_dir.unwrap_or_default(),
                overwrites: self.force,
                journal: PathBuf::new(),
                max_body_bytes: self.max_body,
                keeps_static: self.keeps_static,
                duration: self.duration.map_or(Nanos::NEVER, Nanos::from),
                max_requests: self.requests,
                tls: TlsOptions { cacert: self.ca_cert, cert: self.cert, key: self.cert_key, insecure: self.insecure },
            },
            out: self.out.filter(|path| path.as_os_str() != "-"),
            har: self.har,
            correlate: !self.no_correlate,
        }
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
