//! Lines of each format, and properties against naive oracles.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use weir_base::Nanos;

use super::*;

fn reader(first: &str) -> TraceLines {
    TraceLines::new(None, first, None).unwrap_or_else(|why| panic!("{why}: {first}"))
}

fn records(reader: &TraceLines, line: &str) -> Result<Vec<TraceRecord>, TraceLineError> {
    let mut records = Vec::new();
    reader.push_records(line, &mut records).map(|()| records)
}

/// The one request of a line in the format that the line has.
fn record(line: &str) -> TraceRecord {
    let mut found = records(&reader(line), line).unwrap_or_else(|why| panic!("{why}: {line}"));
    assert_eq!(found.len(), 1, "{line}");
    found.remove(0)
}

fn facts(record: &TraceRecord) -> (TraceStart, u64, u64) {
    (record.start, record.input_tokens, record.output_tokens)
}

const fn at_ms(ms: i64) -> TraceStart {
    TraceStart::At(ms * 1_000_000)
}

#[test]
fn lines_of_mooncake_and_its_dialects_are_read() {
    let line = r#"{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 2353, 2354]}"#;
    let read = record(line);
    assert_eq!((facts(&read), read.session), ((at_ms(27_482), 6955, 52), None));
    let TracePrompt::Blocks { ids, tokens } = &read.prompt else { panic!("{read:?}") };
    assert_eq!((ids.len(), ids[13], *tokens), (14, 2354, 512));
    // Fractions of a millisecond, the other names, and texts as identifiers.
    let dialect =
        record(r#"{"created_time": 0.5, "input_tokens": 5, "output_tokens": 6, "hash_ids": ["a"], "x": [1]}"#);
    assert_eq!(facts(&dialect), (TraceStart::At(500_000), 5, 6));
    let later = record(r#"{"session_id": "s", "delay": 1500, "input_length": 9, "output_length": 1}"#);
    assert_eq!(later.start, TraceStart::Delay(Nanos::from_millis(1500)));
    let text = record(r#"{"timestamp": 1, "text_input": "a \"b\"\n", "output_length": 3}"#);
    assert_eq!(text.prompt, TracePrompt::Text(br#"a \"b\"\n"#.as_slice().into()));
    // Bailian's times are seconds, and its blocks have 16 tokens.
    let bailian = record(
        r#"{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 521, "output_length": 132, "type": "text", "turn": 1}"#,
    );
    assert_eq!(facts(&bailian), (at_ms(61_114), 521, 132));
}

#[test]
fn records_of_dynamo_are_read_and_other_events_are_none() {
    let line = r#"{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":1700000000100,"agent_context":{"session_id":"task-a"},"request":{"request_id":"good","request_received_ms":1700000000000,"output_tokens":4,"replay":{"trace_block_size":2,"input_length":3,"input_sequence_hashes":[18446744073709551615,22]}}}"#;
    let read = record(line);
    assert_eq!(facts(&read), (at_ms(1_700_000_000_000), 3, 4));
    assert_eq!(read.prompt, TracePrompt::Blocks { ids: [u64::MAX, 22].into(), tokens: 2 });
    assert!(read.session.is_some());
    let ended = r#"{"schema":"dynamo.request.trace.v1","event_type":"request_end","event_time_unix_ms":1100,"request":{"total_time_ms":100.0,"input_tokens":7,"output_tokens":4}}"#;
    assert_eq!(facts(&record(ended)), (at_ms(1000), 7, 4));
    let tool = r#"{"schema":"dynamo.request.trace.v1","event_type":"tool_end","event_time_unix_ms":1}"#;
    assert_eq!(records(&reader(line), tool), Err(TraceLineError::NoRequest));
    let other = r#"{"schema":"dynamo.agentic_mooncake","event_type":"request_end"}"#;
    assert!(matches!(records(&reader(line), other), Err(TraceLineError::Broken(_))));
}

#[test]
fn rows_of_tables_are_read_by_their_columns() {
    let burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type";
    let three = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type";
    let azure = "TIMESTAMP,ContextTokens,GeneratedTokens";
    for (heading, row, format, at, tokens) in [
        (burst, "5,ChatGPT,472,18,490,Conversation log", TraceFormat::BurstGpt, 5_000_000_000, (472, 18)),
        (three, "5.25,s-1,1.5,GPT-4,472.0,18,490,API log", TraceFormat::BurstGpt, 5_250_000_000, (472, 18)),
        (azure, "2023-11-16 18:15:46.6805900,374,44", TraceFormat::Azure, 1_700_158_546_680_590_000, (374, 44)),
        (azure, "2024-05-10 00:00:00.009930+00:00,2162,5", TraceFormat::Azure, 1_715_299_200_009_930_000, (2162, 5)),
    ] {
        let reader = reader(heading);
        assert_eq!((reader.format(), reader.has_heading()), (format, true));
        let read = records(&reader, row).unwrap_or_else(|why| panic!("{why}: {row}"));
        assert_eq!(facts(&read[0]), (TraceStart::At(at), tokens.0, tokens.1), "{row}");
        assert_eq!(read[0].session.is_some(), heading == three);
    }
    let reader = reader(burst);
    assert_eq!(records(&reader, "1106,ChatGPT,0,0,0,Conversation log"), Err(TraceLineError::NoTokens));
    for broken in ["", "a,ChatGPT,1,1,2,x", "-1,ChatGPT,1,1,2,x", "5,ChatGPT,,1,2,x", "5,ChatGPT,1"] {
        assert!(matches!(records(&reader, broken), Err(TraceLineError::Broken(_))), "{broken}");
    }
}

/// A span of a call, with the attributes that instrumentations write.
fn span(start_ns: u64, attributes: &[(&str, Value)]) -> Value {
    let attributes = attributes.iter().map(|(key, value)| json!({"key": key, "value": value})).collect::<Vec<_>>();
    json!({"traceId": "5b8efff798038103d269b633813fc60c", "name": "chat m", "kind": 3,
        "startTimeUnixNano": start_ns.to_string(), "endTimeUnixNano": (start_ns + 5).to_string(),
        "attributes": attributes})
}

fn otlp(spans: &[Value]) -> String {
    json!({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {"name": "x"}, "spans": spans}]}]}).to_string()
}

#[test]
fn spans_that_are_calls_of_a_model_are_read() {
    let int = |n: u64| json!({"intValue": n.to_string()});
    let text = |text: &str| json!({"stringValue": text});
    let usage = [("gen_ai.usage.input_tokens", int(450)), ("gen_ai.usage.output_tokens", int(120))];
    let chat = span(1_700_000_000_000_000_123, &[&usage[..], &[("gen_ai.operation.name", text("chat"))]].concat());
    // An agent's span has the sums of its calls.
    let agent = span(1, &[&usage[..], &[("gen_ai.operation.name", text("invoke_agent"))]].concat());
    let old =
        span(2, &[("gen_ai.usage.prompt_tokens", json!({"intValue": 3})), ("gen_ai.usage.completion_tokens", int(4))]);
    let other = span(3, &[("http.request.method", text("GET"))]);
    let line = otlp(&[chat, agent, old, other.clone()]);
    let read = records(&reader(&line), &line).unwrap_or_else(|why| panic!("{why}"));
    let found: Vec<_> = read.iter().map(facts).collect();
    assert_eq!(found, [(TraceStart::At(1_700_000_000_000_000_123), 450, 120), (TraceStart::At(2), 3, 4)]);
    assert_eq!(read[0].session, read[1].session);
    assert_eq!(records(&reader(&line), &otlp(&[other])), Err(TraceLineError::NoRequest));
}

#[test]
fn conversations_of_sharegpt_with_times_are_read() {
    for time in [json!(1_700_000_000), json!(1_700_000_000_000_u64), json!("2023-11-14T22:13:20Z")] {
        let line = json!({"id": "x", "timestamp": time, "conversations": [
            {"from": "system", "value": "s"}, {"from": "human", "value": "one two"}, {"from": "gpt", "value": "a b c"}]});
        let read = record(&line.to_string());
        assert_eq!(facts(&read), (at_ms(1_700_000_000_000), 2, 3));
        assert_eq!(read.prompt, TracePrompt::Text(b"one two".as_slice().into()));
    }
}

#[test]
fn an_unknown_format_is_one_line_with_the_fields_that_were_found() {
    for (line, found) in [
        (
            r#"{"when": 1, "tokens": 2}"#,
            "found when, tokens; expected mooncake (timestamp, input_length, output_length)",
        ),
        ("a,b,c", "found a, b, c; expected mooncake"),
        (r#"{"timestamp": 1"#, "no fields were found"),
        (r#"[{"timestamp": 1}]"#, "this begins with a list; write lines of JSON"),
        ("", "no fields were found"),
    ] {
        let why = TraceFormat::detect(line).expect_err(line);
        assert!(why.contains(found) && !why.contains('\n'), "{why}");
    }
    let why = TraceLines::new(Some(TraceFormat::Azure), "a,b", None).expect_err("no columns");
    assert_eq!(
        why,
        "a heading without the columns of its format; found a, b; expected azure (TIMESTAMP, ContextTokens, \
         GeneratedTokens)"
    );
    for format in TraceFormat::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
}

#[test]
fn blocks_that_are_not_the_prompt_name_the_flag() {
    let line = |input: u64| format!(r#"{{"timestamp":0,"input_length":{input},"output_length":1,"hash_ids":[1,2,3]}}"#);
    for (input, fits) in [(1024, false), (1025, true), (1536, true), (2047, true), (2048, false), (48, false)] {
        let read = records(&reader(&line(input)), &line(input));
        match read {
            Ok(_) => assert!(fits, "{input}"),
            Err(why) => assert!(!fits && why.to_string().contains("--trace-block"), "{input}: {why}"),
        }
    }
    let small = TraceLines::new(None, &line(48), Some(16)).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(records(&small, &line(48)).map(|read| read.len()), Ok(1));
}

/// Words of a prompt.
fn words(text: &BlockText, turn: &TraceTurn) -> Vec<String> {
    let mut out = Vec::new();
    text.push_prompt(turn, &mut out);
    String::from_utf8_lossy(&out).split(' ').map(str::to_owned).collect()
}

fn turn(number: u64, ids: &[u64], tokens: u64, input_tokens: u64) -> TraceTurn {
    let prompt = TracePrompt::Blocks { ids: ids.into(), tokens };
    let (after, not_before) = (Box::default(), Nanos::ZERO);
    TraceTurn { number, session: None, after, not_before, input_tokens, output_tokens: 1, prompt }
}

proptest! {
    /// Oracle: the lines parsed as values, member by member.
    #[test]
    fn lines_of_mooncake_are_read_as_by_a_naive_reader(
        at in 0..10_000_000_u64, input in 0..5000_u64, output in 0..50_u64, ids in prop::collection::vec(any::<u64>(), 0..12)
    ) {
        let line = json!({"timestamp": at, "input_length": input, "output_length": output, "hash_ids": ids}).to_string();
        let value: Value = serde_json::from_str(&line).unwrap_or_default();
        let (blocks, floor) = (ids.len() as u64, input / 512);
        let fits = ids.is_empty() || blocks == floor || (blocks == floor + 1 && input % 512 > 0);
        match records(&reader(&line), &line) {
            Ok(read) => {
                prop_assert!(fits && input > 0 && output > 0);
                let expected = TraceStart::At(value["timestamp"].as_i64().unwrap_or(-1) * 1_000_000);
                prop_assert_eq!(facts(&read[0]), (expected, input, output));
                prop_assert_eq!(&read[0].prompt, &TracePrompt::Blocks { ids: ids.into(), tokens: 512 });
            }
            Err(TraceLineError::NoTokens) => prop_assert!(input == 0 || output == 0),
            Err(why) => prop_assert!(!fits, "{why}"),
        }
    }

    #[test]
    fn any_line_is_read_or_an_error_in_one_line(
        line in prop_oneof![
            any::<String>(),
            "\\{\"(timestamp|delay|input_length|hash_ids|schema|resourceSpans|conversations)\":[-0-9a-z\\[\\]{}\",.:]{0,20}\\}?",
            "[0-9a-zA-Z ,.:\"-]{0,40}",
        ],
        first in prop::sample::select(vec![
            "Timestamp,Request tokens,Response tokens", "TIMESTAMP,ContextTokens,GeneratedTokens",
            r#"{"timestamp":1,"input_length":1}"#, r#"{"chat_id":1,"timestamp":1}"#, r#"{"resourceSpans":[]}"#,
            r#"{"schema":"x","event_type":"y"}"#, r#"{"conversations":[],"timestamp":1}"#,
        ])
    ) {
        let mut read = Vec::new();
        if let Err(why) = reader(first).push_records(&line, &mut read) {
            prop_assert!(!why.to_string().contains('\n'), "{why}");
        }
        prop_assert!(read.iter().all(|record| record.input_tokens > 0 && record.output_tokens > 0));
        if let Err(why) = TraceFormat::detect(&line) {
            prop_assert!(!why.contains('\n') && why.len() < 1500, "{why}");
        }
    }

    /// Oracle: each block's words on their own, by a map of its identifier.
    #[test]
    fn a_prompt_has_a_word_per_token_and_equal_words_for_equal_blocks(
        prompts in prop::collection::vec((prop::collection::vec(0..6_u64, 0..4), 1..40_u64), 1..6),
        block in 1..50_u64, seed: u64
    ) {
        let text = BlockText::of_short_words(seed);
        let mut known: HashMap<u64, Vec<String>> = HashMap::new();
        for (number, (ids, last)) in (0..).zip(&prompts) {
            let input = (ids.len() as u64) * block + last;
            let found = words(&text, &turn(number, ids, block, input));
            prop_assert_eq!(found.len() as u64, input);
            prop_assert!(found.iter().all(|word| word.len() == 3));
            for (id, words) in ids.iter().zip(found.chunks(usize::try_from(block).unwrap_or(1))) {
                let before = known.entry(*id).or_insert_with(|| words.to_vec());
                prop_assert_eq!(&before[..], words);
            }
        }
        // 16 words of 51 differ for sure.
        if block >= 16 {
            let firsts: std::collections::HashSet<&[String]> = known.values().map(|words| &words[..16]).collect();
            prop_assert_eq!(firsts.len(), known.len());
        }
    }

    /// The last block may be cut short: it is the start of the whole one.
    #[test]
    fn a_block_that_is_not_full_is_the_start_of_the_full_one(full in 1..100_u64, part in 1..100_u64, seed: u64) {
        let text = BlockText::of_short_words(seed);
        let whole = words(&text, &turn(0, &[7], full.max(part), full.max(part)));
        let short = words(&text, &turn(1, &[7], full.max(part), full.min(part)));
        prop_assert_eq!(&whole[..short.len()], &short[..]);
    }
}

#[test]
fn lines_of_agents_have_what_they_wait_for() {
    let header = r#"{"schema":"dynamo.agentic_mooncake","version":2,"block_size":16,"hash_id_scope":"local","source":{"format":"x","digest":"y"}}"#;
    let lines = reader(header);
    assert_eq!((lines.format(), lines.has_heading(), lines.may_have_turns()), (TraceFormat::Agentic, true, true));
    let line = r#"{"request_id":"c","play_id":"p","session_id":"s","model":"m","input_length":20,"output_length":3,"hash_ids":[7,8],"not_before_ms":1500.5,"dependencies":[{"request_id":"a","trigger":"completion","delay_ms":20.0,"relation":"join"},{"request_id":"b","trigger":"dispatch","delay_ms":0,"relation":"spawn"}]}"#;
    let read = records(&lines, line).unwrap().remove(0);
    assert_eq!(facts(&read), (TraceStart::At(1_500_500_000), 20, 3));
    let wait = |name: &str, trigger, ms| TraceDependency {
        request: json_number::NameHash::of(name).0,
        trigger,
        delay: Nanos::from_millis(ms),
    };
    assert_eq!(*read.after, [wait("a", TurnTrigger::End, 20), wait("b", TurnTrigger::Start, 0)]);
    assert_eq!(
        (read.id, read.session),
        (Some(json_number::NameHash::of("c").0), Some(json_number::NameHash::of("p").0))
    );
    let TracePrompt::Blocks { tokens, .. } = read.prompt else { panic!("blocks") };
    assert_eq!(tokens, 16, "as the header has it");
    for broken in
        [line.replace("dispatch", "later"), line.replace("20.0", "-1"), line.replace("\"play_id\":\"p\",", "")]
    {
        assert!(matches!(records(&lines, &broken), Err(TraceLineError::Broken(_))), "{broken}");
    }
    let other = TraceLines::new(None, &header.replace(":2,", ":3,"), None).unwrap_err();
    assert!(other.contains("version 3, and not dynamo.agentic_mooncake version 2"), "{other}");
    // The first version has the same members as Mooncake, and lists of requests.
    let old = record(
        r#"{"request_id":"c","session_id":"s","input_length":4,"output_length":1,"wait_for":["a","b"],"delay":2,"tool_wait_ms":3}"#,
    );
    assert_eq!(*old.after, [wait("a", TurnTrigger::End, 5), wait("b", TurnTrigger::End, 5)]);
    assert_eq!(old.start, TraceStart::Delay(Nanos::ZERO));
}

/// Turn that is waited for, whether for its end, and the time after that.
type Wait = (usize, bool, u64);

/// Session whose turns wait for earlier ones.
fn session(turns: &[(u64, Vec<Wait>)]) -> TraceSession {
    let mut all = turns.iter().enumerate().map(|(number, (not_before, after))| TraceTurn {
        after: after
            .iter()
            .map(|(of, is_end, delay)| TurnDependency {
                turn: (of % number.max(1)) as u32,
                trigger: if *is_end { TurnTrigger::End } else { TurnTrigger::Start },
                delay: Nanos(*delay),
            })
            .filter(|_| number > 0)
            .collect(),
        not_before: Nanos(*not_before),
        ..turn(number as u64, &[], 1, 1)
    });
    TraceSession { client: 0, arrival: 0, first: all.next().unwrap(), later: all.collect() }
}

/// Starts of all turns by recursion: a naive oracle.
fn start_of(session: &TraceSession, took: &[u64], begun: u64, number: usize) -> u64 {
    let turn = session.turn(number).unwrap();
    let waits = turn.after.iter().map(|wait| {
        let start = start_of(session, took, begun, wait.turn as usize);
        let over = if wait.trigger == TurnTrigger::End { start + took[wait.turn as usize] } else { start };
        over + wait.delay.0
    });
    waits.max().unwrap_or(0).max(begun + turn.not_before.0)
}

proptest! {
    /// A server that takes a given time for each turn, in virtual time.
    #[test]
    fn each_turn_starts_when_all_that_it_waits_for_is_over(
        turns in prop::collection::vec(
            (0_u64..50, prop::collection::vec((0_usize..9, any::<bool>(), 0_u64..30), 0..3)), 1..9),
        took in prop::collection::vec(0_u64..40, 9),
        begun in 0_u64..100,
    ) {
        let session = session(&turns);
        let mut play = SessionPlay::new(session.clone(), Nanos(begun));
        let (mut now, mut ends, mut starts) = (begun, std::collections::BTreeSet::new(), HashMap::new());
        let is_ok = loop {
            match play.next(Nanos(now)) {
                PlayStep::Send(turn, at) => {
                    prop_assert!(starts.insert(turn as usize, at.0).is_none() && at.0 <= now);
                    ends.insert((at.0 + took[turn as usize], turn));
                    prop_assert!(!play.waits_for_one() || ends.len() == 1);
                }
                PlayStep::End { ok } => break ok,
                PlayStep::WaitUntil(at) if ends.first().is_none_or(|(end, _)| *end >= at.0) => now = at.0,
                PlayStep::WaitUntil(_) | PlayStep::Await => {
                    let (end, turn) = ends.pop_first().expect("something is in flight");
                    now = end;
                    play.ended(turn, Nanos(end), true);
                }
            }
        };
        prop_assert!(is_ok && ends.is_empty());
        let expected: HashMap<usize, u64> =
            (0..turns.len()).map(|number| (number, start_of(&session, &took, begun, number))).collect();
        prop_assert_eq!(starts, expected);
    }
}

#[test]
fn a_session_with_a_failure_sends_nothing_more_and_ends_with_what_is_in_flight() {
    // Two calls of tools after the first turn, and a last one that joins them.
    let ends = |turns: &[usize]| turns.iter().map(|turn| (*turn, true, 5)).collect::<Vec<_>>();
    let all = session(&[(0, vec![]), (0, ends(&[0])), (0, ends(&[0])), (0, ends(&[1, 2]))]);
    let mut play = SessionPlay::new(all, Nanos(10));
    assert_eq!(play.next(Nanos(9)), PlayStep::WaitUntil(Nanos(10)));
    assert_eq!(play.next(Nanos(12)), PlayStep::Send(0, Nanos(10)));
    assert!(play.waits_for_one());
    play.ended(0, Nanos(20), true);
    assert_eq!([play.next(Nanos(25)), play.next(Nanos(25))], [1, 2].map(|turn| PlayStep::Send(turn, Nanos(25))));
    assert_eq!((play.next(Nanos(26)), play.waits_for_one()), (PlayStep::Await, false));
    play.ended(1, Nanos(30), false);
    assert_eq!(play.next(Nanos(30)), PlayStep::Await);
    play.ended(2, Nanos(40), true);
    assert_eq!(play.next(Nanos(40)), PlayStep::End { ok: false });
}
