//! Seeds of the fuzz target `dns`: each leads where its name says, so that the search begins beyond the header.
#![allow(clippy::unwrap_used, reason = "a failed precondition fails the test")]

use std::fs;
use std::path::Path;

use weir_gate::dns::DnsName;
use weir_gate::dns::message::{DnsQuestion, DnsRecords, RecordKind, ResponseError, response};

/// What a seed has for a question.
fn seed(file: &str, name: &str, kind: RecordKind) -> Result<DnsRecords, ResponseError> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/seeds/dns").join(file);
    response(7, &DnsQuestion { name: DnsName::new(name).unwrap(), kind }, &fs::read(path).unwrap())
}

#[test]
fn seeds_are_responses() {
    assert_eq!(seed("address", "a.test", RecordKind::A).unwrap().ttl_s, 30);
    let aliased = seed("alias", "a.test", RecordKind::Aaaa).unwrap();
    assert_eq!((aliased.addresses.len(), aliased.ttl_s), (1, 9));
    let service = seed("service", "_http._tcp.a.test", RecordKind::Srv).unwrap();
    assert_eq!((service.services.len(), service.target_addresses.len(), service.ttl_s), (2, 2, 5));
    assert_eq!(seed("no_name", "b.test", RecordKind::A), Err(ResponseError::NoName));
    assert_eq!(seed("truncated", "b.test", RecordKind::A), Err(ResponseError::Truncated));
}
