//! TLS between callers and the gateway: certificates by name, versions, client certificates, reloads.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod client_certificates;
mod handshakes;
mod reloads;

use weir_testing::{Authority, Reply, Server, Serving, Weir};

/// An upstream that responds with a header of its request, or a hyphen.
fn echo_of(header: &'static str) -> Server {
    Server::start(move |seen| Reply::ok(seen.header(header).unwrap_or("-")))
}

/// A gateway with TLS: the settings of `tls`, and all requests to this upstream by a route with these settings.
fn secure(weir: Weir, server: &Server, tls: &str, route: &str) -> Serving {
    weir.write("gate.toml", config(server, tls, route));
    Serving::gate_file(weir, &[])
}

fn config(server: &Server, tls: &str, route: &str) -> String {
    let url = server.url("");
    format!(
        "[[listeners]]\naddress = \"127.0.0.1:0\"\n[listeners.tls]\n{tls}\n[upstreams.backend]\nurls = [\"{url}\"]\n\
         [[routes]]\nmatch = {{ path = \"/{{*rest}}\" }}\n{route}\n"
    )
}

/// A folder with certificates for each of these lists of names, `0.pem` and `0-key.pem` for the first one.
fn with_certificates(authority: &Authority, names: &[&[&str]]) -> Weir {
    let weir = Weir::new();
    for (index, names) in names.iter().enumerate() {
        authority.issue_for(names).files(&weir, &index.to_string());
    }
    weir
}

/// The list of these certificates.
fn certificates(count: usize) -> String {
    let one = |index| format!("{{ cert = \"{index}.pem\", key = \"{index}-key.pem\" }}");
    format!("certificates = [{}]", (0..count).map(one).collect::<Vec<_>>().join(", "))
}
