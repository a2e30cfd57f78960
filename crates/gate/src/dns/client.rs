//! Questions to DNS servers, over UDP, and over TCP what is too long for it.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use ring::rand::{SecureRandom, SystemRandom};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use super::message::{self, DnsAnswer, DnsQuestion, RecordKind, ResponseError};
use super::servers::DnsServers;
use weir_machine::timer::Timer;

/// Room for a response over UDP; servers that do not know of its announced size may send more.
const UDP_BUFFER_BYTES: usize = 4096;

/// DNS servers that are asked.
#[derive(Clone)]
pub(super) struct DnsClient {
    servers: DnsServers,
    timer: Timer,
}

/// Reason why a question has no answer.
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
    /// No server has answered: what each of them did.
    Failed(String),
}

/// Reason why a server has not answered.
enum ServerError {
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

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response(error) => write!(f, "{error}"),
            Self::Io(error) => write!(f, "{}", error.kind()),
            Self::Text(why) => f.write_str(why),
        }
    }
}

impl From<io::Error> for ServerError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ResponseError> for ServerError {
    fn from(error: ResponseError) -> Self {
        Self::Response(error)
    }
}

impl DnsClient {
    /// A client of these servers; its timeouts are of this timer.
    pub(super) fn new(servers: DnsServers, timer: &Timer) -> Self {
        Self { servers, timer: timer.clone() }
    }

    /// Asks one server after another until one answers. That there is no such name or record is an answer, too.
    pub(super) async fn ask(&self, question: &DnsQuestion) -> Result<DnsAnswer, LookupError> {
        let mut failures = Vec::new();
        for _ in 0..self.servers.attempts {
            failures.clear();
            for server in &self.servers.addresses {
                match self.ask_server(*server, question).await {
                    Ok(answer) => return Ok(answer),
                    Err(ServerError::Response(ResponseError::NoName)) => return Err(LookupError::NoName(*server)),
                    Err(ServerError::Response(ResponseError::NoRecord)) => {
                        return Err(LookupError::NoRecord(question.kind, *server));
                    }
                    Err(error) => failures.push(format!("{error} ({server})")),
                }
            }
        }
        Err(LookupError::Failed(failures.join(", ")))
    }

    async fn ask_server(&self, server: SocketAddr, question: &DnsQuestion) -> Result<DnsAnswer, ServerError> {
        match self.exchange(server, question, true).await {
            // An old server does not know EDNS (RFC 6891, section 7).
            Err(ServerError::Response(ResponseError::Refused("FORMERR" | "NOTIMP"))) => {
                self.exchange(server, question, false).await
            }
            answered => answered,
        }
    }

    async fn exchange(&self, server: SocketAddr, question: &DnsQuestion, edns: bool) -> Result<DnsAnswer, ServerError> {
        let id = random_id()?;
        let query = message::query(id, question, edns).map_err(ServerError::Text)?;
        match self.in_time(over_udp(server, id, question, &query)).await {
            Err(ServerError::Response(ResponseError::Truncated)) => {
                self.in_time(over_tcp(server, id, question, &query)).await
            }
            answered => answered,
        }
    }

    async fn in_time(
        &self,
        exchange: impl Future<Output = Result<DnsAnswer, ServerError>>,
    ) -> Result<DnsAnswer, ServerError> {
        let timeout = self.servers.timeout;
        tokio::select! {
            answered = exchange => answered,
            () = self.timer.sleep(timeout) => Err(ServerError::Text(format!("no response within {timeout}"))),
        }
    }
}

/// An ID that a forger cannot guess.
fn random_id() -> Result<u16, ServerError> {
    let mut bytes = [0; 2];
    SystemRandom::new().fill(&mut bytes).map_err(|_| ServerError::Text("the system has no random numbers".into()))?;
    Ok(u16::from_be_bytes(bytes))
}

/// The first response to the query. The socket is new, so that its port is random, too, and connected, so that only the
/// server's messages arrive.
async fn over_udp(server: SocketAddr, id: u16, question: &DnsQuestion, query: &[u8]) -> Result<DnsAnswer, ServerError> {
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
            answered => return Ok(answered?),
        }
    }
}

async fn over_tcp(server: SocketAddr, id: u16, question: &DnsQuestion, query: &[u8]) -> Result<DnsAnswer, ServerError> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(query.len()).map_err(|_| ServerError::Text("the query is too long".into()))?;
    stream.write_all(&[&length.to_be_bytes(), query].concat()).await?;
    let length = stream.read_u16().await?;
    let mut bytes = vec![0; length.into()];
    stream.read_exact(&mut bytes).await?;
    Ok(message::response(id, question, &bytes)?)
}
