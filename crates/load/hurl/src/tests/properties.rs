//! Properties for any input: no panic, errors with places in the text, and prints that are read back.

use proptest::prelude::*;
use proptest::sample::select;

use super::{print_and_read, shape};
use crate::{
    BodyContent, Comment, ErrorReport, Expression, FieldTemplate, HurlBody, HurlEntry, HurlFile, HurlRequest, JsonText,
    MultipartField, MultipartValue, OptionName, OptionValue, RequestOption, ScalarValue, Template, TemplatePart,
    TextPosition, VariableDefinition, parse,
};

/// Pieces of files, valid and not, that are put together at random.
const FRAGMENTS: [&str; 76] = [
    "GET ",
    "POST http://h",
    "HTTP 200",
    "HTTP/1.1 ",
    "HTTP ",
    "*",
    "\n",
    "\n",
    "\n",
    "\r\n",
    " ",
    "\t",
    ":",
    ": ",
    "#",
    "# x\n",
    "[Query]\n",
    "[Form]",
    "[Multipart]\n",
    "[Cookies]\n",
    "[BasicAuth]\n",
    "[Options]\n",
    "[Captures]\n",
    "[Asserts]\n",
    "[X]\n",
    "a: b\n",
    "{{x}}",
    "{{",
    "}}",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\"x\"",
    "`",
    "`x`\n",
    "```",
    "```\n",
    "```json\n",
    "```graphql\n",
    "variables {",
    "\\",
    "\\u{",
    "\\n",
    "file,x;",
    "base64,AAA=;",
    "hex,00;",
    "<a>",
    "</a>\n",
    "<!--",
    "&",
    "status",
    "header \"x\"",
    "jsonpath \"$\"",
    "regex /x/",
    "cookie \"a[Path]\"",
    " == ",
    " > ",
    " contains ",
    " not exists\n",
    " matches /a\\/b/\n",
    " count",
    " nth 1",
    " replace \"a\" \"b\"",
    "200",
    "-1.5",
    "null",
    "true\n",
    "redact\n",
    "retry: 3\n",
    "delay: 1s\n",
    "variable: a=b\n",
    "{\"a\": [1, \"{{b}}\"]}\n",
    "\u{e9}",
    "\u{0}",
];

fn check(text: &str) {
    let lines = u32::try_from(text.split('\n').count()).unwrap();
    match parse(text) {
        Ok(file) => drop(print_and_read(&file)),
        Err(errors) => {
            assert!(!errors.is_empty() && errors.len() <= 100);
            assert!(errors.is_sorted_by_key(|error| error.position), "{errors:?}");
            for error in &errors {
                assert!((1..=lines).contains(&error.position.line) && error.position.column > 0, "{error}");
                assert!(!error.to_string().contains('\n'), "{error}");
            }
            assert!(!ErrorReport::new("x", text, &errors).to_string().is_empty());
        }
    }
}

fn expression() -> impl Strategy<Value = Expression> {
    let filters = vec!["", " count", " nth -1", " replace \"{{y}}\" \"}}\"", " regex /a\\/b/", " format \"%Y\""];
    let sources = vec!["x", "my-id_2", "\u{e9}", "newUuid", "randomInt -1 9", "randomString 8"];
    (select(sources), select(filters)).prop_map(|(source, filter)| {
        let file = parse(&format!("GET {{{{{source}{filter}}}}}\n")).unwrap();
        file.entries[0].request.url.expressions().next().unwrap().clone()
    })
}

/// Template whose texts are any characters.
fn template() -> impl Strategy<Value = Template> {
    let text = prop_oneof![any::<String>(), "[ {}\\[\\]\"`:;#,/\\\\a\t\n]{0,6}"];
    (proptest::option::of(text.clone()), proptest::collection::vec((expression(), text), 0..3)).prop_map(
        |(first, rest)| {
            let mut parts = Vec::new();
            parts.extend(first.map(TemplatePart::Text));
            for (expression, text) in rest {
                parts.push(TemplatePart::Expression(expression));
                parts.push(TemplatePart::Text(text));
            }
            parts.retain(|part| !matches!(part, TemplatePart::Text(text) if text.is_empty()));
            Template { parts, position: TextPosition::default() }
        },
    )
}

fn name() -> impl Strategy<Value = Template> {
    template().prop_filter("empty", |name| !name.parts.is_empty())
}

fn field() -> impl Strategy<Value = FieldTemplate> {
    (name(), template()).prop_map(|(name, value)| FieldTemplate { name, value })
}

fn part() -> impl Strategy<Value = MultipartField> {
    let content_type = proptest::option::of(name());
    let value = prop_oneof![
        template().prop_map(MultipartValue::Text),
        (name(), content_type).prop_map(|(name, content_type)| MultipartValue::File { name, content_type }),
    ];
    (name(), value).prop_map(|(name, value)| MultipartField { name, value })
}

fn option() -> impl Strategy<Value = RequestOption> {
    let value = prop_oneof![
        template().prop_map(|value| (OptionName::User, OptionValue::Text(value))),
        name().prop_map(|name| (OptionName::Output, OptionValue::File(name))),
        (name(), proptest::option::of(name()))
            .prop_map(|(file, password)| (OptionName::Cert, OptionValue::Certificate { file, password })),
        template().prop_map(|value| {
            let variable = VariableDefinition { name: "x".into(), value: ScalarValue::Text(value) };
            (OptionName::Variable, OptionValue::Variable(variable))
        }),
    ];
    value.prop_map(|(name, value)| RequestOption { name, value, position: TextPosition::default() })
}

/// JSON with expressions.
fn json() -> impl Strategy<Value = String> {
    let leaf = select(vec!["null", "true", "-1.5e3", "\"\"", "\"{{x}} \\u00e9\"", "{{x}}", " [ ] ", "{\n}"]);
    leaf.prop_map(str::to_owned).prop_recursive(6, 40, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(" ,"))),
            proptest::collection::vec(inner, 0..4).prop_map(|items| {
                let members: Vec<String> = items.iter().map(|item| format!("\n\"a{{{{k}}}}\": {item}")).collect();
                format!("{{ {} }}", members.join(","))
            }),
        ]
    })
}

fn body() -> impl Strategy<Value = BodyContent> {
    prop_oneof![
        template().prop_map(BodyContent::OneLine),
        name().prop_map(BodyContent::File),
        json().prop_map(|text| BodyContent::Json(JsonText::parse(text.trim()).unwrap())),
    ]
}

fn request() -> impl Strategy<Value = HurlRequest> {
    use proptest::collection::vec;
    let lists = (vec(field(), 0..3), vec(field(), 0..3), vec(part(), 0..3), vec(option(), 0..3));
    let body = proptest::option::of(body().prop_map(HurlBody::new));
    ("[A-Z]{1,7}", name(), lists, proptest::option::of(field()), body)
        .prop_filter("a response", |(method, ..)| method != "HTTP")
        .prop_map(|(method, url, (headers, query, multipart, options), basic_auth, body)| HurlRequest {
            headers,
            query,
            multipart,
            options,
            basic_auth,
            body,
            ..HurlRequest::new(method, url)
        })
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_has_errors(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn any_fragments_are_parsed_or_have_errors(fragments in proptest::collection::vec(select(&FRAGMENTS), 0..40)) {
        check(&fragments.concat());
        check(&format!("POST http://h\n{}", fragments.concat()));
        check(&format!("GET http://h\nHTTP 200\n[Asserts]\n{}", fragments.concat()));
    }

    #[test]
    fn any_request_is_printed_and_read(
        requests in proptest::collection::vec((request(), "[^\n]{0,9}"), 1..4),
    ) {
        let entries = requests.into_iter().map(|(request, comment)| {
            let comments = vec![Comment::new(comment.trim_end_matches('\r'))];
            HurlEntry { comments, request, response: None }
        });
        let file = HurlFile { entries: entries.collect(), comments: Vec::new() };
        print_and_read(&file);
        prop_assert!(shape(&file).contains("@"));
    }
}
