//! Server of scrapes: the metrics so far, in the text format of Prometheus.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::{Method, Request, Response, StatusCode};

use super::interval_sample::IntervalSample;
use super::metric_totals::MetricTotals;
use super::output_subject::OutputSubject;
use super::prometheus_text;
use super::scrape_address::ScrapeAddress;
use weir_machine::lock::lock;
use weir_machine::logger::Logger;
use weir_machine::timer::Timer;
use weir_server::{
    BuiltinPaths, Options, RequestBody, RequestContext, ResponseBody, RunningServer, Service, ServiceReply,
};

/// HTTP server from which Prometheus scrapes the totals of a run.
#[derive(Debug)]
pub(crate) struct ScrapeServer {
    totals: Arc<Mutex<MetricTotals>>,
    server: RunningServer,
}

/// Path of the metrics.
const METRICS_PATH: &str = "/metrics";
/// Decrease of the priority of the thread, so that it takes no time from those that generate the load.
const NICENESS: i32 = 10;
/// Time that scrapes in progress have at the end.
const END_GRACE: Duration = Duration::from_millis(500);

impl ScrapeServer {
    /// Starts the server.
    ///
    /// # Errors
    /// One line: the address cannot be listened on.
    pub(crate) fn start(address: &ScrapeAddress, subject: Arc<OutputSubject>, logger: Logger) -> Result<Self, String> {
        let totals = Arc::new(Mutex::new(MetricTotals::new(subject)));
        let options = Options {
            host: address.host.clone(),
            port: address.port,
            builtin_paths: BuiltinPaths { metrics: String::new(), health: String::new() },
            logger,
            ..Options::default()
        };
        let server = weir_server::start_boxed(ScrapeService(Arc::clone(&totals)), &options);
        Ok(Self { totals, server: server.map_err(|error| error.to_string())? })
    }

    /// URL of the metrics.
    pub(crate) fn url(&self) -> String {
        format!("{}{METRICS_PATH}", self.server.url())
    }

    /// Adds an interval.
    pub(crate) fn add(&self, sample: &IntervalSample) {
        lock(&self.totals).add(sample);
    }

    /// Stops the server.
    pub(crate) fn finish(self) {
        self.server.stop(END_GRACE);
    }
}

struct ScrapeService(Arc<Mutex<MetricTotals>>);

impl Service for ScrapeService {
    type Local = ();

    fn init_thread(&self, _: &Timer) -> io::Result<()> {
        // A thread's own, on Linux. Without it scrapes work as well.
        let _ = rustix::process::nice(NICENESS);
        Ok(())
    }

    async fn handle(&self, (): &(), request: Request<RequestBody>, _: &RequestContext) -> ServiceReply {
        match (request.method(), request.uri().path()) {
            (&Method::GET | &Method::HEAD, METRICS_PATH) => {
                // A copy, so that a run does not wait for the text.
                let totals = lock(&self.0).clone();
                reply(StatusCode::OK, prometheus_text::CONTENT_TYPE, prometheus_text::text(totals))
            }
            (_, METRICS_PATH) => reply(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET\n".to_owned()),
            _ => reply(StatusCode::NOT_FOUND, "text/plain", format!("metrics are at {METRICS_PATH}\n")),
        }
    }
}

fn reply(status: StatusCode, content_type: &'static str, text: String) -> ServiceReply {
    let mut response = Response::new(ResponseBody::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.into()
}
