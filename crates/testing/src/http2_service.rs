//! A scripted service that speaks HTTP/2.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use hyper::http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

/// A request that has come.
pub struct Http2Seen {
    /// Number of the connection, from 0.
    pub connection: u64,
    /// Number of the request among all, from 0.
    pub number: u64,
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// Reply of a service to a request.
pub enum Http2Reply {
    /// A response, after a time.
    Response {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
        after: Duration,
    },
    /// An empty message of gRPC, and the status OK in the trailers.
    Call,
    Reset(Reason),
    /// Nothing, for ever.
    Silence,
}

impl Http2Reply {
    pub fn ok(body: impl Into<Vec<u8>>) -> Self {
        Self::status(200, body)
    }

    pub fn status(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self::Response { status, headers: Vec::new(), body: body.into(), after: Duration::ZERO }
    }

    pub fn after(delay: Duration) -> Self {
        Self::Response { status: 200, headers: Vec::new(), body: b"late".to_vec(), after: delay }
    }
}

#[derive(Default)]
struct Tally {
    connections: AtomicU64,
    requests: AtomicU64,
    most_streams: AtomicU64,
}

type Script = dyn Fn(&Http2Seen) -> Http2Reply + Send + Sync;

/// How a service is to be.
#[derive(Clone, Default)]
pub struct Http2Builder {
    max_streams: Option<u32>,
    window: Option<u32>,
    goaway_after: Option<u64>,
    tls: Option<Arc<ServerConfig>>,
}

impl Http2Builder {
    /// Maximum number of streams of a connection.
    pub fn max_streams(self, streams: u32) -> Self {
        Self { max_streams: Some(streams), ..self }
    }

    /// Window of each stream, in bytes.
    pub fn window(self, bytes: u32) -> Self {
        Self { window: Some(bytes), ..self }
    }

    /// Sends GOAWAY on each connection after so many requests.
    pub fn goaway_after(self, requests: u64) -> Self {
        Self { goaway_after: Some(requests), ..self }
    }

    pub fn tls(self, config: &Arc<ServerConfig>) -> Self {
        let mut config = ServerConfig::clone(config);
        config.alpn_protocols = vec![b"h2".to_vec()];
        Self { tls: Some(Arc::new(config)), ..self }
    }

    pub fn start(self, script: impl Fn(&Http2Seen) -> Http2Reply + Send + Sync + 'static) -> Http2Service {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let tally = Arc::new(Tally::default());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = serve(self, listener, Arc::clone(&tally), Arc::new(script));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, async {
                tokio::select! {
                    () = serving => {}
                    _ = stopped => {}
                }
            });
        });
        Http2Service { address, tally, stop: Some(stop), thread: Some(thread) }
    }
}

/// A service that speaks HTTP/2 until it is dropped.
pub struct Http2Service {
    address: SocketAddr,
    tally: Arc<Tally>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Http2Service {
    pub fn build() -> Http2Builder {
        Http2Builder::default()
    }

    /// HOST:PORT
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn connections(&self) -> u64 {
        self.tally.connections.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> u64 {
        self.tally.requests.load(Ordering::SeqCst)
    }

    /// Largest number of streams that a connection has had at the same time.
    pub fn most_streams(&self) -> u64 {
        self.tally.most_streams.load(Ordering::SeqCst)
    }
}

impl Drop for Http2Service {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

async fn serve(builder: Http2Builder, listener: TcpListener, tally: Arc<Tally>, script: Arc<Script>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (builder, tally, script) = (builder.clone(), Arc::clone(&tally), Arc::clone(&script));
        let _ = stream.set_nodelay(true);
        tokio::task::spawn_local(async move {
            match &builder.tls {
                Some(config) => {
                    if let Ok(stream) = TlsAcceptor::from(Arc::clone(config)).accept(stream).await {
                        connection(&builder, stream, &tally, script).await;
                    }
                }
                None => connection(&builder, stream, &tally, script).await,
            }
        });
    }
}

async fn connection(
    builder: &Http2Builder,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    tally: &Arc<Tally>,
    script: Arc<Script>,
) {
    let mut settings = server::Builder::new();
    if let Some(streams) = builder.max_streams {
        settings.max_concurrent_streams(streams);
    }
    if let Some(bytes) = builder.window {
        settings.initial_window_size(bytes);
    }
    // One that connects and says nothing, as a check of the address does, is none.
    let Ok(mut connection) = settings.handshake::<_, Bytes>(stream).await else { return };
    let number = tally.connections.fetch_add(1, Ordering::SeqCst);
    let open = Arc::new(Mutex::new(0_u64));
    let mut served = 0;
    while let Some(Ok((request, respond))) = connection.accept().await {
        let most = {
            let mut open = open.lock().unwrap();
            *open += 1;
            *open
        };
        tally.most_streams.fetch_max(most, Ordering::SeqCst);
        served += 1;
        if builder.goaway_after == Some(served) {
            connection.graceful_shutdown();
        }
        let (tally, script, open) = (Arc::clone(tally), Arc::clone(&script), Arc::clone(&open));
        tokio::task::spawn_local(async move {
            let _ = answer(request, respond, number, &tally, &script).await;
            *open.lock().unwrap() -= 1;
        });
    }
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    connection: u64,
    tally: &Tally,
    script: &Arc<Script>,
) -> Result<(), h2::Error> {
    let (parts, mut stream) = request.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        stream.flow_control().release_capacity(piece.len())?;
        body.extend_from_slice(&piece);
    }
    let seen = Http2Seen {
        connection,
        number: tally.requests.fetch_add(1, Ordering::SeqCst),
        method: parts.method.to_string(),
        path: parts.uri.path_and_query().map_or_else(String::new, ToString::to_string),
        headers: parts.headers,
        body,
    };
    match script(&seen) {
        Http2Reply::Response { status, headers, body, after } => {
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            let mut head = Response::builder().status(status).header("server", "h2 of tests");
            for (name, value) in headers {
                head = head.header(name, value);
            }
            let stream = respond.send_response(head.body(()).unwrap(), body.is_empty())?;
            if !body.is_empty() {
                send(stream, body.into()).await?;
            }
        }
        Http2Reply::Call => {
            let head = Response::builder().status(200).header("content-type", "application/grpc");
            let mut stream = respond.send_response(head.body(()).unwrap(), false)?;
            stream.send_data(Bytes::from_static(&[0; 5]), false)?;
            let status = (HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"));
            stream.send_trailers(HeaderMap::from_iter([status]))?;
        }
        Http2Reply::Reset(reason) => respond.send_reset(reason),
        Http2Reply::Silence => std::future::pending().await,
    }
    Ok(())
}

async fn send(mut stream: SendStream<Bytes>, mut body: Bytes) -> Result<(), h2::Error> {
    while !body.is_empty() {
        stream.reserve_capacity(body.len());
        let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
        let room = room.unwrap_or(Err(Reason::CANCEL.into()))?;
        let piece = body.split_to(room.min(body.len()));
        stream.send_data(piece, body.is_empty())?;
    }
    Ok(())
}
