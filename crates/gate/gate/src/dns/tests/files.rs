//! Names, and the files of the system.

use std::net::IpAddr;

use proptest::prelude::*;

use super::super::hosts_file;
use super::super::name::DnsName;
use super::super::servers::DnsServers;
use super::name;
use weir_base::Nanos;

#[test]
fn a_name_is_in_lower_case_without_its_last_dot() {
    assert_eq!(name("Api.Example.").as_str(), "api.example");
    let long = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61)].join(".");
    assert_eq!(name(&long).as_str().len(), 253);
    let too_long = format!("{long}e");
    for invalid in ["", ".", "a..b", ".a", "a..", "a b", "ä", "a\\.b", &"a".repeat(64), &too_long] {
        assert_eq!(DnsName::new(invalid), None, "{invalid:?}");
    }
}

#[test]
fn servers_are_those_of_resolv_conf() {
    let servers = DnsServers::parse(
        "# a comment\n; another\ndomain first.example\nnameserver 10.0.0.2\nnameserver\tfe80::1%3 \n nameserver 1.1.1.1\n\
         nameserver name.example\nsearch a.example b.example.\noptions ndots:3 timeout:7 attempts:4 rotate edns0\n\
         nameserver fd00::2\nnameserver 10.0.0.9\n",
    );
    let addresses: Vec<String> = servers.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["10.0.0.2:53", "[fe80::1%3]:53", "1.1.1.1:53"]);
    assert_eq!(servers.search, ["a.example", "b.example."]);
    assert_eq!((servers.ndots, servers.timeout, servers.attempts), (3, Nanos::from_secs(7), 4));
    let servers = DnsServers::parse("options ndots:99 timeout:0 attempts:9 timeout:x\n");
    assert_eq!((servers.ndots, servers.timeout, servers.attempts), (15, Nanos::from_secs(1), 5));
    assert_eq!(servers.addresses[0].to_string(), "127.0.0.1:53");
    let servers = DnsServers::parse("");
    assert_eq!((servers.ndots, servers.timeout, servers.attempts), (1, Nanos::from_secs(2), 2));
}

#[test]
fn relative_names_are_searched() {
    let candidates = |text: &str, file: &str| -> Vec<String> {
        DnsServers::parse(file).candidates(text).iter().map(ToString::to_string).collect()
    };
    let file = "search ns.svc.cluster.local svc.cluster.local\noptions ndots:2\n";
    assert_eq!(candidates("api", file), ["api.ns.svc.cluster.local", "api.svc.cluster.local", "api"]);
    assert_eq!(candidates("api.other", file)[0], "api.other.ns.svc.cluster.local");
    assert_eq!(candidates("api.example.com", file)[0], "api.example.com");
    assert_eq!(candidates("api.", file), ["api"]);
    assert_eq!(candidates("_http._tcp.api", file)[0], "_http._tcp.api");
    assert_eq!(candidates("api", "search . a.example\n"), ["api", "api.a.example"]);
    assert_eq!(candidates("api", ""), ["api"]);
}

#[test]
fn names_of_the_hosts_file_have_its_addresses() {
    let file = "127.0.0.1 localhost\n::1\tlocalhost ip6-localhost # loop\n10.0.0.1 api.example Api # other\n\
                10.0.0.2 api\n10.0.0.1 api\n# 10.0.0.3 api\nbad api\n";
    let found =
        |text: &str| -> Vec<String> { hosts_file::addresses(file, text).iter().map(ToString::to_string).collect() };
    assert_eq!(found("api"), ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(found("API.example."), ["10.0.0.1"]);
    assert_eq!(found("localhost"), ["127.0.0.1", "::1"]);
    assert!(found("other").is_empty() && found("10.0.0.1").is_empty());
    let own: Vec<IpAddr> = hosts_file::addresses("", "db.localhost");
    assert_eq!(own.len(), 2);
}

proptest! {
    #[test]
    fn any_text_of_a_file_is_read(text in any::<String>(), asked in "[a-z.]{1,20}") {
        let servers = DnsServers::parse(&text);
        prop_assert!(!servers.addresses.is_empty() && servers.attempts > 0 && servers.timeout > Nanos::ZERO);
        servers.candidates(&asked);
        hosts_file::addresses(&text, &asked);
    }
}
