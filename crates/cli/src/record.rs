//! `weir record`: arguments -> a recording that becomes a scenario.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use weir_base::Nanos;
use weir_base::units;
use weir_net::target::Target;
use weir_record::notation::{self, RecordAddress};
use weir_record::{HostPattern, HostScope, Options, RecordSession};

use super::connection_args::{CONNECTION, CertificateArgs};
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
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8888", value_parser = notation::address)]
    listen: RecordAddress,
    /// record only this service; clients need no proxy setting
    #[arg(long, value_name = "URL", value_parser = notation::upstream, conflicts_with_all = ["only", "exclude", "ca_dir"])]
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
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = notation::body_size, help_heading = CHOICE)]
    max_body: usize,

    /// keep the certificate authority in this folder [default: ~/.config/weir]
    #[arg(long, value_name = "DIR", help_heading = CONNECTION)]
    ca_dir: Option<PathBuf>,
    #[command(flatten)]
    certificate_args: CertificateArgs,
    /// skip certificate verification of services
    #[arg(short = 'k', long, help_heading = CONNECTION)]
    insecure: bool,
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
                tls: self.certificate_args.into_options(self.insecure),
            },
            out: self.out.filter(|path| path.as_os_str() != "-"),
            har: self.har,
            correlate: !self.no_correlate,
        }
    }
}
