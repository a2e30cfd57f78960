//! Responses of DNS: nothing panics; a message has records for one question at most, with the records of that question
//! and of the targets that they name.

use weir_gate::dns::DnsName;
use weir_gate::dns::message::{DnsQuestion, RecordKind, ResponseError, query, response};

crate::target!(|bytes: &[u8]| {
    let id = bytes.get(..2).map_or(0, |id| u16::from_be_bytes([id[0], id[1]]));
    let mut questions = 0;
    for text in ["a.test", "b.test", "_http._tcp.a.test"] {
        let name = DnsName::new(text).expect("a valid name");
        for kind in [RecordKind::A, RecordKind::Aaaa, RecordKind::Srv] {
            let question = DnsQuestion { name: name.clone(), kind };
            assert_eq!(response(id ^ 1, &question, bytes), Err(ResponseError::Foreign), "{bytes:?}");
            let Ok(answer) = response(id, &question, bytes) else { continue };
            questions += 1;
            assert!(answer.addresses.iter().all(|it| it.is_ipv4() == (kind == RecordKind::A)), "{bytes:?}");
            assert_eq!(answer.services.is_empty(), kind != RecordKind::Srv, "{bytes:?}");
            let names: Vec<_> = answer.services.iter().filter_map(|service| service.target.clone()).collect();
            assert!(answer.target_addresses.iter().all(|along| names.contains(&along.target)), "{bytes:?}");
        }
    }
    assert!(questions <= 1, "{bytes:?}");
    // A name as text is asked for as it is.
    if let Some(name) = std::str::from_utf8(bytes).ok().and_then(DnsName::new) {
        let question = DnsQuestion { name: name.clone(), kind: RecordKind::A };
        let asked = query(id, &question, true).expect("a valid name");
        let mut expected = Vec::new();
        for label in name.as_str().split('.') {
            expected.push(label.len() as u8);
            expected.extend(label.as_bytes());
        }
        assert_eq!(&asked[12..12 + expected.len()], expected, "{name}");
    }
});
