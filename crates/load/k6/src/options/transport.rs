//! Options of the way to hosts: lookups of names, and versions and cipher suites of TLS.

use std::time::Duration;

use serde_json::Value;
use weir_load::address_rules::{AddressPolicy, AddressRules, AddressSelection};
use weir_net::tls::{TlsOffer, TlsVersion};

use super::duration;
use super::reader::OptionReader;

/// Versions of TLS as the constants of `k6/http` have them, the oldest first, and those that weir has.
const VERSIONS: [(&str, Option<TlsVersion>); 5] = [
    ("ssl3.0", None),
    ("tls1.0", None),
    ("tls1.1", None),
    ("tls1.2", Some(TlsVersion::Tls12)),
    ("tls1.3", Some(TlsVersion::Tls13)),
];

/// Time for which an address holds where `dns` has none, as in k6.
const DEFAULT_TTL: Duration = Duration::from_secs(300);

/// What `tlsVersion` and `tlsCipherSuites` say.
pub(super) fn read_tls(reader: &mut OptionReader) -> Result<TlsOffer, String> {
    let only = match reader.take("tlsVersion") {
        Some(version) => read_versions(&version)?,
        None => None,
    };
    let offer = TlsOffer { only, suites: reader.list("tlsCipherSuites")?.unwrap_or_default() };
    offer.check().map_err(|why| format!("options.tlsCipherSuites: {why}"))?;
    Ok(offer)
}

/// The only version within a range, if there is only one.
fn read_versions(value: &Value) -> Result<Option<TlsVersion>, String> {
    let (min, max) = match value {
        Value::String(text) => (place_of("tlsVersion", text)?, place_of("tlsVersion", text)?),
        Value::Object(_) => {
            let mut range = OptionReader::new(value, "options.tlsVersion")?;
            let (min, max) = (range.text("min")?, range.text("max")?);
            range.finish()?;
            let min = min.map_or(Ok(0), |text| place_of("tlsVersion.min", &text))?;
            (min, max.map_or(Ok(VERSIONS.len() - 1), |text| place_of("tlsVersion.max", &text))?)
        }
        _ => return Err("options.tlsVersion is neither a text nor { min, max }".to_owned()),
    };
    let within = VERSIONS.get(min..=max).unwrap_or_default();
    let mut versions = within.iter().filter_map(|(_, version)| *version);
    let (name, _) = VERSIONS[max];
    let first = versions.next().ok_or_else(|| {
        if min > max {
            return format!("options.tlsVersion: its min is above its max, '{name}'");
        }
        format!("options.tlsVersion: '{name}' is not supported; weir has 'tls1.2' and 'tls1.3'")
    })?;
    Ok(if versions.next().is_none() { Some(first) } else { None })
}

fn place_of(name: &str, text: &str) -> Result<usize, String> {
    let known = VERSIONS.iter().position(|(known, _)| *known == text);
    known.ok_or_else(|| format!("options.{name}: no version '{text}'; write http.TLS_1_2 or http.TLS_1_3"))
}

/// What `dns` says; `None` without it.
pub(super) fn read_dns(reader: &mut OptionReader) -> Result<Option<AddressRules>, String> {
    let Some(value) = reader.take("dns") else { return Ok(None) };
    let mut dns = OptionReader::new(&value, "options.dns")?;
    let ttl = match dns.take("ttl") {
        None => Some(DEFAULT_TTL),
        Some(Value::String(text)) if text == "inf" => None,
        Some(value) => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let read = duration::parse(&text).map(|ttl| Duration::from_nanos(ttl.0));
            let why = || format!("invalid options.dns.ttl '{text}'; write e.g. '5m', '0' or 'inf'");
            Some(read.ok_or_else(why)?)
        }
    };
    let select = match dns.text("select")?.as_deref() {
        Some("first") => AddressSelection::First,
        None | Some("random") => AddressSelection::Random,
        Some("roundRobin") => AddressSelection::RoundRobin,
        Some(other) => return Err(invalid("select", other, "'first', 'random' or 'roundRobin'")),
    };
    let policy = match dns.text("policy")?.as_deref() {
        None | Some("preferIPv4") => AddressPolicy::PreferIpv4,
        Some("preferIPv6") => AddressPolicy::PreferIpv6,
        Some("onlyIPv4") => AddressPolicy::OnlyIpv4,
        Some("onlyIPv6") => AddressPolicy::OnlyIpv6,
        Some("any") => AddressPolicy::Any,
        Some(other) => {
            let known = "'preferIPv4', 'preferIPv6', 'onlyIPv4', 'onlyIPv6' or 'any'";
            return Err(invalid("policy", other, known));
        }
    };
    dns.finish()?;
    Ok(Some(AddressRules { ttl, select, policy }))
}

fn invalid(name: &str, text: &str, known: &str) -> String {
    format!("invalid options.dns.{name} '{text}'; write {known}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tls(value: &Value) -> Result<TlsOffer, String> {
        let mut reader = OptionReader::new(value, "options").expect("an object");
        read_tls(&mut reader)
    }

    fn dns(value: &Value) -> Result<Option<AddressRules>, String> {
        let mut reader = OptionReader::new(&json!({ "dns": value }), "options").expect("an object");
        read_dns(&mut reader)
    }

    #[test]
    fn versions_are_those_of_a_range_that_weir_has() {
        let only = |version: Value| tls(&json!({ "tlsVersion": version })).map(|offer| offer.only);
        assert_eq!(only(json!("tls1.2")), Ok(Some(TlsVersion::Tls12)));
        assert_eq!(only(json!("tls1.3")), Ok(Some(TlsVersion::Tls13)));
        assert_eq!(only(json!({ "min": "ssl3.0", "max": "tls1.2" })), Ok(Some(TlsVersion::Tls12)));
        for all in [json!({ "min": "tls1.2", "max": "tls1.3" }), json!({ "min": "tls1.0" }), json!(null)] {
            assert_eq!(only(all), Ok(None));
        }
        let why = |version: Value| only(version).expect_err("invalid");
        assert!(why(json!("tls1.1")).contains("'tls1.1' is not supported; weir has 'tls1.2'"));
        assert!(why(json!("1.3")).contains("no version '1.3'"));
        assert!(why(json!({ "min": "tls1.3", "max": "tls1.2" })).contains("above its max"));
        assert!(why(json!({ "least": "tls1.3" })).contains("'least'"));
        assert!(why(json!(1.3)).contains("neither a text nor"));
    }

    #[test]
    fn cipher_suites_that_are_not_known_are_named() {
        let suites = |names: &[&str]| tls(&json!({ "tlsCipherSuites": names }));
        assert_eq!(suites(&["TLS_AES_128_GCM_SHA256"]).map(|offer| offer.suites.len()), Ok(1));
        let why = suites(&["TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_RC4_128_SHA"]).expect_err("unknown");
        assert!(why.starts_with("options.tlsCipherSuites: no cipher suite 'TLS_RSA_WITH_RC4_128_SHA'; "), "{why}");
    }

    #[test]
    fn lookups_have_the_defaults_of_k6() {
        let lookup = |ttl, select, policy| Ok(Some(AddressRules { ttl, select, policy }));
        let minutes = |minutes: u64| Some(Duration::from_secs(minutes * 60));
        assert_eq!(dns(&json!({})), lookup(minutes(5), AddressSelection::Random, AddressPolicy::PreferIpv4));
        let all = json!({ "ttl": "10m", "select": "roundRobin", "policy": "any" });
        assert_eq!(dns(&all), lookup(minutes(10), AddressSelection::RoundRobin, AddressPolicy::Any));
        let ttl = |ttl: Value| dns(&json!({ "ttl": ttl })).map(|lookup| lookup.and_then(|lookup| lookup.ttl));
        assert_eq!(ttl(json!("inf")), Ok(None));
        assert_eq!((ttl(json!("0")), ttl(json!(0))), (Ok(Some(Duration::ZERO)), Ok(Some(Duration::ZERO))));
        assert_eq!(dns(&json!(null)), Ok(None));
        for (wrong, named) in
            [("ttl", "ttl 'x'"), ("select", "select 'x'"), ("policy", "policy 'x'"), ("cache", "'cache'")]
        {
            let why = dns(&json!({ wrong: "x" })).expect_err(wrong);
            assert!(why.contains(named), "{why}");
        }
    }
}
