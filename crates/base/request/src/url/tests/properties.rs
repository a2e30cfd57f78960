//! Properties of URLs, with RFC 3986's algorithms word for word as oracle.

use proptest::prelude::*;
use proptest::sample::select;

use super::super::HttpUrl;
use super::url;

/// Section 5.2.4 as written: an input buffer, an output buffer, five rules.
fn without_dots(path: &str) -> String {
    let (mut input, mut output) = (path.to_owned(), String::new());
    let remove_last = |output: &mut String| {
        let end = output.rfind('/').unwrap_or(0);
        output.truncate(end);
    };
    while !input.is_empty() {
        if input.starts_with("../") {
            input.drain(..3);
        } else if input.starts_with("./") || input.starts_with("/./") {
            input.drain(..2);
        } else if input == "/." {
            input = "/".into();
        } else if input.starts_with("/../") {
            input.drain(..3);
            remove_last(&mut output);
        } else if input == "/.." {
            input = "/".into();
            remove_last(&mut output);
        } else if input == "." || input == ".." {
            input.clear();
        } else {
            let end = input[1..].find('/').map_or(input.len(), |at| at + 1);
            output.extend(input.drain(..end));
        }
    }
    output
}

/// Section 5.2.2 for references without a host: path and query.
fn resolved(base_path: &str, base_query: Option<&str>, reference: &str) -> String {
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (reference, None),
    };
    let (path, query) = if path.is_empty() {
        (base_path.to_owned(), query.or(base_query))
    } else if path.starts_with('/') {
        (without_dots(path), query)
    } else {
        let end = base_path.rfind('/').map_or(0, |slash| slash + 1);
        (without_dots(&format!("{}{path}", &base_path[..end])), query)
    };
    query.map_or(path.clone(), |query| format!("{path}?{query}"))
}

fn segments() -> impl Strategy<Value = String> {
    let pieces = vec!["/", "/", "/", ".", "..", "a", "b%2e", "/..", "/./", "..."];
    prop::collection::vec(select(pieces), 0..10).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn references_resolve_as_the_rfc_says(
        base in segments(),
        base_query in prop::option::of("[a-c/.]{0,4}"),
        path in segments(),
        query in prop::option::of("[a-c/.?]{0,4}"),
    ) {
        prop_assume!(!path.starts_with("//"));
        let with = |path: String, query: Option<&String>| query.map_or(path.clone(), |query| format!("{path}?{query}"));
        let base = url(&format!("http://h:81{}", with(format!("/{base}"), base_query.as_ref())));
        let reference = with(path, query.as_ref());
        let found = base.resolve(reference.as_bytes()).expect("a reference");
        let expected = resolved(base.path(), base.query(), &reference);
        prop_assert_eq!(std::str::from_utf8(found.target()).expect("ASCII"), expected);
        prop_assert!(found.credential_origin().shares_credentials_with(&base.credential_origin()));
    }

    #[test]
    fn a_url_is_printed_and_parsed_again(
        text in r"(http|HTTPS)://([a-z:%]{0,4}@)?([a-zA-Z0-9.-]{1,8}|\[::[0-9a-f]{1,4}\])(:[0-9]{0,5})?(/|\?|\PC){0,12}",
    ) {
        if let Ok(parsed) = HttpUrl::parse(text.as_bytes()) {
            let again = url(&parsed.to_string());
            prop_assert_eq!(again.to_string(), parsed.to_string());
            prop_assert_eq!((again.target(), again.host()), (parsed.target(), parsed.host()));
            prop_assert!(again.credential_origin().shares_credentials_with(&parsed.credential_origin()));
            prop_assert_eq!(parsed.resolve(b"").expect("the same"), parsed);
        }
    }

    #[test]
    fn any_bytes_give_a_sendable_url_or_one_line(
        prefix in select(vec!["", "http://", "http://h", "//", "/", "http://h:"]),
        bytes in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let text = [prefix.as_bytes(), &bytes].concat();
        for result in [HttpUrl::parse(&text), url("http://base/x/y?z").resolve(&text)] {
            match result {
                Ok(parsed) => {
                    prop_assert!(parsed.target().starts_with(b"/"));
                    prop_assert!(parsed.target().iter().all(u8::is_ascii_graphic));
                    prop_assert!(parsed.host().bytes().all(|b| b.is_ascii_graphic() && !b.is_ascii_uppercase()));
                    prop_assert!(parsed.port() > 0);
                }
                Err(error) => prop_assert!(!error.to_string().contains(char::is_control), "{}", error),
            }
        }
    }
}
