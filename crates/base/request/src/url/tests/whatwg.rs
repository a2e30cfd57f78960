//! URLs against browsers: the table of web-platform-tests, and another implementation of the same standard.

use ::url::Url;
use proptest::prelude::*;
use proptest::sample::select;

use super::super::HttpUrl;

/// What differs from browsers on purpose; the module's head has the reasons.
const DIFFERENCES: [&str; 5] = [
    "an error: what browsers leave out or guess around the host (control characters, backslashes, slashes, escapes)",
    "an error: port 0, and characters of hosts that no resolver has",
    "as it is: addresses in old notations, which the resolver reads, and invalid Punycode",
    "as it is: dot segments with escapes, and backslashes in paths",
    "encoded: control characters in paths, which browsers leave out",
];

fn unescaped(text: &str) -> String {
    let mut parts = text.split("\\u{");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_once('}').expect("an escape");
        out.push(u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).expect("a character"));
        out.push_str(rest);
    }
    out
}

fn shown(text: &str) -> String {
    HttpUrl::parse(text.as_bytes()).map_or_else(|_| "-".to_owned(), |url| url.to_string())
}

#[test]
fn urls_are_those_of_browsers_but_for_listed_differences() {
    let lines = include_str!("whatwg.txt").lines().filter(|line| !line.starts_with('#'));
    let mut compared = 0;
    for line in lines {
        let mut fields = line.split('\t').map(unescaped);
        let (text, browser) = (fields.next().expect("a text"), fields.next().expect("a URL"));
        let expected = fields.next().unwrap_or(browser);
        assert_eq!(shown(&text), expected, "{text:?}, {DIFFERENCES:?}");
        compared += 1;
    }
    assert!(compared > 350, "{compared} lines");
}

proptest! {
    #[test]
    fn path_and_query_are_those_of_another_parser(
        path in r#"(/([ -~&&[^\\/?#^]]|é|€|\u{3000}|%[0-9A-Fa-f]{2}){0,6}){0,3}"#,
        query in r#"(\?([ -~&&[^#]]|é|€|%[0-9A-Fa-f]{2}){0,10})?"#,
    ) {
        // Spaces at the end do not count for browsers; dot segments with escapes are sent as they are.
        prop_assume!(!path.to_ascii_lowercase().contains("%2e"));
        let text = format!("http://h{path}{query}x");
        let browser = Url::parse(&text).expect("a URL");
        prop_assert_eq!(shown(&text), browser.as_str());
    }

    #[test]
    fn international_hosts_are_those_of_another_parser(
        host in r"[a-z0-9äßıﬀÅ漢字한☃ａ。\u{200d}\u{ad}-]{1,10}\.example",
    ) {
        prop_assume!(!host.is_ascii());
        let text = format!("http://{host}/");
        match Url::parse(&text) {
            Ok(browser) => prop_assert_eq!(shown(&text), browser.as_str()),
            Err(_) => prop_assert_eq!(shown(&text), "-"),
        }
    }

    #[test]
    fn redirects_lead_where_another_parser_leads(
        pieces in prop::collection::vec(select(vec![
            "/", "//", "?", "#", ":", "@", "a", "..", ".", "http:", "https://", "h", "é", " x", "<", "%41", ":80", "[::1]",
        ]), 0..7)
    ) {
        // Spaces around it do not count in a header.
        let text = format!("{}e", pieces.concat().trim_start());
        let base = Url::parse("http://base:81/x/y?z").expect("a URL");
        let own = HttpUrl::parse(b"http://base:81/x/y?z").expect("a URL");
        if let Ok(found) = own.resolve(text.as_bytes()) {
            let mut browser = base.join(&text).expect("what weir takes, browsers take");
            browser.set_fragment(None);
            // Without a password there is nothing to show.
            let _ = browser.set_username("").and_then(|()| browser.set_password(None));
            prop_assert_eq!(found.to_string(), browser.as_str(), "{}", text);
        }
    }
}
