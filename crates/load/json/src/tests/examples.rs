//! Examples of RFC 9535, and what services send.

use super::super::{JsonPath, JsonTextError};

const STORE: &str = r#"{ "store": { "book": [
 { "category": "reference", "author": "Nigel Rees", "title": "Sayings of the Century", "price": 8.95 },
 { "category": "fiction", "author": "Evelyn Waugh", "title": "Sword of Honour", "price": 12.99 },
 { "category": "fiction", "author": "Herman Melville", "title": "Moby Dick", "isbn": "0-553-21311-3", "price": 8.99 },
 { "category": "fiction", "author": "J. R. R. Tolkien", "title": "The Lord of the Rings", "isbn": "0-395-19395-8",
   "price": 22.99 } ],
 "bicycle": { "color": "red", "price": 399 } } }"#;

fn found(path: &str, body: &str) -> Vec<String> {
    let path = JsonPath::parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut matches = Vec::new();
    path.find(body.as_bytes(), &mut matches).expect("JSON");
    matches.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

#[test]
fn the_bookstore_of_the_rfc() {
    let cases: [(&str, &[&str]); 10] = [
        (
            "$.store.book[*].author",
            &["\"Nigel Rees\"", "\"Evelyn Waugh\"", "\"Herman Melville\"", "\"J. R. R. Tolkien\""],
        ),
        ("$..author", &["\"Nigel Rees\"", "\"Evelyn Waugh\"", "\"Herman Melville\"", "\"J. R. R. Tolkien\""]),
        ("$.store..price", &["8.95", "12.99", "8.99", "22.99", "399"]),
        ("$..book[2].author", &["\"Herman Melville\""]),
        ("$..book[2].publisher", &[]),
        ("$..book[-1].title", &["\"The Lord of the Rings\""]),
        ("$..book[0,1].price", &["8.95", "12.99"]),
        ("$..book[:2].price", &["8.95", "12.99"]),
        ("$..book[?@.isbn].price", &["8.99", "22.99"]),
        ("$..book[?@.price<10].price", &["8.95", "8.99"]),
    ];
    for (path, expected) in cases {
        assert_eq!(found(path, STORE), expected, "{path}");
    }
    assert_eq!(found("$..*", STORE).len(), 27);
}

#[test]
fn selectors() {
    let cases: [(&str, &str, &[&str]); 17] = [
        ("$.o['j j']", r#"{"o":{"j j":{"k.k":3}}}"#, &[r#"{"k.k":3}"#]),
        ("$.o['j j']['k.k']", r#"{"o":{"j j":{"k.k":3}}}"#, &["3"]),
        (r#"$["'"]["@"]"#, r#"{"'":{"@":2}}"#, &["2"]),
        ("$[1]", r#"["a","b"]"#, &["\"b\""]),
        ("$[-2]", r#"["a","b"]"#, &["\"a\""]),
        ("$[-3]", r#"["a","b"]"#, &[]),
        ("$[1:3]", r#"["a","b","c","d","e","f","g"]"#, &["\"b\"", "\"c\""]),
        ("$[5:]", r#"["a","b","c","d","e","f","g"]"#, &["\"f\"", "\"g\""]),
        ("$[1:5:2]", r#"["a","b","c","d","e","f","g"]"#, &["\"b\"", "\"d\""]),
        ("$[5:1:-2]", r#"["a","b","c","d","e","f","g"]"#, &["\"f\"", "\"d\""]),
        ("$[::-1]", r#"[1, 2,3 ]"#, &["3", "2", "1"]),
        ("$[::0]", r#"[1,2]"#, &[]),
        ("$[0:-1]", "[]", &[]),
        ("$..[0]", r#"{"a":[[1],2]}"#, &["[1]", "1"]),
        ("$.a", r#"{"b":{"a":1},"\u0061":2}"#, &["2"]),
        (r"$['\u00e9']", r#"{"é":1}"#, &["1"]),
        ("$", " [ ] ", &["[ ]"]),
    ];
    for (path, body, expected) in cases {
        assert_eq!(found(path, body), expected, "{path}");
    }
}

#[test]
fn filters_of_the_rfc() {
    let body = r#"{"a":[3,5,1,2,4,6,{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}],"o":{"p":1,"q":2,"r":3,"s":5,"t":{"u":6}},
        "e":"f"}"#;
    let cases: [(&str, &[&str]); 17] = [
        ("$.a[?@.b == 'kilo']", &[r#"{"b":"kilo"}"#]),
        ("$.a[?(@.b == 'kilo')]", &[r#"{"b":"kilo"}"#]),
        ("$.a[?@>3.5]", &["5", "4", "6"]),
        ("$.a[?@.b]", &[r#"{"b":"j"}"#, r#"{"b":"k"}"#, r#"{"b":{}}"#, r#"{"b":"kilo"}"#]),
        ("$[?@.*].q", &["2"]),
        ("$[?@[?@.b]][0]", &["3"]),
        ("$.o[?@<3, ?@<3]", &["1", "2", "1", "2"]),
        (r#"$.a[?@<2 || @.b == "k"]"#, &["1", r#"{"b":"k"}"#]),
        (r#"$.a[?match(@.b, "[jk]")]"#, &[r#"{"b":"j"}"#, r#"{"b":"k"}"#]),
        (r#"$.a[?search(@.b, "[jk]")]"#, &[r#"{"b":"j"}"#, r#"{"b":"k"}"#, r#"{"b":"kilo"}"#]),
        ("$.o[?@>1 && @<4]", &["2", "3"]),
        ("$.o[?@.u || @.x]", &[r#"{"u":6}"#]),
        ("$.a[?@.b == $.x]", &["3", "5", "1", "2", "4", "6"]),
        ("$.a[?!@.b && @ <= 2]", &["1", "2"]),
        ("$.a[?length(@.b) == 4]", &[r#"{"b":"kilo"}"#]),
        ("$.o[?count(@.*) == 1]", &[r#"{"u":6}"#]),
        ("$.a[?value(@..b) == 'j']", &[r#"{"b":"j"}"#]),
    ];
    for (path, expected) in cases {
        assert_eq!(found(path, body), expected, "{path}");
    }
}

#[test]
fn mistakes_have_their_place() {
    let cases = [
        ("", 0),
        ("items", 0),
        ("$.", 2),
        ("$[", 2),
        ("$[01]", 2),
        ("$[-0]", 2),
        ("$.a b", 3),
        ("$['a", 4),
        ("$[?@.a == @.*]", 10),
        ("$[?@.a ==]", 9),
        ("$[?1]", 4),
        ("$[?length(@.*) == 1]", 10),
        ("$[?foo(@)]", 3),
        ("$[9007199254740992]", 2),
        (r"$['\x']", 5),
        ("$..", 3),
    ];
    for (path, offset) in cases {
        let error = JsonPath::parse(path).expect_err(path);
        assert_eq!(error.offset, offset, "{path}: {error}");
    }
}

#[test]
fn what_is_no_json_is_an_error() {
    let path = JsonPath::parse("$.a.b").expect("a path");
    let deep = format!("{{\"a\":{}", "[".repeat(10_000));
    for (body, error) in [
        ("", JsonTextError::Syntax(0)),
        ("<html>", JsonTextError::Syntax(0)),
        ("{\"a\"", JsonTextError::Syntax(4)),
        ("{a:1}", JsonTextError::Syntax(1)),
        ("{\"a\":tru}", JsonTextError::Syntax(5)),
        (&deep, JsonTextError::Depth),
    ] {
        assert_eq!(path.find(body.as_bytes(), &mut Vec::new()), Err(error), "{body:.20}");
        assert_eq!(path.find_one(body.as_bytes()), Err(error), "{body:.20}");
    }
}

#[test]
fn a_value_of_a_body_that_is_cut_off_is_not_found() {
    let body = br#" {"x": [1, {"b": 2}], "a": [{"\u0062": 1}, {"b": "found", "b": 3}], "c": {} } "#;
    for (path, found) in [
        ("$.a[1].b", Some(&b"\"found\""[..])),
        ("$.a[0].b", Some(b"1")),
        ("$.x[-1].b", Some(b"2")),
        ("$.x.b", None),
        ("$.c.b", None),
        ("$.x[-3]", None),
    ] {
        let path = JsonPath::parse(path).expect("a path");
        assert_eq!(path.find_one(body), Ok(found), "{path:?}");
        for end in 1..body.len() - 1 {
            let cut = &body[..end];
            assert!(path.find_one(cut).is_err(), "{path:?} in {}", String::from_utf8_lossy(cut));
            assert!(path.find(cut, &mut Vec::new()).is_err(), "{path:?} in {}", String::from_utf8_lossy(cut));
        }
        let trailing = [&body[..], b"}"].concat();
        assert!(path.find_one(&trailing).is_err() && path.find(&trailing, &mut Vec::new()).is_err(), "{path:?}");
    }
}

#[test]
fn singular_paths_are_those_of_one_name_or_index_each() {
    for (path, is_singular) in
        [("$", true), ("$.a[0]['b']", true), ("$.a[*]", false), ("$..a", false), ("$[0,1]", false)]
    {
        assert_eq!(JsonPath::parse(path).expect("a path").is_singular(), is_singular, "{path}");
    }
}
