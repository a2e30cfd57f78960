//! Kinds of files, and their mistakes.

use serde_json::json;

use super::*;

#[test]
fn the_kind_of_a_file_is_that_of_its_first_record() {
    for (content, kind, first) in [
        ("one\n\ntwo \"2\"\r\n", DatasetKind::Lines, "one"),
        ("[not JSON\ntwo\n", DatasetKind::Lines, "[not JSON"),
        ("\"o\\ne\"\n\"two\"", DatasetKind::Strings, "o\ne"),
        ("[\"one\", \"two\"]", DatasetKind::Strings, "one"),
        ("{\"prompt\": \"one\"}\n{\"prompt\": \"two\"}", DatasetKind::Prompts, "one"),
        ("[{\"text\": \"one\"},\n {\"text\": \"two\"}]", DatasetKind::Prompts, "one"),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":\"one\"}]}\n{\"messages\":[{\"role\":\"user\",\"content\":\"2\"}]}",
            DatasetKind::Messages,
            "one",
        ),
        ("{\"turns\":[{\"text\":\"one\"}]}\n{\"turns\":[\"two\"]}", DatasetKind::Turns, "one"),
        (
            "[{\"conversations\":[{\"from\":\"gpt\",\"value\":\"x\"},{\"from\":\"human\",\"value\":\"one\"}]},\
              {\"conversations\":[{\"from\":\"human\",\"value\":\"two\"}]}]",
            DatasetKind::ShareGpt,
            "one",
        ),
    ] {
        for content in [content.to_owned(), format!("\u{feff}{content}")] {
            let set = dataset(&content);
            assert_eq!((set.kind(), set.count()), (kind, 2), "{content}");
            let bodies = bodies(settings(LlmApi::Chat), source(&content));
            assert_eq!(body(&bodies, 0)["messages"], json!([{"role": "user", "content": first}]), "{content}");
            assert_eq!(body(&bodies, 2)["messages"], body(&bodies, 0)["messages"], "the file begins anew");
        }
    }
}

#[test]
fn mistakes_have_their_line_and_what_was_expected() {
    for (content, error) in [
        ("", "data:1: no prompts; write one a line"),
        ("\n  \n", "data:1: no prompts; write one a line"),
        ("[]", "data:1: no prompts; write one a line"),
        ("{\"prompt\":\"a\"}\n\n{\"prompt\":\n", "data:3: not JSON: EOF while parsing a value"),
        ("{\"prompt\":\"a\"}\nplain", "data:2: not JSON: expected value"),
        ("[{\"prompt\":\"a\"},\n{\"prompt\":}]", "data:2: not JSON: expected value"),
        ("{\"prompt\":\"a\"}\n{\"messages\":[]}", "data:2: expected {\"prompt\": \"text\"}, as in line 1"),
        ("[{\"prompt\":\"a\"},\n\n{\"prompt\": 5}]", "data:3: expected a text as prompt"),
        (
            "{\"a\":1,\"b\":2}",
            "data:1: expected a prompt, messages, turns, conversations or body, e.g. {\"prompt\": \"text\"}; found a, b",
        ),
        ("{\"prompt\":\"a\",\"max_tokens\":0}", "data:1: expected a number of tokens from 1 as max_tokens"),
        ("{\"messages\":[{\"content\":\"a\"}]}", "data:1: expected a message with a role"),
        (
            "{\"messages\":[{\"role\":\"me\",\"content\":\"a\"}]}",
            "data:1: unknown role 'me'; write system, user, assistant or tool",
        ),
        (
            "{\"messages\":[{\"role\":\"user\",\"content\":7}]}",
            "data:1: expected a text or a list of parts as content of the message",
        ),
        ("{\"messages\":7}", "data:1: expected a list of messages"),
        ("{\"turns\":[{\"delay\":1}]}", "data:1: expected a turn with a text"),
        (
            "{\"turns\":[{\"text\":\"a\",\"delay\":-1}]}",
            "data:1: expected milliseconds as delay, or a time such as \"2s\"",
        ),
        (
            "{\"conversations\":[{\"from\":\"gpt\",\"value\":\"a\"}]}",
            "data:1: no prompts: 1 conversations without a message of a user",
        ),
        ("{\"prompt\":\"a\",\"image\":\"cat.png\"}", "data:1: no file cat.png"),
        (
            "{\"prompt\":\"a\",\"image\":\"cat\"}",
            "data:1: unknown type of image 'cat'; write a URL, or a .png, .jpg, .gif or .webp",
        ),
        (
            "{\"body\":{},\"url\":\"/v1/a\"}\n{\"body\":{},\"url\":\"/v1/b\"}",
            "data:2: expected the url /v1/a as before; found /v1/b",
        ),
    ] {
        assert_eq!(try_dataset(content).map(|_| ()).map_err(|e| e.to_string()), Err(error.to_owned()), "{content}");
    }
    let error = Dataset::parse("data", b"a\nb\xff".to_vec(), &mut |_| Ok(Vec::new())).expect_err("not UTF-8");
    assert_eq!(error.to_string(), "data:2: bytes that are not UTF-8; save the file as UTF-8");
}

#[test]
fn conversations_without_a_user_are_skipped_and_counted() {
    let set = dataset(
        "[{\"conversations\":[]},{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"}]},{\"conversations\":[]}]",
    );
    assert_eq!((set.count(), set.skipped()), (1, 2));
}

#[test]
fn members_that_a_body_could_have_and_that_are_not_sent_are_named() {
    let unsent = |content: &str| dataset(content).unsent_members().collect::<Vec<_>>();
    let prompts = "{\"prompt\": \"a\", \"top_p\": 1, \"id\": 7}\n{\"prompt\": \"b\", \"seed\": 1, \"max_tokens\": 5}\n";
    assert_eq!(unsent(prompts), ["seed", "top_p"]);
    let chat = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tools\": [], \"model\": \"m\"}";
    assert_eq!(unsent(chat), ["model", "tools"]);
    let batch = "{\"custom_id\": \"1\", \"method\": \"POST\", \"url\": \"/v1/completions\", \"body\": {\"seed\": 1}}";
    assert!(unsent(batch).is_empty() && unsent("\"seed\"").is_empty());
}

#[test]
fn an_image_file_is_read_once_and_becomes_a_data_url() {
    let mut reads = Vec::new();
    let content =
        "{\"prompt\":\"a\",\"image\":\"cat.png\"}\n{\"prompt\":\"b\",\"images\":[\"cat.png\",\"http://h/d.jpg\"]}";
    let set = Dataset::parse("data", content.as_bytes().to_vec(), &mut |file| {
        reads.push(file.to_owned());
        Ok(b"\x01\x02\x03".to_vec())
    });
    let prompts = PromptSource::of_dataset(set.expect("a data set"), PromptOrder::File, 0);
    assert_eq!(reads, ["cat.png"]);
    let content = body(&bodies(settings(LlmApi::Chat), prompts), 1)["messages"][0]["content"].clone();
    let expected = json!([
        {"type": "text", "text": "b"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}},
        {"type": "image_url", "image_url": {"url": "http://h/d.jpg"}},
    ]);
    assert_eq!(content, expected);
}

#[test]
fn a_message_without_a_text_is_a_mistake_in_its_line() {
    for parts in [r#"[{"type":"text","txt":"a"}]"#, r#"[{"type":"image_url","image_url":{}}]"#] {
        let line = format!("{{\"messages\":[{{\"role\":\"user\",\"content\":{parts}}}]}}\n");
        let file = format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"a\"}}]}}\n{line}");
        let read = Dataset::parse("data", file.into_bytes(), &mut |_| Ok(Vec::new()));
        assert_eq!(read.map(|set| set.count()).map_err(|error| error.line), Err(2), "{parts}");
    }
}
