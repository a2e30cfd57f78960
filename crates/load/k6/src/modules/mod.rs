//! Modules that scripts import by name: those of k6, written in JavaScript over `weir:native`.

#[cfg(test)]
mod tests;

/// Module of what is done after the function of an iteration.
pub(crate) const LATE_WORK: &str = "weir:values";

/// Sign before the names of modules that weir itself imports: a script that runs does not reach them by their names.
pub(crate) const OWN_IMPORT: char = '\u{1}';

/// Sources by names. Those that are empty are written in Rust.
const SOURCES: &[(&str, &str)] = &[
    ("weir:native", ""),
    ("weir:core", ""),
    ("weir:execution", ""),
    ("weir:http", ""),
    ("weir:batch", include_str!("batch.js")),
    ("weir:paths", include_str!("paths.js")),
    (LATE_WORK, include_str!("values.js")),
    ("weir:response", include_str!("response.js")),
    ("weir:requests", include_str!("requests.js")),
    ("weir:late", include_str!("late.js")),
    ("weir:sockets", include_str!("sockets.js")),
    ("weir:websockets", include_str!("web_sockets.js")),
    ("weir:forms", include_str!("forms.js")),
    ("k6", ""),
    ("k6/http", ""),
    ("k6/html", include_str!("html.js")),
    ("weir:elements", include_str!("elements.js")),
    ("k6/metrics", include_str!("metrics.js")),
    ("k6/crypto", include_str!("crypto.js")),
    ("k6/data", include_str!("data.js")),
    ("k6/encoding", include_str!("encoding.js")),
    ("k6/execution", include_str!("execution.js")),
    ("k6/timers", include_str!("timers.js")),
    ("k6/experimental/csv", include_str!("csv.js")),
    ("k6/experimental/fs", include_str!("fs.js")),
    ("k6/experimental/streams", include_str!("streams.js")),
    ("k6/experimental/timers", include_str!("timers.js")),
    ("k6/secrets", include_str!("secrets.js")),
    ("k6/net/grpc", include_str!("grpc.js")),
    ("k6/ws", include_str!("ws.js")),
    ("k6/websockets", include_str!("websockets.js")),
    ("k6/experimental/websockets", include_str!("websockets.js")),
    ("k6/experimental/webcrypto", include_str!("webcrypto.js")),
    ("weir/postman", include_str!("postman/collection.js")),
    ("weir:postman/dynamic", include_str!("postman/dynamic.js")),
    ("weir:postman/scopes", include_str!("postman/scopes.js")),
    ("weir:postman/lists", include_str!("postman/lists.js")),
    ("weir:postman/url", include_str!("postman/url.js")),
    ("weir:postman/auth", include_str!("postman/auth.js")),
    ("weir:postman/body", include_str!("postman/body.js")),
    ("weir:postman/request", include_str!("postman/request.js")),
    ("weir:postman/response", include_str!("postman/response.js")),
    ("weir:postman/compared", include_str!("postman/compared.js")),
    ("weir:postman/json_schema", include_str!("postman/json_schema.js")),
    ("weir:postman/expect_response", include_str!("postman/expect_response.js")),
    ("weir:postman/expect", include_str!("postman/expect.js")),
    ("weir:postman/crypto_js", include_str!("postman/crypto_js.js")),
    ("weir:postman/legacy", include_str!("postman/legacy.js")),
    ("weir:postman/thrown", include_str!("postman/thrown.js")),
    ("weir:postman/pm", include_str!("postman/pm.js")),
    ("weir:postman/sandbox", include_str!("postman/sandbox.js")),
    ("weir:postman/rows", include_str!("postman/rows.js")),
];

/// Beginnings of names of modules that weir does not have, and why.
const REFUSED: &[(&str, &str)] = &[
    ("k6/browser", "weir does not drive a browser; measure the requests that the page sends"),
    ("k6/experimental/browser", "weir does not drive a browser; measure the requests that the page sends"),
    ("k6/x/", "extensions of k6 (xk6) are not supported"),
    ("k6/experimental/redis", "weir does not load Redis"),
];

/// Source of a module of weir.
pub(crate) fn source(name: &str) -> Option<&'static str> {
    SOURCES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Whether a module is for those of weir alone.
pub(crate) fn is_internal(name: &str) -> bool {
    name.starts_with("weir:")
}

/// Whether a module is one of weir, or none imports.
pub(crate) fn is_own(name: &str) -> bool {
    name.is_empty() || source(name).is_some()
}

/// Why a name of a module of k6 is rejected, as one line.
pub(crate) fn rejection(name: &str) -> Option<String> {
    if let Some((_, why)) = REFUSED.iter().find(|(begin, _)| name.starts_with(begin)) {
        return Some(format!("'{name}' is not supported: {why}"));
    }
    (name == "k6" || name.starts_with("k6/")).then(|| format!("'{name}' is not a module of weir; remove its import"))
}
