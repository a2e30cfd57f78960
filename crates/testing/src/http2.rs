//! A client that speaks HTTP/2.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};

/// Nothing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a test that speaks HTTP/2 with a gate.
pub fn over_http2(address: &str, test: impl AsyncFnOnce(SendRequest<Full<Bytes>>)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let test = async {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        test(sender).await;
    };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.unwrap() });
}
