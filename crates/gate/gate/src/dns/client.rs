//! Questions to DNS servers, over UDP, and over TCP what is too long for it.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use super::message::{self, DnsQuestion, DnsRecords, RecordKind, ResponseError};
use super::servers::DnsServers;
use weir_machine::timer::Timer;

/// Room for a response over UDP; servers that do not know of its announced size may send more.
const UDP_BUFFER_BYTES: usize = 4096;

/// Client of DNS servers, over UDP and TCP.
#[derive(Clone)]
pub(super) struct DnsClient {
    servers: DnsServers,
    timer: Timer,
}

/// Reason why a question has no records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LookupError {
    /// The name does not exist; by the server.
    NoName(SocketAddr),
    /// The name has no record of this type.
    NoRecord(RecordKind, SocketAddr),
    /// The name has no address of either family.
    NoAddress(SocketAddr),
    /// The service's records lead to no address.
    NoTarget,
    /// No server has responded: what each of them did.
    Failed(String),
}

/// Reason why a server has given no records.
enum DnsExchangeError {
    Response(ResponseError),
    Io(io::Error),
    Text(String),
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoName(server) => write!(f, "{} ({server})", ResponseError::NoName),
            Self::NoRecord(kind, server) => write!(f, "the name has no {kind} record ({server})"),
            Self::NoAddress(server) => write!(f, "the name has no address ({server})"),
            Self::NoTarget => f.write_str("no target of its SRV records has an address"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl fmt::Display for DnsExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response(error) => write!(f, "{error}"),
            Self::Io(error) => write!(f, "{}", error.kind()),
            Self::Text(why) => f.write_str(why),
        }
    }
}

impl From<io::Error> for DnsExchangeError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ResponseError> for DnsExchangeError {
    fn from(error: ResponseError) -> Self {
        Self::Response(error)
    }
}

impl DnsClient {
    /// A client of these servers; its timeouts are of this timer.
    pub(super) fn new(servers: DnsServers, timer: &Timer) -> Self {
        Self { servers, timer: timer.clone() }
    }

    /// Asks one server after another until one of them says what there is, be it that there is no such name or record.
    pub(super) async fn ask(&self, question: &DnsQuestion) -> Result<DnsRecords, LookupError> {
        let mut failures = Vec::new();
        for _ in 0..self.servers.attempts {
            failures.clear();
            for server in &self.servers.addresses {
                match self.ask_server(*server, question).await {
                    Ok(records) => return Ok(records),
                    Err(DnsExchangeError::Response(ResponseError::NoName)) => return Err(LookupError::NoName(*server)),
                    Err(DnsExchangeError::Response(ResponseError::NoRecord)) => {
                        return Err(LookupError::NoRecord(question.kind, *server));
                    }
                    Err(error) => failures.push(format!("{error} ({server})")),
                }
            }
        }
        Err(LookupError::Failed(failures.join(", ")))
    }

    async fn ask_server(&self, server: SocketAddr, question: &DnsQuestion) -> Result<DnsRecords, DnsExchangeError> {
        match self.exchange(server, question, true).await {
            // An old server does not know EDNS (RFC 6891, section 7).
            Err(DnsExchangeError::Response(ResponseError::ServerCode("FORMERR" | "NOTIMP"))) => {
                self.exchange(server, question, false).await
            }
            done => done,
        }
    }

    async fn exchange(
        &self,
        server: SocketAddr,
        question: &DnsQuestion,
        edns: bool,
    ) -> Result<DnsRecords, DnsExchangeError> {
        let id = random_id()?;
        let query = message::query(id, question, edns).map_err(DnsExchangeError::Text)?;
        match self.in_time(over_udp(server, id, question, &query)).await {
            Err(DnsExchangeError::Response(ResponseError::Truncated)) => {
                self.in_time(over_tcp(server, id, question, &query)).await
            }
            done => done,
        }
    }

    async fn in_time(
        &self,
        exchange: impl Future<Output = Result<DnsRecords, DnsExchangeError>>,
    ) -> Result<DnsRecords, DnsExchangeError> {
        let timeout = self.servers.timeout;
        tokio::select! {
            done = exchange => done,
            () = self.timer.sleep(timeout) => Err(DnsExchangeError::Text(format!("no response within {timeout}"))),
        }
    }
}

/// An ID that a forger cannot guess.
fn random_id() -> Result<u16, DnsExchangeError> {
    let mut bytes = [0; 2];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| DnsExchangeError::Text("the system has no random numbers".into()))?;
    Ok(u16::from_be_bytes(bytes))
}

/// The first response to the query. The socket is new, so that its port is random, too, and connected, so that only the
/// server's messages arrive.
async fn over_udp(
    server: SocketAddr,
    id: u16,
    question: &DnsQuestion,
    query: &[u8],
) -> Result<DnsRecords, DnsExchangeError> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(server).await?;
    socket.send(query).await?;
    let mut bytes = vec![0; UDP_BUFFER_BYTES];
    loop {
        let length = socket.recv(&mut bytes).await?;
        match message::response(id, question, &bytes[..length]) {
            Err(ResponseError::Foreign) => {}
            done => return Ok(done?),
        }
    }
}

async fn over_tcp(
    server: SocketAddr,
    id: u16,
    question: &DnsQuestion,
    query: &[u8],
) -> Result<DnsRecords, DnsExchangeError> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(query.len()).map_err(|_| DnsExchangeError::Text("the query is too long".into()))?;
    stream.write_all(&[&length.to_be_bytes(), query].concat()).await?;
    let length = stream.read_u16().await?;
    let mut bytes = vec![0; length.into()];
    stream.read_exact(&mut bytes).await?;
    Ok(message::response(id, question, &bytes)?)
}
