//! A DNS server, whose records and manners change while it runs. Its messages are written by hand: what reads them in the
//! product is a library.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

/// How a server answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DnsManner {
    #[default]
    Plain,
    /// Not at all.
    Silent,
    /// SERVFAIL.
    Failing,
    /// Over UDP nothing but that the answer is too long.
    Truncating,
    /// Before each response forged ones with 127.0.0.99: another ID, another question, from another port.
    Forged,
    /// As one of 1998: FORMERR for queries with an additional record.
    WithoutEdns,
}

/// A question that a server was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsSeen {
    pub name: String,
    pub kind: u16,
    pub over_tcp: bool,
    /// ID of the message, and the port that it came from.
    pub id: u16,
    pub port: u16,
}

#[derive(Clone, Debug)]
struct ZoneRecord {
    owner: String,
    ttl_s: u32,
    kind: u16,
    data: Vec<u8>,
    /// Name that an alias or service leads to.
    target: String,
}

#[derive(Default)]
struct Zone {
    records: Vec<ZoneRecord>,
    manner: DnsManner,
    adds_targets: bool,
    seen: Vec<DnsSeen>,
    is_stopped: bool,
}

/// A DNS server at a free port of 127.0.0.1, over UDP and TCP.
pub struct DnsServer {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    threads: Vec<JoinHandle<()>>,
}

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const SRV: u16 = 33;

const NAME_ERROR: u16 = 3;

impl DnsServer {
    /// A server with these records: lines of `NAME TTL TYPE DATA...` for A, AAAA, CNAME and SRV.
    pub fn start(records: &str) -> Self {
        let (udp, tcp) = sockets();
        let address = udp.local_addr().unwrap();
        let zone = Arc::new(Mutex::new(Zone { records: parsed(records), ..Zone::default() }));
        let (for_udp, for_tcp) = (Arc::clone(&zone), Arc::clone(&zone));
        let threads =
            vec![thread::spawn(move || serve_udp(&udp, &for_udp)), thread::spawn(move || serve_tcp(&tcp, &for_tcp))];
        Self { address, zone, threads }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Replaces the records.
    pub fn set_records(&self, records: &str) {
        self.zone().records = parsed(records);
    }

    pub fn set_manner(&self, manner: DnsManner) {
        self.zone().manner = manner;
    }

    /// Whether answers have the addresses of services' targets.
    pub fn set_adds_targets(&self, adds_targets: bool) {
        self.zone().adds_targets = adds_targets;
    }

    pub fn seen(&self) -> Vec<DnsSeen> {
        self.zone().seen.clone()
    }

    fn zone(&self) -> MutexGuard<'_, Zone> {
        self.zone.lock().unwrap()
    }
}

impl Drop for DnsServer {
    fn drop(&mut self) {
        self.zone().is_stopped = true;
        // Wakes both threads.
        let _ = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.send_to(&[], self.address));
        let _ = TcpStream::connect(self.address);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Sockets at the same free port.
fn sockets() -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()) {
            return (udp, tcp);
        }
    }
    panic!("no port is free for UDP and TCP");
}

fn serve_udp(socket: &UdpSocket, zone: &Mutex<Zone>) {
    let mut bytes = [0; 4096];
    loop {
        // A caller that is gone by now makes the next call fail.
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        if zone.lock().unwrap().is_stopped {
            return;
        }
        let query = &bytes[..length];
        let manner = zone.lock().unwrap().manner;
        let Some(response) = respond(query, from.port(), false, zone) else { continue };
        if manner == DnsManner::Forged {
            let mut wrong = forged(query);
            let other = UdpSocket::bind("127.0.0.1:0").unwrap();
            let _ = other.send_to(&wrong, from);
            // Another question: its first letter is another one.
            wrong[13] ^= 1;
            let _ = socket.send_to(&wrong, from);
            wrong[13] ^= 1;
            wrong[1] ^= 1;
            let _ = socket.send_to(&wrong, from);
        }
        let _ = socket.send_to(&response, from);
    }
}

fn serve_tcp(listener: &TcpListener, zone: &Mutex<Zone>) {
    loop {
        let Ok((mut stream, from)) = listener.accept() else { continue };
        if zone.lock().unwrap().is_stopped {
            return;
        }
        let mut length = [0; 2];
        if stream.read_exact(&mut length).is_err() {
            continue;
        }
        let mut query = vec![0; u16::from_be_bytes(length).into()];
        if stream.read_exact(&mut query).is_err() {
            continue;
        }
        if let Some(response) = respond(&query, from.port(), true, zone) {
            let length = u16::try_from(response.len()).unwrap().to_be_bytes();
            let _ = stream.write_all(&[&length[..], &response].concat());
        }
    }
}

/// The name, the type and the end of a query's question.
fn question(query: &[u8]) -> (String, u16, usize) {
    let (mut labels, mut at) = (Vec::new(), 12);
    while query[at] != 0 {
        let end = at + 1 + usize::from(query[at]);
        labels.push(String::from_utf8(query[at + 1..end].to_vec()).unwrap().to_ascii_lowercase());
        at = end;
    }
    (labels.join("."), u16::from_be_bytes([query[at + 1], query[at + 2]]), at + 5)
}

fn respond(query: &[u8], port: u16, over_tcp: bool, zone: &Mutex<Zone>) -> Option<Vec<u8>> {
    let mut zone = zone.lock().unwrap();
    let (name, kind, end) = question(query);
    let id = u16::from_be_bytes([query[0], query[1]]);
    zone.seen.push(DnsSeen { name: name.clone(), kind, over_tcp, id, port });
    let has_additional = query[11] != 0;
    let empty = |flags| Some(message(&query[..end], flags, &[], &[]));
    match zone.manner {
        DnsManner::Silent => return None,
        DnsManner::Failing => return empty(2),
        DnsManner::Truncating if !over_tcp => return empty(0x0200),
        DnsManner::WithoutEdns if has_additional => return empty(1),
        _ => {}
    }
    let (mut owner, mut answers, mut is_known) = (name, Vec::new(), false);
    loop {
        let of_owner = || zone.records.iter().filter(|record| record.owner == owner);
        is_known |= of_owner().next().is_some();
        answers.extend(of_owner().filter(|record| record.kind == kind || record.kind == CNAME));
        match of_owner().find(|record| record.kind == CNAME) {
            Some(alias) => owner = alias.target.clone(),
            None => break,
        }
    }
    let is_along = |record: &&ZoneRecord| {
        zone.adds_targets
            && matches!(record.kind, A | AAAA)
            && answers.iter().any(|answer| answer.kind == SRV && answer.target == record.owner)
    };
    let additional: Vec<&ZoneRecord> = zone.records.iter().filter(is_along).collect();
    Some(message(&query[..end], if is_known { 0 } else { NAME_ERROR }, &answers, &additional))
}

/// A response with the query's head and question.
fn message(query: &[u8], flags: u16, answers: &[&ZoneRecord], additional: &[&ZoneRecord]) -> Vec<u8> {
    let mut bytes = query[..2].to_vec();
    // A response of a server that recurses.
    bytes.extend((0x8180 | flags).to_be_bytes());
    for count in [1, answers.len(), 0, additional.len()] {
        bytes.extend(u16::try_from(count).unwrap().to_be_bytes());
    }
    bytes.extend(&query[12..]);
    for record in answers.iter().chain(additional) {
        bytes.extend(encoded(&record.owner));
        bytes.extend(record.kind.to_be_bytes());
        bytes.extend(1u16.to_be_bytes());
        bytes.extend(record.ttl_s.to_be_bytes());
        bytes.extend(u16::try_from(record.data.len()).unwrap().to_be_bytes());
        bytes.extend(&record.data);
    }
    bytes
}

/// A response that leads elsewhere.
fn forged(query: &[u8]) -> Vec<u8> {
    let (owner, _, end) = question(query);
    let record = ZoneRecord { owner, ttl_s: 3600, kind: A, data: vec![127, 0, 0, 99], target: String::new() };
    message(&query[..end], 0, &[&record], &[])
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

fn parsed(records: &str) -> Vec<ZoneRecord> {
    records.lines().filter(|line| !line.trim().is_empty()).map(zone_record).collect()
}

fn zone_record(line: &str) -> ZoneRecord {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [owner, ttl, kind, data @ ..] = words.as_slice() else { panic!("{line:?} is not NAME TTL TYPE DATA") };
    let (owner, ttl_s) = ((*owner).to_owned(), ttl.parse().unwrap());
    let last = (*data.last().unwrap()).to_owned();
    let (kind, data) = match *kind {
        "A" | "AAAA" => match last.parse().unwrap() {
            IpAddr::V4(address) => (A, address.octets().to_vec()),
            IpAddr::V6(address) => (AAAA, address.octets().to_vec()),
        },
        "CNAME" => (CNAME, encoded(&last)),
        "SRV" => {
            let numbers = data[..3].iter().flat_map(|number| number.parse::<u16>().unwrap().to_be_bytes());
            (SRV, numbers.chain(encoded(&last)).collect())
        }
        other => panic!("no records of type {other}"),
    };
    ZoneRecord { owner, ttl_s, kind, data, target: last }
}
