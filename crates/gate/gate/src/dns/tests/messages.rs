//! Queries and responses.

use std::net::IpAddr;

use proptest::prelude::*;
use simple_dns::rdata::{A, AAAA, CNAME, OPT, RData, SRV};
use simple_dns::{CLASS, Name, Packet, PacketFlag, Question, RCODE, ResourceRecord};

use super::super::message::{
    DnsQuestion, DnsRecords, RecordKind, ResponseError, SrvRecord, TargetAddress, query, response,
};
use super::name;

fn question(text: &str, kind: RecordKind) -> DnsQuestion {
    DnsQuestion { name: name(text), kind }
}

fn record<'a>(owner: &'a str, ttl: u32, data: RData<'a>) -> ResourceRecord<'a> {
    ResourceRecord::new(Name::new_unchecked(owner), CLASS::IN, ttl, data)
}

fn v4(last: u8) -> RData<'static> {
    RData::A(A { address: 0x0a00_0000 + u32::from(last) })
}

fn v6(last: u8) -> RData<'static> {
    RData::AAAA(AAAA { address: u128::from(last) })
}

fn alias(to: &str) -> RData<'_> {
    RData::CNAME(CNAME(Name::new_unchecked(to)))
}

fn service(priority: u16, weight: u16, port: u16, target: &str) -> RData<'_> {
    RData::SRV(SRV { priority, weight, port, target: Name::new_unchecked(target) })
}

/// A response to the query with ID 7, changed by `change`.
fn reply(asked: &DnsQuestion, change: impl FnOnce(&mut Packet<'_>)) -> Vec<u8> {
    let sent = query(7, asked, true).unwrap();
    let mut packet = Packet::parse(&sent).unwrap().into_reply();
    change(&mut packet);
    packet.build_bytes_vec_compressed().unwrap()
}

fn addresses(list: &[&str], ttl_s: u32) -> Result<DnsRecords, ResponseError> {
    let addresses = list.iter().map(|text| text.parse().unwrap()).collect();
    Ok(DnsRecords { addresses, ttl_s, ..DnsRecords::default() })
}

#[test]
fn a_query_is_as_the_standards_have_it() {
    let with = query(0x1234, &question("_http._tcp.a.test", RecordKind::Srv), true).unwrap();
    let expected = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\x01\x05_http\x04_tcp\x01a\x04test\0\0\x21\0\x01\
                     \0\0\x29\x04\xd0\0\0\0\0\0\0";
    assert_eq!(with, expected);
    let without = query(0x1234, &question("a.test", RecordKind::Aaaa), false).unwrap();
    assert_eq!(without, b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\0\x01a\x04test\0\0\x1c\0\x01");
}

#[test]
fn records_of_the_name_and_its_aliases_are_the_answer() {
    let asked = question("a.test", RecordKind::A);
    let plain = reply(&asked, |packet| {
        packet.answers = vec![record("A.Test", 60, v4(1)), record("a.test", 30, v4(2)), record("a.test", 5, v6(3))];
        packet.answers.push(record("other.test", 1, v4(4)));
    });
    assert_eq!(response(7, &asked, &plain), addresses(&["10.0.0.1", "10.0.0.2"], 30));
    let aliased = reply(&asked, |packet| {
        packet.answers = vec![
            record("c.test", 60, v4(1)),
            record("a.test", 20, alias("B.test")),
            record("b.test", 90, alias("c.test")),
            record("a.test", 1, v4(9)),
        ];
    });
    assert_eq!(response(7, &asked, &aliased), addresses(&["10.0.0.1"], 20));
    let circle = reply(&asked, |packet| {
        packet.answers = vec![record("a.test", 20, alias("b.test")), record("b.test", 20, alias("a.test"))];
    });
    assert_eq!(response(7, &asked, &circle), Err(ResponseError::NoRecord));
    let negative = reply(&asked, |packet| packet.answers = vec![record("a.test", 0x8000_0000, v4(1))]);
    assert_eq!(response(7, &asked, &negative), addresses(&["10.0.0.1"], 0), "RFC 2181, section 8");
}

#[test]
fn services_have_the_addresses_that_came_along() {
    let asked = question("_http._tcp.a.test", RecordKind::Srv);
    let bytes = reply(&asked, |packet| {
        packet.answers = vec![
            record("_http._tcp.a.test", 60, service(1, 2, 3, "One.a.test")),
            record("_http._tcp.a.test", 60, service(4, 5, 6, "")),
        ];
        packet.additional_records =
            vec![record("one.A.test", 9, v4(1)), record("one.a.test", 50, v6(1)), record("another.test", 1, v4(2))];
    });
    let along = |address: &str| TargetAddress { target: name("one.a.test"), address: address.parse().unwrap() };
    let expected = DnsRecords {
        addresses: Vec::new(),
        services: vec![
            SrvRecord { priority: 1, weight: 2, port: 3, target: Some(name("one.a.test")) },
            SrvRecord { priority: 4, weight: 5, port: 6, target: None },
        ],
        target_addresses: vec![along("10.0.0.1"), along("::1")],
        ttl_s: 9,
    };
    assert_eq!(response(7, &asked, &bytes), Ok(expected));
}

#[test]
fn responses_without_an_answer_say_why() {
    let asked = question("a.test", RecordKind::A);
    let answer = |change: fn(&mut Packet<'_>)| response(7, &asked, &reply(&asked, change));
    assert_eq!(answer(|_| {}), Err(ResponseError::NoRecord));
    assert_eq!(answer(|packet| *packet.rcode_mut() = RCODE::NameError), Err(ResponseError::NoName));
    assert_eq!(answer(|packet| *packet.rcode_mut() = RCODE::ServerFailure), Err(ResponseError::ServerCode("SERVFAIL")));
    assert_eq!(answer(|packet| packet.set_flags(PacketFlag::TRUNCATION)), Err(ResponseError::Truncated));
    let silent = answer(|packet| {
        packet.questions.clear();
        *packet.rcode_mut() = RCODE::FormatError;
    });
    assert_eq!(silent, Err(ResponseError::ServerCode("FORMERR")));
    let cut = reply(&asked, |packet| {
        packet.answers = vec![record("a.test", 60, v4(1))];
        packet.set_flags(PacketFlag::TRUNCATION);
    });
    assert_eq!(response(7, &asked, &cut[..cut.len() - 14]), Err(ResponseError::Truncated));
    let whole = reply(&asked, |packet| packet.answers = vec![record("a.test", 60, v4(1))]);
    assert!(matches!(response(7, &asked, &whole[..whole.len() - 14]), Err(ResponseError::Malformed(_))));
}

#[test]
fn what_may_be_forged_is_foreign() {
    let asked = question("a.test", RecordKind::A);
    let good = reply(&asked, |packet| packet.answers = vec![record("a.test", 60, v4(1))]);
    assert!(response(7, &asked, &good).is_ok());
    assert_eq!(response(8, &asked, &good), Err(ResponseError::Foreign));
    for other in [question("b.test", RecordKind::A), question("a.test", RecordKind::Aaaa)] {
        assert_eq!(response(7, &other, &good), Err(ResponseError::Foreign));
    }
    let changes: [fn(&mut Packet<'_>); 4] = [
        |packet| packet.remove_flags(PacketFlag::RESPONSE),
        |packet| packet.questions.clear(),
        |packet| packet.questions.push(packet.questions[0].clone()),
        |packet| {
            packet.questions.clear();
            *packet.rcode_mut() = RCODE::NameError;
        },
    ];
    for change in changes {
        assert_eq!(response(7, &asked, &reply(&asked, change)), Err(ResponseError::Foreign));
    }
    assert_eq!(response(7, &asked, &[]), Err(ResponseError::Foreign));
    let dotted = reply(&asked, |packet| {
        let label = simple_dns::Label::new(&b"a.test"[..]).unwrap();
        packet.questions[0] =
            Question::new(Name::new_with_labels(&[label]), packet.questions[0].qtype, CLASS::IN.into(), false);
    });
    assert_eq!(response(7, &asked, &dotted), Err(ResponseError::Foreign), "a label with a dot is not two labels");
}

/// A valid response with some bytes changed, inserted or cut.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let asked = question("_http._tcp.a.test", RecordKind::Srv);
    let valid = reply(&asked, |packet| {
        packet.answers = vec![
            record("_http._tcp.a.test", 60, alias("_http._tcp.b.test")),
            record("_http._tcp.b.test", 60, service(1, 2, 3, "one.a.test")),
        ];
        packet.additional_records = vec![record("one.a.test", 9, v4(1)), record("one.a.test", 9, v6(1))];
        *packet.opt_mut() = Some(OPT { opt_codes: Vec::new(), udp_packet_size: 1232, version: 0 });
    });
    let changes = proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..4), 0..12);
    changes.prop_map(move |changes| {
        let mut bytes = valid.clone();
        for (index, byte, manner) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = index.index(bytes.len());
            match manner {
                0 | 1 => bytes[at] = byte,
                2 => bytes.insert(at, byte),
                _ => bytes.truncate(at + 1),
            }
        }
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever arrives is read, and is the answer to one question at most.
    #[test]
    fn any_bytes_answer_at_most_one_question(
        bytes in prop_oneof![proptest::collection::vec(any::<u8>(), 0..200), damaged()],
    ) {
        let id = bytes.get(..2).map_or(0, |id| u16::from_be_bytes([id[0], id[1]]));
        let mut questions = 0;
        for asked in ["a.test", "_http._tcp.a.test", "_http._tcp.b.test", "one.a.test"] {
            for kind in [RecordKind::A, RecordKind::Aaaa, RecordKind::Srv] {
                let asked = question(asked, kind);
                prop_assert_eq!(response(id ^ 1, &asked, &bytes), Err(ResponseError::Foreign));
                let Ok(found) = response(id, &asked, &bytes) else { continue };
                questions += 1;
                prop_assert!(found.addresses.iter().all(|it: &IpAddr| it.is_ipv4() == (kind == RecordKind::A)));
                prop_assert!(found.addresses.is_empty() || kind != RecordKind::Srv);
                prop_assert!(found.services.is_empty() || kind == RecordKind::Srv);
                let targets: Vec<_> = found.services.iter().filter_map(|it| it.target.clone()).collect();
                prop_assert!(found.target_addresses.iter().all(|along| targets.contains(&along.target)));
            }
        }
        prop_assert!(questions <= 1);
    }
}
