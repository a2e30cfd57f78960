//! The server of the `h2` crate as an oracle: requests, responses, bodies and resets come through as they were sent,
//! whatever the windows, the sizes of frames and tables, and the pieces in which bytes arrive.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use bytes::Bytes;
use h2::{Reason, SendStream, server};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use weir_http2::connection::{ClientConnection, ClientSettings, Event, StreamRequest};
use weir_http2::error_code::ErrorCode;
use weir_http2::hpack::IndexingPolicy;

type Field = (String, String);

/// Lengths of bodies and pieces of content are below it.
const MAX_LENGTH: usize = 100_000;

/// A request, and what the server does with it.
#[derive(Clone, Debug)]
struct Exchange {
    method: &'static str,
    fields: Vec<Field>,
    body: usize,
    status: u16,
    response_fields: Vec<Field>,
    /// Pieces of the response's content.
    content: Vec<usize>,
    ending: Ending,
    interim: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Data,
    Trailers,
    Reset,
    /// Reset without a head.
    Refused,
}

/// Settings of both sides.
#[derive(Clone, Debug)]
struct Sides {
    client: ClientSettings,
    window: u32,
    connection_window: u32,
    max_streams: u32,
    max_frame: u32,
    table: u32,
    /// Bytes that the pipe holds, and that the client reads at a time.
    pipe: usize,
    read: usize,
}

/// What a client has received for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Received {
    status: u16,
    fields: Vec<Field>,
    content: Vec<u8>,
    end: Option<End>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Whole,
    Reset(ErrorCode),
}

/// What the server has received for a request: method, fields, body.
type Arrived = BTreeMap<usize, (String, Vec<Field>, Vec<u8>)>;

/// Content of a length, which is asked for with each piece that is sent.
fn content(length: usize) -> &'static [u8] {
    static LONGEST: LazyLock<Vec<u8>> = LazyLock::new(|| (0..MAX_LENGTH).map(|at| (at % 251) as u8).collect());
    &LONGEST[..length]
}

fn fields_of(headers: &HeaderMap) -> Vec<Field> {
    headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect()
}

fn headers_of(fields: &[Field]) -> HeaderMap {
    let parsed = |field: &Field| -> (HeaderName, HeaderValue) { (field.0.parse().unwrap(), field.1.parse().unwrap()) };
    let mut headers = HeaderMap::new();
    fields.iter().map(parsed).for_each(|(name, value)| {
        headers.append(name, value);
    });
    headers
}

/// Order between fields of different names is not kept by a map.
fn sorted(fields: &[Field]) -> Vec<Field> {
    let mut fields = fields.to_vec();
    fields.sort();
    fields
}

async fn respond(
    request: Request<h2::RecvStream>,
    mut respond: server::SendResponse<Bytes>,
    exchanges: Arc<Vec<Exchange>>,
    arrived: Arc<Mutex<Arrived>>,
) {
    let index: usize = request.uri().path()[1..].parse().unwrap();
    let exchange = &exchanges[index];
    if exchange.ending == Ending::Refused {
        respond.send_reset(Reason::REFUSED_STREAM);
        return;
    }
    let (parts, mut stream) = request.into_parts();
    let mut body = Vec::new();
    while let Some(Ok(piece)) = stream.data().await {
        stream.flow_control().release_capacity(piece.len()).unwrap();
        body.extend_from_slice(&piece);
    }
    let seen = (parts.method.to_string(), fields_of(&parts.headers), body);
    arrived.lock().unwrap().insert(index, seen);
    if exchange.interim {
        respond.send_informational(Response::builder().status(103).header("link", "a").body(()).unwrap()).unwrap();
    }
    let mut response = Response::builder().status(exchange.status).body(()).unwrap();
    *response.headers_mut() = headers_of(&exchange.response_fields);
    let is_empty = exchange.content.is_empty() && exchange.ending == Ending::Data;
    let mut stream: SendStream<Bytes> = respond.send_response(response, is_empty).unwrap();
    if is_empty {
        return;
    }
    for (at, length) in exchange.content.iter().enumerate() {
        let is_last = at + 1 == exchange.content.len() && exchange.ending == Ending::Data;
        stream.send_data(Bytes::from_static(content(*length)), is_last).unwrap();
    }
    match exchange.ending {
        Ending::Trailers => stream.send_trailers(headers_of(&[("x-end".to_owned(), "1".to_owned())])).unwrap(),
        Ending::Reset => stream.send_reset(Reason::INTERNAL_ERROR),
        Ending::Data | Ending::Refused => {}
    }
}

async fn serve(io: DuplexStream, sides: Sides, exchanges: Arc<Vec<Exchange>>, arrived: Arc<Mutex<Arrived>>) {
    let mut builder = server::Builder::new();
    builder
        .initial_window_size(sides.window)
        .initial_connection_window_size(sides.connection_window)
        .max_concurrent_streams(sides.max_streams)
        .max_frame_size(sides.max_frame)
        .header_table_size(sides.table);
    let mut connection = builder.handshake(io).await.unwrap();
    while let Some(accepted) = connection.accept().await {
        let (request, sender) = accepted.unwrap();
        tokio::spawn(respond(request, sender, exchanges.clone(), arrived.clone()));
    }
}

fn head(index: usize, exchange: &Exchange) -> Vec<u8> {
    let mut text = format!("{} /{index} HTTP/1.1\r\nHost: weir.test\r\nConnection: keep-alive\r\n", exchange.method);
    exchange.fields.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
    (text + "\r\n").into_bytes()
}

/// Sends all requests over one connection, until each has an end.
async fn request_all(io: DuplexStream, sides: &Sides, exchanges: &[Exchange]) -> Vec<Received> {
    let (mut reader, mut writer) = tokio::io::split(io);
    let mut connection = ClientConnection::new(&sides.client);
    let mut received = vec![Received::default(); exchanges.len()];
    let mut buffer = vec![0; sides.read];
    let mut next = 0;
    while received.iter().any(|one| one.end.is_none()) {
        // Before its settings the server may refuse what they do not permit.
        let is_ready = connection.peer_settings().is_received;
        while is_ready && next < exchanges.len() && connection.can_open() {
            let exchange = &exchanges[next];
            let key = next as u32;
            let request = StreamRequest {
                head: &head(next, exchange),
                body_length: exchange.body as u64,
                key,
                template: key % 3,
                wants_head: true,
            };
            connection.open(&request).unwrap();
            next += 1;
        }
        while let Some(body) = connection.next_body() {
            let bytes = content(exchanges[body.key as usize].body);
            let rest = &bytes[body.sent as usize..];
            assert!(connection.send_body(body.stream, &rest[..rest.len().min(sides.read.max(1_000))]) > 0);
        }
        // What the pipe takes at a time.
        let output = connection.output();
        let output = output[..output.len().min(sides.pipe)].to_vec();
        tokio::select! {
            written = writer.write(&output), if !output.is_empty() => connection.advance(written.unwrap()),
            read = reader.read(&mut buffer) => {
                let length = read.unwrap();
                assert!(length > 0, "the server has closed");
                take(&mut connection, &buffer[..length], &mut received);
            }
        }
    }
    received
}

fn take(connection: &mut ClientConnection, mut bytes: &[u8], received: &mut [Received]) {
    loop {
        let step = connection.receive(bytes).unwrap();
        bytes = &bytes[step.used..];
        let (key, end) = match step.event {
            None => return,
            Some(Event::Head { key, head }) => {
                let text = str::from_utf8(connection.head_text()).unwrap();
                let lines = text.strip_suffix("\r\n\r\n").unwrap().split("\r\n").skip(1);
                let one = &mut received[key as usize];
                one.fields =
                    lines.map(|line| line.split_once(": ").unwrap()).map(|(n, v)| (n.into(), v.into())).collect();
                one.status = head.status;
                continue;
            }
            Some(Event::Data { key, bytes }) => {
                received[key as usize].content.extend_from_slice(bytes);
                continue;
            }
            Some(Event::Ended { key, totals }) => {
                assert_eq!(totals.body, received[key as usize].content.len() as u64);
                (key, End::Whole)
            }
            Some(Event::Reset { key, reset }) => {
                assert_eq!(reset.is_unprocessed, reset.code == ErrorCode::REFUSED_STREAM, "{reset:?}");
                (key, End::Reset(reset.code))
            }
            Some(Event::Settings) => continue,
            Some(event) => panic!("{event:?}"),
        };
        assert_eq!(received[key as usize].end.replace(end), None);
    }
}

fn run(sides: &Sides, exchanges: Vec<Exchange>) -> (Vec<Received>, Arrived) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let exchanges = Arc::new(exchanges);
    let arrived = Arc::default();
    let received = runtime.block_on(async {
        let (client, server) = tokio::io::duplex(sides.pipe);
        tokio::spawn(serve(server, sides.clone(), Arc::clone(&exchanges), Arc::clone(&arrived)));
        let all = request_all(client, sides, &exchanges);
        tokio::time::timeout(std::time::Duration::from_secs(60), all).await.unwrap()
    });
    let arrived = arrived.lock().unwrap().clone();
    (received, arrived)
}

fn field() -> impl Strategy<Value = Field> {
    let name = prop::sample::select(vec!["accept", "x-trace", "cookie", "authorization", "user-agent", "x-long"]);
    let value = prop_oneof![Just("one".to_owned()), Just("two".to_owned()), "[a-zA-Z0-9=%~{}]{1,40}", "z{300,900}"];
    (name.prop_map(str::to_owned), value)
}

fn exchange() -> impl Strategy<Value = Exchange> {
    let sizes = prop_oneof![Just(0_usize), 1_usize..2_000, 1..MAX_LENGTH];
    let request = (
        prop::sample::select(vec!["GET", "POST", "DELETE"]),
        prop::collection::vec(field(), 0..5),
        prop_oneof![2 => Just(0), 1 => sizes.clone()],
    );
    let ending = prop_oneof![
        6 => Just(Ending::Data), 2 => Just(Ending::Trailers), 1 => Just(Ending::Reset), 1 => Just(Ending::Refused)
    ];
    let response = (
        prop::sample::select(vec![200_u16, 404, 503]),
        prop::collection::vec(field(), 0..5),
        prop::collection::vec(sizes, 0..4),
        ending,
        any::<bool>(),
    );
    (request, response).prop_map(|((method, fields, body), (status, response_fields, content, ending, interim))| {
        Exchange { method, fields, body, status, response_fields, content, ending, interim }
    })
}

fn sides() -> impl Strategy<Value = Sides> {
    let window = || prop_oneof![Just(65_535_u32), 1_000_u32..5_000, Just(1_u32 << 20)];
    let client = (window(), window(), 1_u32..20, prop_oneof![Just(4096_u32), Just(0), 0_u32..10_000], any::<bool>());
    let server = (
        window(),
        window(),
        1_u32..20,
        prop_oneof![Just(16_384_u32), 16_384_u32..100_000],
        prop_oneof![Just(4096_u32), Just(0), 0_u32..10_000],
    );
    let io = (prop_oneof![Just(1_usize << 16), 16_usize..2_000], prop_oneof![Just(1_usize << 16), 16_usize..2_000]);
    (client, server, io).prop_map(
        |(client, (window, connection_window, max_streams, max_frame, table), (pipe, read))| {
            let (stream_window_bytes, connection_window_bytes, streams, header_table_bytes, all) = client;
            let client = ClientSettings {
                max_streams: streams,
                stream_window_bytes,
                connection_window_bytes,
                header_table_bytes,
                indexing: if all { IndexingPolicy::All } else { IndexingPolicy::Repeated },
                ..ClientSettings::default()
            };
            Sides { client, window, connection_window, max_streams, max_frame, table, pipe, read }
        },
    )
}

/// The fields that the server sees of a request.
fn expected_fields(exchange: &Exchange) -> Vec<Field> {
    let all = exchange.fields.iter().flat_map(|(name, value)| match name.as_str() {
        "cookie" => value.split(';').map(|crumb| (name.clone(), crumb.to_owned())).collect(),
        _ => vec![(name.clone(), value.clone())],
    });
    sorted(&all.collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn requests_and_responses_come_through_as_they_were_sent(
        sides in sides(),
        exchanges in prop::collection::vec(exchange(), 1..30),
    ) {
        let (received, arrived) = run(&sides, exchanges.clone());
        for (index, exchange) in exchanges.iter().enumerate() {
            let one = &received[index];
            if exchange.ending == Ending::Refused {
                prop_assert_eq!(one.end, Some(End::Reset(ErrorCode::REFUSED_STREAM)));
                continue;
            }
            let (method, fields, body) = &arrived[&index];
            prop_assert_eq!(method, exchange.method);
            prop_assert_eq!(sorted(fields), expected_fields(exchange));
            prop_assert!(body == content(exchange.body), "body of {} bytes", body.len());
            if exchange.ending == Ending::Reset {
                // A reset overtakes what has not been sent.
                prop_assert_eq!(one.end, Some(End::Reset(ErrorCode::INTERNAL_ERROR)));
                continue;
            }
            prop_assert_eq!(one.end, Some(End::Whole));
            prop_assert_eq!(one.status, exchange.status);
            prop_assert_eq!(sorted(&one.fields), sorted(&exchange.response_fields));
            let whole = exchange.content.iter().map(|length| content(*length)).collect::<Vec<_>>().concat();
            prop_assert!(one.content == whole, "content of {} bytes instead of {}", one.content.len(), whole.len());
        }
    }
}
