//! Texts about HTTP/2.

use super::number_format::{count, ms};
use weir_measure::Run;

/// Versions of HTTP and TLS, and streams.
pub(crate) fn protocol(run: &Run) -> String {
    // Version alone; the cipher is in the JSON.
    let tls = run.target.tls.as_deref().map(|tls| tls.split(',').next().unwrap_or(tls));
    let Some(http2) = &run.http2 else { return tls.unwrap_or("no TLS").to_owned() };
    if run.target.http.as_deref() == Some("HTTP/1.1") {
        return format!("HTTP/1.1, since the service offers no HTTP/2 · {}", tls.unwrap_or("no TLS"));
    }
    let plural = if http2.streams == 1 { "" } else { "s" };
    format!("HTTP/2, {} stream{plural} each · {}", count(http2.streams), tls.unwrap_or("no TLS"))
}

/// Noteworthy facts about HTTP/2, as short phrases; without error codes.
pub(crate) fn notices(run: &Run) -> Vec<String> {
    let Some(http2) = &run.http2 else { return Vec::new() };
    let mut words = Vec::new();
    if http2.settings_ms.max.is_some() {
        words.push(format!("settings within {} (p50), {} (max)", ms(http2.settings_ms.p50), ms(http2.settings_ms.max)));
    }
    if let Some(permitted) = http2.permitted_streams.filter(|permitted| *permitted < http2.streams) {
        words.push(format!("the service permits {} streams", count(permitted)));
    }
    let counts = [(http2.goaways, "GOAWAY"), (http2.resent, "sent again elsewhere")];
    words.extend(counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", count(*n))));
    words
}

/// Streams that ended without a whole response by error code, as short phrases, the most frequent first.
pub(crate) fn errors(run: &Run) -> Vec<String> {
    let mut errors: Vec<(&String, &u64)> = run.http2.iter().flat_map(|http2| &http2.errors).collect();
    errors.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    errors.into_iter().map(|(code, n)| format!("{} {code}", count(*n))).collect()
}
