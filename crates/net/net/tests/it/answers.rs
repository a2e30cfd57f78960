//! Responses, valid and malformed.

use http::Method;
use http_body_util::BodyExt;
use proptest::prelude::*;
use weir_base::failure::FailureKind;
use weir_net::client::OutgoingBody;
use weir_net::client::response::{HeadParser, ResponseContext};

use super::{get, hello, run, send, to, until_nothing_is_open, whole};
use weir_testing::{Reply, Server};

const FRAMINGS: [&str; 6] = [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x=\"y\"\r\nllo\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\nChecked: yes\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "HTTP/1.1 200\r\nX-Folded: a\r\n \tb\r\nEmpty:\r\nContent-Length: 5, 5\r\n\r\nhello",
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
];

#[test]
fn bodies_end_as_their_heads_say_and_the_connection_stays() {
    for reply in FRAMINGS {
        for size in [usize::MAX, 1, 7] {
            let server = Server::start(move |_| match size {
                usize::MAX => Reply::raw(reply),
                size => Reply::raw(reply).in_pieces(size),
            });
            run(async |client| {
                let to = to(&server);
                for _ in 0..2 {
                    assert_eq!(get(&client, &to).await.unwrap(), hello(), "{reply}");
                }
                assert_eq!(client.counts().connected, 1, "{reply}");
            });
        }
    }
}

#[test]
fn a_body_may_end_with_the_connection() {
    for head in ["HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n\r\n"]
    {
        let server = Server::start(move |_| Reply::raw(head).send("hel").send("lo").close());
        run(async |client| {
            let to = to(&server);
            for _ in 0..2 {
                assert_eq!(get(&client, &to).await.unwrap(), hello());
            }
            assert_eq!((client.counts().connected, client.counts().open), (2, 0));
        });
    }
}

#[test]
fn a_response_without_body_has_none_whatever_its_head_has() {
    let server = Server::start(|seen| match seen.turn {
        0 => Reply::raw("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        1 => Reply::raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        2 => Reply::raw("HTTP/1.1 204 No Content\r\n\r\n"),
        _ => Reply::raw("HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n"),
    });
    run(async |client| {
        let to = to(&server);
        for method in [Method::HEAD, Method::HEAD, Method::GET, Method::GET] {
            let answer = send(&client, &to, method, OutgoingBody::Empty).await.unwrap();
            assert_eq!(whole(answer).await.unwrap().1, "");
        }
        assert_eq!(client.counts().connected, 1);
    });
}

#[test]
fn headers_and_trailers_come_as_they_were_sent() {
    let server = Server::start(|_| {
        Reply::raw(
            "HTTP/1.1 207 Multi\r\nSet-Cookie: a=1\r\nset-cookie:b=2  \r\nX-Folded: a\r\n  b\r\nX-Latin: \u{e9}\r\n\
             Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        )
        .send("5\r\nhello\r\n0\r\nChecked: yes\r\n\r\n")
    });
    run(async |client| {
        let to = to(&server);
        let answer = send(&client, &to, Method::GET, OutgoingBody::Empty).await.unwrap();
        let cookies: Vec<_> = answer.headers().get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["a=1", "b=2"]);
        assert_eq!(answer.headers()["x-folded"], "a b");
        assert_eq!(answer.headers()["x-latin"].as_bytes(), "\u{e9}".as_bytes());
        assert!(!answer.headers().contains_key("content-length"), "chunks overrule it");
        let collected = answer.into_body().collect().await.unwrap();
        assert_eq!(collected.trailers().unwrap()["checked"], "yes");
        assert_eq!(collected.to_bytes(), "hello");
        assert_eq!(client.counts().open, 0, "an ambiguous head closes the connection");
    });
}

#[test]
fn what_is_not_http_is_a_protocol_failure() {
    let long = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(70_000));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(257));
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(102);
    let replies = [
        "SSH-2.0-OpenSSH_9\r\n",
        "HTTP/1.1 007 Bond\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nBell: \u{7}\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        &long,
        &many,
        &interim,
    ];
    for reply in replies {
        let text = reply.to_owned();
        let server = Server::start(move |_| Reply::raw(&text));
        run(async |client| {
            let error = get(&client, &to(&server)).await.unwrap_err();
            assert_eq!(error.kind, FailureKind::Protocol, "{reply:.60}: {error}");
            assert_eq!(client.counts().open, 0);
        });
    }
}

#[test]
fn a_truncated_response_is_a_failure() {
    let cut = [
        ("", FailureKind::Closed),
        ("HTTP/1.1 200 OK\r\nContent-Le", FailureKind::Closed),
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", FailureKind::Closed),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", FailureKind::Closed),
    ];
    for (reply, kind) in cut {
        let server = Server::start(move |_| Reply::raw(reply).close());
        run(async |client| {
            assert_eq!(get(&client, &to(&server)).await.unwrap_err().kind, kind, "{reply}");
            assert_eq!((client.counts().open, client.counts().resent), (0, 0));
        });
    }
    let server = Server::start(|_| Reply::nothing().reset());
    run(async |client| assert_eq!(get(&client, &to(&server)).await.unwrap_err().kind, FailureKind::Reset));
}

#[test]
fn bytes_behind_a_response_close_the_connection() {
    let poison = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison";
    let good = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    // With the response, behind the last part of a long one, and later.
    let server =
        Server::start(move |seen| Reply::raw(if seen.turn == 0 { [good, poison].concat() } else { poison.into() }));
    run(async |client| {
        let to = to(&server);
        for k in 1..=3 {
            assert_eq!(get(&client, &to).await.unwrap(), hello());
            assert_eq!((client.counts().idle, client.counts().connected), (0, k));
        }
    });
    for size in [20_000, 65_536, 65_537, 200_000] {
        let server = Server::start(move |_| {
            let body = "x".repeat(size);
            Reply::raw(format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n{body}{poison}"))
        });
        run(async |client| {
            let to = to(&server);
            for _ in 0..2 {
                assert_eq!(get(&client, &to).await.unwrap().1.len(), size);
                until_nothing_is_open(&client).await;
            }
        });
    }
    let server = Server::start(move |_| Reply::raw(good).wait(std::time::Duration::from_millis(5)).send(poison));
    run(async |client| {
        let to = to(&server);
        assert_eq!(get(&client, &to).await.unwrap(), hello());
        until_nothing_is_open(&client).await;
        assert_eq!(get(&client, &to).await.unwrap(), hello());
        assert_eq!(client.counts().connected, 2);
    });
}

#[test]
fn a_long_body_comes_whole() {
    let length = 3_000_000;
    let server = Server::start(move |seen| {
        let body: Vec<u8> = (0..length).map(|k| (k % 251) as u8).collect();
        let mut bytes = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
        if seen.turn == 1 {
            bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            for piece in body.chunks(9_999) {
                bytes.extend_from_slice(format!("{:X}\r\n", piece.len()).as_bytes());
                bytes.extend_from_slice(piece);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
        } else {
            bytes.extend_from_slice(&body);
        }
        Reply::raw(bytes)
    });
    run(async |client| {
        let to = to(&server);
        for _ in 0..2 {
            let (_, body) = get(&client, &to).await.unwrap();
            assert!(body.len() == length && body.iter().enumerate().all(|(k, b)| *b == (k % 251) as u8));
        }
        assert_eq!((client.counts().connected, client.counts().idle), (1, 1));
    });
}

/// Status, headers, body, trailers, and whether the connection stays, from bytes in pieces.
fn read(pieces: &[&[u8]]) -> Result<String, String> {
    let mut heads = HeadParser::new(ResponseContext::default());
    let (mut head, mut data, mut trailers) = (None, Vec::new(), None);
    for piece in pieces {
        let mut rest = *piece;
        if head.is_none() {
            let Some((found, used)) = heads.push(rest).map_err(|error| error.to_string())? else { continue };
            (head, rest) = (Some(found), &rest[used..]);
        }
        let brought = head.as_mut().unwrap().body.push(rest).map_err(|error| error.to_string())?;
        data.extend_from_slice(&brought.data);
        trailers = trailers.or(brought.trailers);
    }
    let Some(mut head) = head else { return Err("cut".into()) };
    head.body.close().map_err(|error| error.to_string())?;
    Ok(format!("{} {:?} {data:?} {trailers:?} {}", head.status, head.headers, head.keep_alive))
}

proptest! {
    #[test]
    fn a_response_is_the_same_however_it_is_split(
        which in 0..FRAMINGS.len(), mut cuts in prop::collection::vec(0_usize..200, 0..8),
    ) {
        let bytes = FRAMINGS[which].as_bytes();
        cuts.iter_mut().for_each(|cut| *cut = (*cut).min(bytes.len()));
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        prop_assert_eq!(read(&pieces), read(&[bytes]));
        prop_assert!(read(&[bytes]).is_ok());
    }
}
