//! Messages of DNS (RFC 1035, RFC 2782, RFC 6891): a query as bytes, and the records that the bytes of a response have
//! for it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use simple_dns::rdata::{OPT, RData};
use simple_dns::{CLASS, Name, OPCODE, Packet, PacketFlag, Question, ResourceRecord, TYPE, header_buffer};

use super::name::DnsName;

/// Advertised maximum of a response over UDP, in bytes; no network of today splits packets of this size.
pub const MAX_UDP_BYTES: u16 = 1232;
/// Codes of responses (RFC 1035, section 4.1.1).
const NO_ERROR: u8 = 0;
const FORMAT_ERROR: u8 = 1;
const SERVER_FAILURE: u8 = 2;
const NAME_ERROR: u8 = 3;
const NOT_IMPLEMENTED: u8 = 4;
const POLICY_ERROR: u8 = 5;
/// Maximum length of a chain of aliases (CNAME).
const MAX_ALIASES: usize = 16;
/// From this bit on a time to live is negative, and counts as zero (RFC 2181, section 8).
const MAX_TTL_S: u32 = i32::MAX as u32;

/// Type of the records that a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Hosts and ports of a service.
    Srv,
}

/// Name and record types of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsQuestion {
    /// Name of the records.
    pub name: DnsName,
    /// Their type.
    pub kind: RecordKind,
}

/// A record of a service (RFC 2782).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SrvRecord {
    /// Records with a lower number come first.
    pub priority: u16,
    /// Part of the requests among records of the same priority.
    pub weight: u16,
    /// Port at the target.
    pub port: u16,
    /// Name of the host; None: the service is not available.
    pub target: Option<DnsName>,
}

/// An address of a service's target that came with the service's records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetAddress {
    /// Name of the host.
    pub target: DnsName,
    /// Address of the target.
    pub address: IpAddr,
}

/// Records in the response to a query; at least one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DnsRecords {
    /// Addresses, if the query was for addresses.
    pub addresses: Vec<IpAddr>,
    /// SRV records, if the query was for a service.
    pub services: Vec<SrvRecord>,
    /// Addresses of the targets of `services`, as far as they came along.
    pub target_addresses: Vec<TargetAddress>,
    /// Shortest time to live of all that this is made of, in seconds.
    pub ttl_s: u32,
}

/// Reason why a message has no records for a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseError {
    /// Not a response to this query: another ID or question. It may be forged, and the true response may still come.
    Foreign,
    /// Truncated; the query is to be repeated over TCP.
    Truncated,
    /// The name does not exist (NXDOMAIN).
    NoName,
    /// The name has no record of this type.
    NoRecord,
    /// The server could not, or did not want to respond: its code's name.
    ServerCode(&'static str),
    /// Not a message of DNS.
    Malformed(String),
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::A => "A",
            Self::Aaaa => "AAAA",
            Self::Srv => "SRV",
        })
    }
}

impl fmt::Display for ResponseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign => f.write_str("a response to another question"),
            Self::Truncated => f.write_str("a response that is cut off"),
            Self::NoName => f.write_str("the name does not exist (NXDOMAIN)"),
            Self::NoRecord => f.write_str("the name has no such record"),
            Self::ServerCode(code) => f.write_str(code),
            Self::Malformed(why) => write!(f, "an invalid message ({why})"),
        }
    }
}

impl RecordKind {
    fn code(self) -> TYPE {
        match self {
            Self::A => TYPE::A,
            Self::Aaaa => TYPE::AAAA,
            Self::Srv => TYPE::SRV,
        }
    }
}

/// A query, with recursion; `edns`: which allows responses of [`MAX_UDP_BYTES`] in place of 512.
///
/// # Errors
/// The library's, which a valid name does not cause.
pub fn query(id: u16, question: &DnsQuestion, edns: bool) -> Result<Vec<u8>, String> {
    let name = Name::new(question.name.as_str()).map_err(|error| error.to_string())?;
    let mut packet = Packet::new_query(id);
    packet.set_flags(PacketFlag::RECURSION_DESIRED);
    packet.questions.push(Question::new(name, question.kind.code().into(), CLASS::IN.into(), false));
    if edns {
        *packet.opt_mut() = Some(OPT { opt_codes: Vec::new(), udp_packet_size: MAX_UDP_BYTES, version: 0 });
    }
    packet.build_bytes_vec().map_err(|error| error.to_string())
}

/// The records of a message for the query with this ID and question.
///
/// # Errors
/// Reason why it has none.
pub fn response(id: u16, question: &DnsQuestion, bytes: &[u8]) -> Result<DnsRecords, ResponseError> {
    let is_ours = header_buffer::id(bytes) == Ok(id)
        && header_buffer::has_flags(bytes, PacketFlag::RESPONSE) == Ok(true)
        && header_buffer::opcode(bytes) == Ok(OPCODE::StandardQuery);
    if !is_ours {
        return Err(ResponseError::Foreign);
    }
    let is_truncated = header_buffer::has_flags(bytes, PacketFlag::TRUNCATION) == Ok(true);
    let packet = match Packet::parse(bytes) {
        Ok(packet) => packet,
        // Some servers cut within a record.
        Err(_) if is_truncated => return Err(ResponseError::Truncated),
        Err(error) => return Err(ResponseError::Malformed(error.to_string())),
    };
    // That of the header: the library looks for its extension, which version 0 of EDNS does not need, in other bits.
    let code = bytes.get(3).map_or(0, |flags| flags & 0x0f);
    match packet.questions.as_slice() {
        [echoed] if is_question(echoed, question) => {}
        // A server that has not understood the query does not repeat it.
        [] if matches!(code, FORMAT_ERROR | NOT_IMPLEMENTED) => {}
        _ => return Err(ResponseError::Foreign),
    }
    if is_truncated {
        return Err(ResponseError::Truncated);
    }
    match (code, code_name(code)) {
        (NAME_ERROR, _) => Err(ResponseError::NoName),
        (_, Some(name)) => Err(ResponseError::ServerCode(name)),
        _ => records(question, &packet).ok_or(ResponseError::NoRecord),
    }
}

/// Name of a code of a response without records; None for the two that say what there is.
fn code_name(code: u8) -> Option<&'static str> {
    match code {
        NO_ERROR | NAME_ERROR => None,
        FORMAT_ERROR => Some("FORMERR"),
        SERVER_FAILURE => Some("SERVFAIL"),
        NOT_IMPLEMENTED => Some("NOTIMP"),
        POLICY_ERROR => Some("REFUSED"),
        _ => Some("an unusual response code"),
    }
}

fn is_question(echoed: &Question<'_>, question: &DnsQuestion) -> bool {
    echoed.qtype == question.kind.code().into()
        && echoed.qclass == CLASS::IN.into()
        && DnsName::of_message(&echoed.qname).as_ref() == Some(&question.name)
}

/// The records of the question's name, or of the name that its aliases lead to.
fn records(question: &DnsQuestion, packet: &Packet<'_>) -> Option<DnsRecords> {
    let mut found = DnsRecords { ttl_s: u32::MAX, ..DnsRecords::default() };
    let mut name = question.name.clone();
    for _ in 0..MAX_ALIASES {
        let alias = records_of(&packet.answers, &name).find_map(|record| match &record.rdata {
            RData::CNAME(alias) => Some((DnsName::of_message(&alias.0)?, record.ttl)),
            _ => None,
        });
        let Some((next, ttl)) = alias else { break };
        name = next;
        found.add_ttl(ttl);
    }
    for record in records_of(&packet.answers, &name) {
        match (&record.rdata, question.kind) {
            (RData::SRV(service), RecordKind::Srv) => {
                let is_root = service.target.get_labels().is_empty();
                let target = DnsName::of_message(&service.target);
                // A target that cannot be asked for is none.
                if is_root || target.is_some() {
                    let (priority, weight, port) = (service.priority, service.weight, service.port);
                    found.services.push(SrvRecord { priority, weight, port, target });
                    found.add_ttl(record.ttl);
                }
            }
            (data, kind) => {
                if let Some(address) = address(data).filter(|address| kind == RecordKind::of(*address)) {
                    found.addresses.push(address);
                    found.add_ttl(record.ttl);
                }
            }
        }
    }
    let targets: Vec<DnsName> = found.services.iter().filter_map(|service| service.target.clone()).collect();
    for record in &packet.additional_records {
        let Some(target) = DnsName::of_message(&record.name).filter(|name| targets.contains(name)) else { continue };
        if let Some(address) = address(&record.rdata).filter(|_| record.class == CLASS::IN) {
            found.target_addresses.push(TargetAddress { target, address });
            found.add_ttl(record.ttl);
        }
    }
    (!found.addresses.is_empty() || !found.services.is_empty()).then_some(found)
}

fn records_of<'a, 'b>(
    records: &'a [ResourceRecord<'b>],
    name: &DnsName,
) -> impl Iterator<Item = &'a ResourceRecord<'b>> {
    let is_of = move |record: &&ResourceRecord<'_>| {
        record.class == CLASS::IN && DnsName::of_message(&record.name).as_ref() == Some(name)
    };
    records.iter().filter(is_of)
}

fn address(data: &RData<'_>) -> Option<IpAddr> {
    match data {
        RData::A(it) => Some(Ipv4Addr::from(it.address).into()),
        RData::AAAA(it) => Some(Ipv6Addr::from(it.address).into()),
        _ => None,
    }
}

impl RecordKind {
    /// Type of the record that has an address.
    pub(super) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::A } else { Self::Aaaa }
    }
}

impl DnsRecords {
    fn add_ttl(&mut self, ttl_s: u32) {
        let ttl_s = if ttl_s > MAX_TTL_S { 0 } else { ttl_s };
        self.ttl_s = self.ttl_s.min(ttl_s);
    }
}
