//! Requests that two readers may see as different ones: in each a request for `/smuggled` is hidden, which is part of
//! another request, or behind one that is malformed.

/// The hidden request.
pub(crate) const HIDDEN: &str = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";

/// A request with these fields and this body.
fn post(fields: &str, body: &str) -> String {
    format!("POST /case HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n{body}")
}

/// The hidden request behind a last chunk, all of it within `Content-Length`; `{}` in the fields is that length.
fn length_first(fields: &str) -> String {
    let body = format!("0\r\n\r\n{HIDDEN}");
    post(&fields.replace("{}", &body.len().to_string()), &body)
}

/// The hidden request in a chunk, behind what `Content-Length: 4` covers.
fn chunked_first(fields: &str) -> String {
    post(fields, &format!("{:x}\r\n{HIDDEN}\r\n0\r\n\r\n", HIDDEN.len()))
}

/// All cases, each with a name.
pub(crate) fn all() -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<(String, Vec<u8>)> = Vec::new();
    let mut add = |name: &str, text: String| all.push((name.to_owned(), text.into_bytes()));

    // A length and a transfer coding.
    for (name, fields) in [
        ("length, then chunked", "Content-Length: {}\r\nTransfer-Encoding: chunked"),
        ("chunked, then length", "Transfer-Encoding: chunked\r\nContent-Length: {}"),
        ("chunked in capitals", "Content-Length: {}\r\nTRANSFER-ENCODING: CHUNKED"),
        ("a tab before chunked", "Content-Length: {}\r\nTransfer-Encoding:\tchunked"),
        ("no space before chunked", "Content-Length: {}\r\nTransfer-Encoding:chunked"),
        ("spaces behind chunked", "Content-Length: {}\r\nTransfer-Encoding: chunked   "),
        ("a comma before chunked", "Content-Length: {}\r\nTransfer-Encoding: ,chunked"),
        ("a comma behind chunked", "Content-Length: {}\r\nTransfer-Encoding: chunked,"),
        ("an empty coding beside chunked", "Content-Length: {}\r\nTransfer-Encoding:\r\nTransfer-Encoding: chunked"),
    ] {
        add(&format!("{name}, length first"), length_first(fields));
        add(&format!("{name}, chunked first"), chunked_first(&fields.replace("{}", "4")));
    }

    // Transfer codings that some readers take for chunked and others do not see.
    for coding in [
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunkedx",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding: 'chunked'",
        "Transfer-Encoding: chunked;q=1",
        "Transfer-Encoding: x, chunked",
        "Transfer-Encoding: chunked, x",
        "Transfer-Encoding: identity, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
        "Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunk\r\n ed",
        "Transfer-Encoding:\r\n chunked",
        "Transfer-Encoding:\u{b}chunked",
        "Transfer-Encoding: \u{c}chunked",
        "Transfer-Encoding: chunked\u{b}",
        "Transfer-Encoding: chunked\0",
        "Transfer-Encoding: chun\0ked",
        "Transfer-Encoding: \u{a0}chunked",
        "Transfer-Encoding: chunKed\u{212a}",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding\t: chunked",
        " Transfer-Encoding: chunked",
        "\tTransfer-Encoding: chunked",
        "X: y\rTransfer-Encoding: chunked",
        "X: y\nTransfer-Encoding: chunked",
        "X: y\0Transfer-Encoding: chunked",
        "Transfer-Encoding\0: chunked",
        "Transfer\rEncoding: chunked",
        "Content-Type: a\r\n\tTransfer-Encoding: chunked",
        "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked",
        "Connection: Content-Length\r\nTransfer-Encoding: chunked",
    ] {
        add(&format!("{coding:?}, length first"), length_first(&format!("Content-Length: {{}}\r\n{coding}")));
        add(&format!("{coding:?}, chunked first"), chunked_first(&format!("{coding}\r\nContent-Length: 4")));
    }

    // Behind its length the hidden request is one that follows.
    add("an underscore in the name", length_first("Content-Length: {}\r\nTransfer_Encoding: chunked"));

    // Lengths that two readers read as different ones: 0, or that of the hidden request.
    let length = HIDDEN.len();
    for fields in [
        format!("Content-Length: {length}\r\nContent-Length: 0"),
        format!("Content-Length: 0\r\nContent-Length: {length}"),
        format!("Content-Length: 0, {length}"),
        format!("Content-Length: {length}, 0"),
        format!("Content-Length: +{length}"),
        format!("Content-Length: -{length}"),
        format!("Content-Length: 0x{length:x}"),
        format!("Content-Length: {length}.0"),
        format!("Content-Length: {length}e0"),
        format!("Content-Length: {length} 0"),
        format!("Content-Length: \"{length}\""),
        format!("Content-Length: {length}\0"),
        format!("Content-Length:\u{b}{length}"),
        format!("Content-Length : {length}"),
        format!("Content-Length\t: {length}"),
        format!(" Content-Length: {length}"),
        format!("Content-Length: 0\r\n {length}"),
        format!("Content-Length:\r\n {length}"),
        format!("Content_Length: 0\r\nContent-Length: {length}"),
        format!("X: y\rContent-Length: 0\r\nContent-Length: {length}"),
        format!("Connection: Content-Length\r\nContent-Length: {length}"),
        format!("Content-Length: {length}\r\nContent-Length: {length}"),
        format!("Content-Length: {length}, {length}"),
        format!("Content-Length: 00{length}"),
        format!("Content-Length: 184467440737095516{length}"),
        format!("Content-Length: {length}\r\nExpect: 100-continue"),
        format!("Content-Length: {length}\r\nUpgrade: websocket\r\nConnection: Upgrade"),
        format!(
            "Content-Length: {length}\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__"
        ),
    ] {
        add(&format!("{fields:?}"), post(&fields, HIDDEN));
    }

    // Chunks. The hidden request is within the data, or behind a chunk that is malformed.
    let (hex, chunked) = (format!("{length:x}"), "Transfer-Encoding: chunked");
    for (name, body) in [
        ("an extension", format!("{hex};a=b\r\n{HIDDEN}\r\n0\r\n\r\n")),
        ("an extension with a line feed", format!("{hex};a\n{HIDDEN}\r\n0\r\n\r\n")),
        ("an extension with a carriage return", format!("{hex};a\rb\r\n{HIDDEN}\r\n0\r\n\r\n")),
        ("an extension in quotes", format!("{hex};a=\"\r\n\"\r\n{HIDDEN}\r\n0\r\n\r\n")),
        ("an extension that hides the end", format!("2;\nxx\r\n{hex}\r\n{HIDDEN}\r\n0\r\n\r\n")),
        ("a long extension", format!("{hex};{}\r\n{HIDDEN}\r\n0\r\n\r\n", "a".repeat(20_000))),
        ("a size with 0x", format!("0x{hex}\r\n{HIDDEN}\r\n0\r\n\r\n")),
        ("a size with a plus", format!("+{hex}\r\n{HIDDEN}\r\n0\r\n\r\n")),
        ("a size with a minus", format!("-1\r\n\r\n{HIDDEN}")),
        ("a size with a space before it", format!(" {hex}\r\n{HIDDEN}\r\n0\r\n\r\n")),
        ("a size with a space behind it", format!("{hex} \r\n{HIDDEN}\r\n0\r\n\r\n")),
        ("a size with an underscore", format!("{}_{}\r\n{HIDDEN}\r\n0\r\n\r\n", &hex[..1], &hex[1..])),
        ("a size with zeros", format!("000000000000{hex}\r\n{HIDDEN}\r\n0\r\n\r\n")),
        ("a size over 64 bits", format!("10000000000000000\r\n\r\n{HIDDEN}")),
        ("a size of 64 bits", format!("ffffffffffffffff\r\n{HIDDEN}")),
        ("an empty size", format!("\r\n\r\n{HIDDEN}")),
        ("a size that is not a number", format!("xyz\r\n\r\n{HIDDEN}")),
        ("a size with a line feed", format!("{hex}\n{HIDDEN}\r\n0\r\n\r\n")),
        ("a size with two carriage returns", format!("{hex}\r\r\n{HIDDEN}\r\n0\r\n\r\n")),
        ("a size with a carriage return alone", format!("{hex}\r{HIDDEN}\r\n0\r\n\r\n")),
        ("data longer than its size", format!("1\r\nxx\r\n0\r\n\r\n{HIDDEN}")),
        ("data with a line feed behind it", format!("1\r\nx\n0\r\n\r\n{HIDDEN}")),
        ("data with nothing behind it", format!("1\r\nx0\r\n\r\n{HIDDEN}")),
        ("data with two other bytes behind it", format!("1\r\nxyz0\r\n\r\n{HIDDEN}")),
        ("a last chunk with an extension", format!("0;a=b\n\n{HIDDEN}")),
        ("a last chunk with line feeds", format!("0\n\n{HIDDEN}")),
        ("a trailer without a colon", format!("0\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n{}", "")),
        ("a trailer with framing", format!("0\r\nContent-Length: {length}\r\n\r\n")),
        ("a trailer with a coding", "0\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned()),
        ("a trailer with a line feed", format!("0\r\nX: y\nZ: {HIDDEN}")),
    ] {
        add(&format!("chunks: {name}"), post(chunked, &body));
    }

    // Heads.
    for (name, text) in [
        ("line feeds alone", format!("GET /case HTTP/1.1\nHost: h\nContent-Length: {length}\n\n{HIDDEN}")),
        ("carriage returns alone", format!("GET /case HTTP/1.1\rHost: h\r\r{HIDDEN}")),
        (
            "a folded field",
            format!(
                "POST /case HTTP/1.1\r\nHost: h\r\nX: a\r\n Content-Length: 0\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"
            ),
        ),
        (
            "a space before the first field",
            format!("POST /case HTTP/1.1\r\n Content-Length: 0\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
        (
            "a field without a colon",
            format!("POST /case HTTP/1.1\r\nHost: h\r\nx\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
        (
            "a field without a name",
            format!("POST /case HTTP/1.1\r\nHost: h\r\n: x\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
        (
            "HTTP/1.0 with chunks",
            format!(
                "POST /case HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"
            ),
        ),
        (
            "HTTP/1.0 with both",
            format!(
                "POST /case HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\nContent-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}",
                length + 5
            ),
        ),
        ("HTTP/0.9", format!("GET /case\r\n{HIDDEN}")),
        ("HTTP/1.2", format!("POST /case HTTP/1.2\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}")),
        ("HTTP/2.0", format!("POST /case HTTP/2.0\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}")),
        (
            "a version with a space behind it",
            format!("POST /case HTTP/1.1 \r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
        (
            "a tab in the request line",
            format!("POST\t/case\tHTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
        (
            "two spaces in the request line",
            format!("POST  /case  HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
        (
            "a request line in the target",
            format!("GET /case%0d%0aGET%20/smuggled HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
        (
            "a carriage return in the target",
            format!("GET /case\rX HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
        (
            "a zero byte in the target",
            format!("GET /case\0 HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
        ("a body of GET", format!("GET /case HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}")),
        ("a body of HEAD", format!("HEAD /case HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}")),
        ("a body of OPTIONS", format!("OPTIONS * HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}")),
        (
            "a chunked body of GET",
            format!(
                "GET /case HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n{hex}\r\n{HIDDEN}\r\n0\r\n\r\n"
            ),
        ),
        (
            "CONNECT with a body",
            format!("CONNECT h:80 HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"),
        ),
        (
            "a hop-by-hop length",
            format!(
                "POST /case HTTP/1.1\r\nHost: h\r\nConnection: close, content-length\r\nContent-Length: {length}\r\n\r\n{HIDDEN}"
            ),
        ),
        ("two hosts", format!("POST /case HTTP/1.1\r\nHost: h\r\nHost: i\r\nContent-Length: {length}\r\n\r\n{HIDDEN}")),
        (
            "the preface of HTTP/2 later",
            format!(
                "POST /case HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n{HIDDEN}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            ),
        ),
    ] {
        add(name, text);
    }
    all
}
