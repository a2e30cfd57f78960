//! What is sent is what the other tool sends: parts, comments, environments, styles, references.

use super::{hurl, imported, omissions, value};
use crate::{ImportFile, ImportSettings, import, to_hurl};

/// Requests of a description with these operations and schemas.
fn described(operations: &str, schemas: &str) -> String {
    hurl(&format!(
        "openapi: 3.1.0\nservers: [{{url: 'http://h'}}]\npaths:\n{operations}\ncomponents:\n  schemas:\n{schemas}\n"
    ))
}

#[test]
fn arrays_and_objects_of_parameters_have_their_styles() {
    let shown = described(
        "  /a:\n    get:\n      parameters:\n\
         \x20       - {name: tags, in: query, required: true, schema: {type: array, items: {type: string}}, example: [a, b c]}\n\
         \x20       - {name: ids, in: query, explode: false, example: [1, 2]}\n\
         \x20       - {name: f, in: query, style: deepObject, example: {x: 1, y: z}}\n\
         \x20       - {name: j, in: query, content: {application/json: {example: {a: [1]}}}}\n\
         \x20       - {name: X-Ids, in: header, example: [1, 2]}\n\
         \x20       - {name: c, in: cookie, explode: false, example: [1, 2]}\n",
        "    A: {type: string}",
    );
    let expected = "GET {{base_url}}/a?ids=1,2\nX-Ids: 1,2\n[Query]\ntags: a\ntags: b c\nf\\u{25}5Bx\\u{25}5D: 1\n";
    assert!(shown.starts_with(expected), "{shown}");
    assert!(shown.contains("j: {\"a\": [1]}\n"), "{shown}");
    assert!(shown.contains("[Cookies]\nc: {{cookie_c}}\n"), "{shown}");
}

#[test]
fn servers_of_paths_and_operations_come_before_those_of_the_file() {
    let import = imported(
        "openapi: 3.0.0\nservers: [{url: 'http://h/v1'}]\npaths:\n  /a:\n    servers: [{url: 'http://p'}]\n    get: {}\n\
         \x20   head: {servers: [{url: 'http://o/x'}]}\n  /b:\n    get: {}\n",
    );
    let shown = to_hurl(&import.scenarios[0]);
    assert_eq!(shown, "GET {{base_url_2}}/a\n\nHEAD {{base_url_3}}/a\n\nGET {{base_url}}/b\n");
    assert_eq!((value(&import, "base_url_2"), value(&import, "base_url_3")), (Some("http://p"), Some("http://o/x")));
}

#[test]
fn references_that_are_not_in_the_file_are_listed() {
    let text = "openapi: 3.0.0\npaths:\n  /a: {$ref: ./paths/a.yaml}\n  /b:\n    post:\n      parameters: [{$ref: 'x.yaml#/p'}, {$ref: 'x.yaml#/q'}]\n\
        \x20     requestBody: {content: {application/json: {schema: {$ref: './order.yaml#/Order'}}}}\n  /c:\n    post:\n      requestBody:\n\
        \x20       content: {application/json: {schema: {$ref: '#/components/schemas/C'}}}\ncomponents:\n  schemas:\n    C: {$ref: '#/components/schemas/C'}\n";
    let listed = omissions(&imported(text)).join("\n");
    for part in ["./paths/a.yaml", "x.yaml#/p", "x.yaml#/q", "./order.yaml#/Order", "#/components/schemas/C"] {
        assert!(listed.contains(part), "{part}: {listed}");
    }
}

#[test]
fn alternatives_are_taken_beside_properties_and_schemas_that_have_one_another_end() {
    let circle: String = (0..8)
        .map(|own| {
            let others: Vec<String> =
                (0..8).map(|other| format!("{{$ref: '#/components/schemas/S{other}'}}")).collect();
            format!("    S{own}: {{allOf: [{}], properties: {{p{own}: {{const: {own}}}}}}}\n", others.join(", "))
        })
        .collect();
    let body = |schema: &str| {
        format!("  /a:\n    post:\n      requestBody: {{content: {{application/json: {{schema: {schema}}}}}}}")
    };
    let shown = described(&body("{$ref: '#/components/schemas/S0'}"), &circle);
    for own in 0..8 {
        assert!(shown.contains(&format!("\"p{own}\": {own}")), "{shown}");
    }
    let both = "{properties: {a: {const: 1}}, oneOf: [{properties: {b: {const: 2}}}]}";
    let shown = described(&body(both), "    A: {type: string}");
    assert!(shown.contains("{\"a\": 1, \"b\": 2}"), "{shown}");
}

#[test]
fn made_up_texts_keep_their_schemas_or_are_listed() {
    let schema = |schema: &str| {
        let text = format!(
            "openapi: 3.1.0\npaths:\n  /a:\n    post:\n      requestBody: {{content: {{application/json: {{schema: {schema}}}}}}}\n"
        );
        let import = imported(&text);
        (to_hurl(&import.scenarios[0]), omissions(&import).len())
    };
    assert_eq!(schema("{properties: {a: {type: string, pattern: '^[A-Z]{2}[0-9]+$', minLength: 4}}}").1, 0);
    assert!(schema("{properties: {a: {type: string, format: email, maxLength: 8}}}").0.contains("a@b.co"));
    assert_eq!(schema("{properties: {a: {type: string, pattern: '^(?!x)a$'}}}").1, 1);
    assert_eq!(schema("{properties: {a: {type: string, format: uuid, maxLength: 8}}}").1, 1);
    let (shown, listed) = schema("{type: object, minProperties: 2}");
    assert_eq!((shown.matches(": \"").count(), listed), (2, 0), "{shown}");
}

#[test]
fn forms_have_the_encoding_of_their_properties() {
    let form = |media_type: &str, more: &str| {
        described(
            &format!(
                "  /a:\n    post:\n      requestBody:\n        content:\n          {media_type}:\n            schema:\n\
                 \x20             properties: {{t: {{example: [a, b]}}, o: {{example: {{x: 1}}}}}}\n{more}"
            ),
            "    A: {type: string}",
        )
    };
    let shown = form("application/x-www-form-urlencoded", "");
    assert!(shown.contains("[Form]\nt: a\nt: b\no: {\"x\": 1}\n"), "{shown}");
    let shown = form(
        "application/x-www-form-urlencoded",
        "            encoding: {t: {explode: false}, o: {style: deepObject}}",
    );
    assert!(shown.contains("`t=a,b&o%5Bx%5D=1`"), "{shown}");
    let shown = form("multipart/form-data", "");
    assert!(shown.contains("name=\"o\"\\r\\nContent-Type: application/json"), "{shown}");
}

#[test]
fn comments_are_not_sent_and_forms_have_no_line_ends_beside_ampersands() {
    let text = "### a\nPOST http://h/a\nContent-Type: application/json\n\n{\n  // one\n  \"a\": 1\n# two\n}\n";
    assert!(hurl(text).contains("{\n  \"a\": 1\n}\n"), "{}", hurl(text));
    let text = "### a\nPOST http://h/a\nContent-Type: application/x-www-form-urlencoded; charset=utf-8\n\na=1\n&b=x y\n&c={{v}}\n";
    assert!(hurl(text).contains("`a=1&b=x%20y&c={{v}}`"), "{}", hurl(text));
    let text =
        "### a\nPOST http://h/a\nContent-Type: application/x-www-form-urlencoded\n\ntitle = value &\nother = x\n";
    assert!(hurl(text).contains("[Form]\ntitle: value\nother: x\n"), "{}", hurl(text));
}

#[test]
fn parts_keep_their_types_and_names() {
    let text = "### a\nPOST http://h/a\nContent-Type: multipart/form-data; boundary=X\n\n--X\n\
        Content-Disposition: form-data; name=\"rows\"; filename=\"a.csv\"\nContent-Type: text/csv\n\n1,2\n--X--\n";
    let shown = hurl(text);
    assert!(shown.contains("filename=\\\"a.csv\\\"") || shown.contains("filename=\"a.csv\""), "{shown}");
    assert!(shown.contains("text/csv"), "{shown}");
    let bruno = "meta {\n  name: a\n}\n\npost {\n  url: http://h/a\n  body: multipartForm\n}\n\nbody:multipart-form {\n  m: {} @contentType(application/json)\n}\n";
    let shown = hurl(bruno);
    assert!(shown.contains("application/json") && !shown.contains("@contentType"), "{shown}");
}

#[test]
fn environments_of_jetbrains_are_told_from_their_content_and_private_values_come_first() {
    let file = |name, text: &'static str| ImportFile { name, text: text.into(), kind: None };
    let import = import(
        [
            file("http-client.env.json", "{\"$shared\": {\"n\": \"s\"}, \"dev\": {\"host\": \"h\", \"pw\": \"public\"}, \"prod\": {\"host\": \"p\"}}"),
            file("http-client.private.env.json", "{\"prod\": {\"pw\": \"other\"}, \"dev\": {\"pw\": \"private\"}}"),
            file("a.http", "GET http://{{host}}/{{n}}\nX: {{pw}}\n"),
        ],
        &ImportSettings::default(),
    )
    .unwrap();
    let values = ["host", "n", "pw"].map(|name| value(&import, name));
    assert_eq!(values, [Some("h"), Some("s"), Some("private")]);
    assert_eq!(omissions(&import), ["http-client.env.json:1: setting: the environment prod; dev is taken"]);
}

#[test]
fn recordings_have_no_tunnels_and_keep_cookies_that_are_only_listed() {
    let text = r#"{"log": {"version": "1.2", "entries": [
        {"request": {"method": "CONNECT", "url": "h:443"}},
        {"request": {"method": "GET", "url": "http://h/a", "headers": [], "cookies": [{"name": "a", "value": "b"}]}},
        {"request": {"method": "GET", "url": "http://h/w", "headers": [{"name": "Upgrade", "value": "websocket"}]}}]}}"#;
    let import = imported(text);
    let shown = to_hurl(&import.scenarios[0]);
    assert!(shown.contains("GET {{base_url}}/a\n[Cookies]\na: b\n") && !shown.contains("\nCONNECT"), "{shown}");
    assert_eq!(omissions(&import).len(), 2, "{:?}", omissions(&import));
}

#[test]
fn paths_of_plans_begin_with_one_slash_and_numbers_of_matches_are_kept() {
    let sampler = |path: &str, below: &str| {
        format!(
            "<HTTPSamplerProxy><stringProp name=\"HTTPSampler.domain\">h</stringProp><stringProp name=\"HTTPSampler.path\">{path}</stringProp>\
             </HTTPSamplerProxy><hashTree>{below}</hashTree>"
        )
    };
    let extractor = "<RegexExtractor><stringProp name=\"RegexExtractor.refname\">x</stringProp><stringProp name=\"RegexExtractor.regex\">id=(\\d+)</stringProp>\
        <stringProp name=\"RegexExtractor.template\">$1$</stringProp><stringProp name=\"RegexExtractor.match_number\">2</stringProp>\
        <stringProp name=\"RegexExtractor.default\">none</stringProp></RegexExtractor><hashTree/>";
    let text = format!(
        "<jmeterTestPlan><hashTree><TestPlan/><hashTree><Arguments><collectionProp name=\"Arguments.arguments\">\
         <elementProp name=\"b\"><stringProp name=\"Argument.name\">b</stringProp><stringProp name=\"Argument.value\">/v1</stringProp></elementProp>\
         </collectionProp></Arguments><hashTree/><ThreadGroup/><hashTree>{}{}</hashTree></hashTree></hashTree></jmeterTestPlan>",
        sampler("${b}/a", extractor),
        sampler("${x}/a", "")
    );
    let import = imported(&text);
    let shown = to_hurl(&import.scenarios[0]);
    assert!(shown.contains("GET http://h{{b}}/a\n"), "{shown}");
    assert!(shown.contains("GET http://h/{{x replaceRegex \"^/\" \"\"}}/a\n"), "{shown}");
    assert!(shown.contains("x: regex /(?:id=(?:\\d+)(?s:.*?)){1}id=(\\d+)/\n"), "{shown}");
    assert!(omissions(&import).iter().any(|line| line.contains("the default none of x")), "{:?}", omissions(&import));
}
