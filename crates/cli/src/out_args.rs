//! Flags of the outputs of a load while it runs.

use std::path::PathBuf;

use clap::Args;

use weir_session::live::{OutOptions, PrometheusOutput, header_line, label, receiver_url, statsd_address};

pub(crate) const OUTPUTS: &str = "Outputs while it runs";

/// Flags of the outputs of a load while it runs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OutArgs {
    /// write a JSON line per interval to FILE; - is stdout
    #[arg(long, value_name = "FILE", help_heading = OUTPUTS)]
    out_jsonl: Option<PathBuf>,
    /// export to Prometheus, at a scrape address or remote-write URL; repeatable
    #[arg(long, value_name = "HOST:PORT|URL", help_heading = OUTPUTS)]
    out_prometheus: Vec<PrometheusOutput>,
    /// export to an OpenTelemetry collector (OTLP/HTTP), e.g. http://localhost:4318; repeatable
    #[arg(long, value_name = "URL", value_parser = receiver_url, help_heading = OUTPUTS)]
    out_otlp: Vec<String>,
    /// export to InfluxDB, e.g. http://localhost:8086/DATABASE; repeatable
    #[arg(long, value_name = "URL", value_parser = receiver_url, help_heading = OUTPUTS)]
    out_influx: Vec<String>,
    /// export to a StatsD server (UDP); repeatable
    #[arg(long, value_name = "HOST:PORT", value_parser = statsd_address, help_heading = OUTPUTS)]
    out_statsd: Vec<String>,
    /// send this header to the one receiver reached by HTTP; repeatable
    #[arg(long = "out-header", value_name = "'NAME: VALUE'", value_parser = header_line, help_heading = OUTPUTS)]
    out_headers: Vec<(String, String)>,
    /// add this label to all exported values; repeatable
    #[arg(long = "out-label", value_name = "NAME=VALUE", value_parser = label, help_heading = OUTPUTS)]
    out_labels: Vec<(String, String)>,
}

impl OutArgs {
    /// Outputs of the flags.
    pub(crate) fn into_options(self) -> OutOptions {
        OutOptions {
            jsonl: self.out_jsonl,
            prometheus: self.out_prometheus,
            otlp: self.out_otlp,
            influx: self.out_influx,
            statsd: self.out_statsd,
            headers: self.out_headers,
            labels: self.out_labels,
        }
    }
}
