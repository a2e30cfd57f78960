//! Printing of content that was not read from a file.

use super::{print_and_read, read};
use crate::{
    BlockContent, BodyContent, Comment, ExpectedResponse, Expression, FieldTemplate, HurlBody, HurlEntry, HurlFile,
    HurlRequest, MultipartField, MultipartValue, Template, TemplatePart, TextBlock, TextPosition,
};

fn file(request: HurlRequest) -> HurlFile {
    HurlFile { entries: vec![HurlEntry { request, ..HurlEntry::default() }], comments: Vec::new() }
}

fn post(body: BodyContent) -> HurlFile {
    let body = Some(HurlBody::new(body));
    file(HurlRequest { body, ..HurlRequest::new("POST", Template::text("http://h")) })
}

#[test]
fn the_print_has_one_form() {
    let text = "\n#@name list\nGET   http://h # x\nA:b\n[QueryStringParams]\na :  b\n\nHTTP   200\n[Asserts]\n\
                status   ==   200\n`x`\n\n\nGET http://h\n#end\n";
    let printed = "#@name list\n# x\nGET http://h\nA: b\n[Query]\na: b\nHTTP 200\n[Asserts]\nstatus == 200\n`x`\n\n\
                   GET http://h\n\n#end\n";
    assert_eq!(print_and_read(&read(text)), printed);
}

#[test]
fn any_text_is_escaped_in_its_place() {
    let texts = [
        " a ",
        "[a]",
        "#",
        "{{x}}",
        "{",
        "a{",
        "\\",
        "\"",
        "`",
        "a:b;c",
        "\t\r\n\u{8}\u{c}\u{0}\u{7f}",
        "file,x;",
        "/",
    ];
    for text in texts {
        let value = Template::text(text);
        let field = FieldTemplate { name: value.clone(), value: value.clone() };
        let part = MultipartField { name: value.clone(), value: MultipartValue::Text(value.clone()) };
        let upload = MultipartValue::File { name: value.clone(), content_type: Some(value.clone()) };
        let request = HurlRequest {
            headers: vec![field.clone()],
            query: vec![field],
            multipart: vec![part, MultipartField { name: value.clone(), value: upload }],
            body: Some(HurlBody::new(BodyContent::OneLine(value.clone()))),
            ..HurlRequest::new("PUT", value)
        };
        print_and_read(&file(request));
    }
}

#[test]
fn a_brace_before_an_expression_is_escaped() {
    let brace = TemplatePart::Text("{".into());
    let parts = vec![brace.clone(), TemplatePart::Expression(Expression::variable("x")), brace];
    let url = Template { parts, ..Template::default() };
    assert_eq!(print_and_read(&file(HurlRequest::new("GET", url))), "GET \\u{7b}{{x}}{\n");
}

#[test]
fn a_block_that_cannot_be_expressed_becomes_one_line() {
    let block = |content| BodyContent::Block(TextBlock { content, position: TextPosition::default() });
    let fence = post(block(BlockContent::Raw("```\n".into())));
    assert_eq!(read(&fence.to_string()).to_string(), "POST http://h\n`\\`\\`\\`\\n`\n");
    let braces = post(block(BlockContent::Json(Template::text("{{x}}"))));
    assert_eq!(read(&braces.to_string()).to_string(), "POST http://h\n`\\u{7b}{x}}`\n");
    let text = block(BlockContent::Text(Template::text("a\n")));
    assert_eq!(print_and_read(&post(text)), "POST http://h\n```\na\n```\n");
}

#[test]
fn comments_of_several_lines_stay_comments() {
    let entry = HurlEntry {
        comments: vec![Comment::new(" a\nGET http://h")],
        ..file(HurlRequest::new("GET", Template::text("/"))).entries.remove(0)
    };
    let file = HurlFile { entries: vec![entry], comments: vec![Comment::new(" end")] };
    let printed = file.to_string();
    assert_eq!(printed, "# a\n#GET http://h\nGET /\n\n# end\n");
    assert_eq!(read(&printed).entries.len(), 1);
}

#[test]
fn a_response_without_details_is_printed() {
    let entry = HurlEntry {
        request: HurlRequest::new("GET", Template::text("/")),
        response: Some(ExpectedResponse::default()),
        ..HurlEntry::default()
    };
    assert_eq!(print_and_read(&HurlFile { entries: vec![entry], comments: Vec::new() }), "GET /\nHTTP *\n");
}
