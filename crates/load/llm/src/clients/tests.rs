//! Compositions: files, and properties against naive oracles.

use std::collections::HashMap;

use proptest::prelude::*;
use weir_base::Nanos;
use weir_load::steps::ThinkTime;
use weir_pace::schedule::{Arrivals, Burstiness, LoadStage, Schedule, WeibullShape};

use super::*;
use crate::TokenCount;
use crate::trace::{BlockText, TraceSession, TurnTrigger};

fn mix(text: &str) -> ClientMix {
    ClientMix::parse("c.toml", text).unwrap_or_else(|why| panic!("{why}"))
}

#[test]
fn a_client_has_the_values_of_its_table_and_defaults() {
    let read = mix(r#"
        [[client]]
        name = "chat"
        stages = "0-8/1m,8/5m"
        arrivals = "weibull"
        cv = 2.5
        input_tokens = "lognormal 300 2000"
        output_tokens = "exponential 250"
        prefix_tokens = 512
        conversations = "40%"
        turns = "2..8"
        think = "5s"
        [[client]]
        rate = "30/m"
        input_tokens = 9
        "#);
    let stage = |from_per_s, to_per_s, s| LoadStage { from_per_s, to_per_s, length: Nanos::from_secs(s) };
    let chat = LoadClient {
        name: "chat".to_owned(),
        stages: vec![stage(0.0, 8.0, 60), stage(8.0, 8.0, 300)],
        arrivals: WeibullShape::of_variation(2.5).map(Arrivals::Weibull).expect("a shape"),
        input: TokenCount::Lognormal { median: 300, p95: 2000 },
        output: TokenCount::Exponential { mean: 250 },
        prefix_tokens: 512,
        conversations: 0.4,
        turns: TokenCount::Uniform { min: 2, max: 8 },
        think: ThinkTime::Constant(Nanos::from_secs(5)),
    };
    assert_eq!(read.clients[0], chat);
    let other = &read.clients[1];
    assert_eq!((&*other.name, other.stages[0].from_per_s, other.arrivals), ("client 2", 0.5, Arrivals::Poisson));
    assert_eq!((other.input, other.output.to_string()), (TokenCount::Constant(9), "150±10".to_owned()));
    assert!(read.is_endless() && read.has_turns());
    assert!((read.mean_rate() - (7.333_333 + 0.5)).abs() < 1e-4, "{}", read.mean_rate());
    let gamma = mix("[[client]]\nrate = 1\ncv = 2\n[[client]]\nrate = 1\nname = \"b\"\narrivals = \"constant\"\n");
    let kinds: Vec<Arrivals> = gamma.clients.iter().map(|client| client.arrivals).collect();
    assert_eq!(kinds, [Burstiness::new(0.25).map(Arrivals::Gamma).expect("a shape"), Arrivals::Constant]);
}

#[test]
fn each_mistake_is_a_line_with_its_place() {
    for (text, expected) in [
        ("", "a composition without clients; write [[client]] with rate = 2"),
        ("[[client]]\n", "a client without rate; write rate = 2, or stages"),
        ("[[client]]\nrate = 0\n", "c.toml:2:8: client[0].rate: invalid rate 0; write sessions per second"),
        ("[[client]]\nrate = 1\nstages = \"1/1s\"\n", "rate and stages cannot be combined; keep one"),
        ("[[client]]\nstages = \"1\"\n", "c.toml:2:10: client[0].stages: invalid stage '1'; write RATE/TIME"),
        ("[[client]]\nrate = 1\narrivals = \"uneven\"\n", "unknown value \"uneven\""),
        ("[[client]]\nrate = 1\narrivals = \"gamma\"\n", "arrivals in bursts without cv"),
        ("[[client]]\nrate = 1\narrivals = \"poisson\"\ncv = 2\n", "cv is for gamma and weibull"),
        ("[[client]]\nrate = 1\ncv = 20\n", "invalid coefficient of variation 20; write a number from 0.01 to 10"),
        ("[[client]]\nrate = 1\ninput_tokens = \"many\"\n", "invalid number of tokens \"many\"; write e.g. 550"),
        ("[[client]]\nrate = 1\nconversations = 2\n", "invalid fraction 2; write e.g. \"30%\""),
        ("[[client]]\nrate = 1\nturns = 3\n", "turns without conversations; write the share"),
        ("[[client]]\nrate = 1\nthink = \"soon\"\n", "invalid think time 'soon'"),
        (
            "[[client]]\nrate = 1\n[[client]]\nrate = 1\nname = \"client 1\"\n",
            "a second client with the name \"client 1\"",
        ),
        ("[[client]]\nrate = 1\nratio = 2\n", "unknown key"),
        ("[[client]]\nrate = 1\nname = \"\"\n", "invalid name \"\"; write 1 to 64 characters"),
        ("[load]\nrate = 1\n", "unknown key"),
        ("[[client]]\nrate =\n", "invalid TOML"),
    ] {
        let why = ClientMix::parse("c.toml", text).expect_err(text);
        assert!(why.contains(expected) && why.lines().all(|line| line.starts_with("c.toml:")), "{text}: {why}");
    }
    let many: String = (0..=ClientMix::MAX_CLIENTS).map(|_| "[[client]]\nrate = 1\n").collect();
    assert!(ClientMix::parse("c.toml", &many).is_err_and(|why| why.contains("more than 256 clients")));
}

fn arrivals() -> impl Strategy<Value = Arrivals> {
    prop_oneof![
        Just(Arrivals::Poisson),
        Just(Arrivals::Constant),
        (0.3..3.0_f64).prop_map(|cv| Burstiness::of_variation(cv).map(Arrivals::Gamma).expect("a shape")),
        (0.3..3.0_f64).prop_map(|cv| WeibullShape::of_variation(cv).map(Arrivals::Weibull).expect("a shape")),
    ]
}

fn client() -> impl Strategy<Value = LoadClient> {
    let stages = prop::collection::vec((0..40_u32, 0..40_u32, 1..2_000_u64), 1..4);
    let lengths = (1..60_u64, 1..40_u64, 0..80_u64);
    (stages, arrivals(), lengths, 0.0..1.0_f64, 0..5_u64).prop_map(
        |(stages, arrivals, (input, output, prefix_tokens), conversations, think)| LoadClient {
            name: String::new(),
            stages: stages
                .into_iter()
                .map(|(from, to, ms)| LoadStage {
                    from_per_s: f64::from(from),
                    to_per_s: f64::from(to),
                    length: Nanos::from_millis(ms),
                })
                .collect(),
            arrivals,
            input: TokenCount::Uniform { min: 1, max: input },
            output: TokenCount::Exponential { mean: output },
            prefix_tokens,
            conversations,
            turns: TokenCount::Uniform { min: 1, max: 5 },
            think: ThinkTime::Exponential { mean: Nanos::from_millis(think + 1) },
        },
    )
}

fn mixes() -> impl Strategy<Value = ClientMix> {
    prop::collection::vec(client(), 1..6).prop_map(|mut clients| {
        clients.iter_mut().enumerate().for_each(|(at, client)| client.name = format!("c{at}"));
        ClientMix { clients }
    })
}

fn sessions(mix: &ClientMix, seed: u64) -> Vec<(Nanos, TraceSession)> {
    ClientSessions::new(mix.clone(), seed).collect()
}

/// Sessions of one client, by its name, without the numbers of their requests, which are those of all clients.
fn of_client(mix: &ClientMix, seed: u64, name: &str) -> Vec<(Nanos, TraceSession)> {
    let client = mix.clients.iter().position(|client| client.name == name).expect("a client");
    let own = sessions(mix, seed).into_iter().filter(|(_, session)| session.client as usize == client);
    own.map(|(at, mut session)| {
        session.client = 0;
        session.first.number = 0;
        session.later.iter_mut().for_each(|turn| turn.number = 0);
        (at, session)
    })
    .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Oracle: the arrivals of each client alone, all in one list, sorted by time and client.
    #[test]
    fn arrivals_are_those_of_each_client_in_the_order_of_time(mix in mixes(), seed: u64) {
        let mut naive: Vec<(Nanos, usize, u64)> = Vec::new();
        for (at, client) in mix.clients.iter().enumerate() {
            let own = Schedule::new(client.stages.clone(), client.arrivals, client.seed(seed));
            naive.extend(own.map(|arrival| (arrival.intended, at, arrival.number)));
        }
        naive.sort_unstable();
        let found = ClientArrivals::new(&mix, seed).map(|one| (one.at, one.client, one.number));
        prop_assert_eq!(found.collect::<Vec<_>>(), naive);
    }

    #[test]
    fn what_a_client_sends_does_not_depend_on_the_others(mix in mixes(), seed: u64) {
        for client in &mix.clients {
            let alone = ClientMix { clients: vec![client.clone()] };
            prop_assert_eq!(of_client(&mix, seed, &client.name), of_client(&alone, seed, &client.name));
        }
        let reversed = ClientMix { clients: mix.clients.iter().rev().cloned().collect() };
        let first = &mix.clients[0].name;
        prop_assert_eq!(of_client(&mix, seed, first), of_client(&reversed, seed, first));
    }

    /// Oracle: the texts of the prompts themselves, word by word.
    #[test]
    fn prompts_have_their_lengths_and_share_what_they_have_in_common(mix in mixes(), seed: u64) {
        let text = BlockText::of_short_words(seed);
        let mut prefixes: HashMap<u32, Vec<String>> = HashMap::new();
        let mut numbers = Vec::new();
        for (_, session) in sessions(&mix, seed).into_iter().take(60) {
            let client = &mix.clients[session.client as usize];
            let mut before: Vec<String> = Vec::new();
            let mut said = client.prefix_tokens;
            for (at, turn) in session.turns().enumerate() {
                let mut out = Vec::new();
                text.push_prompt(turn, &mut out);
                let words: Vec<String> =
                    String::from_utf8(out).expect("a text").split(' ').map(str::to_owned).collect();
                prop_assert_eq!(words.len() as u64, turn.input_tokens);
                // All that was asked before, the prefix included, and room for the response.
                prop_assert!(words.starts_with(&before), "{:?} {:?}", before, words);
                let new = turn.input_tokens - said;
                let is_drawn = matches!(client.input, TokenCount::Uniform { min, max } if (min..=max).contains(&new));
                prop_assert!(is_drawn, "{} tokens", new);
                said = turn.input_tokens + turn.output_tokens;
                let prefix = usize::try_from(client.prefix_tokens).expect("a length");
                let shared = prefixes.entry(session.client).or_insert_with(|| words[..prefix].to_vec());
                prop_assert_eq!(&words[..prefix], &shared[..]);
                let waits: Vec<u32> = turn.after.iter().map(|wait| wait.turn).collect();
                prop_assert!(turn.after.iter().all(|wait| wait.trigger == TurnTrigger::End));
                prop_assert_eq!(waits, (0..u32::try_from(at).expect("a number")).rev().take(1).collect::<Vec<_>>());
                numbers.push(turn.number);
                before = words;
            }
            prop_assert!((1..=5).contains(&session.turns().count()));
        }
        prop_assert_eq!(&numbers, &(0..numbers.len() as u64).collect::<Vec<_>>());
    }
}

#[test]
fn the_share_of_conversations_the_turns_and_the_rates_are_those_that_are_asked_for() {
    let mix = mix(r#"
        [[client]]
        name = "talks"
        stages = "10/100s,40/100s"
        conversations = "30%"
        turns = "2..4"
        think = "exponential 2s"
        [[client]]
        name = "asks"
        rate = 5
        "#);
    let all: Vec<_> = sessions_until(&mix, 3, Nanos::from_secs(200));
    let count = |client: u32, from: u64, to: u64| {
        let within = |at: &Nanos| (Nanos::from_secs(from)..Nanos::from_secs(to)).contains(at);
        all.iter().filter(|(at, session)| session.client == client && within(at)).count() as f64
    };
    // Poisson: five standard deviations.
    for (client, from, to, expected) in [(0, 0, 100, 1_000.0), (0, 100, 200, 4_000.0), (1, 0, 200, 1_000.0_f64)] {
        let found = count(client, from, to);
        assert!((found - expected).abs() < 5.0 * expected.sqrt(), "{client}: {found} of {expected}");
    }
    let turns: Vec<usize> =
        all.iter().filter(|(_, session)| session.client == 0).map(|(_, session)| session.turns().count()).collect();
    let talking = turns.iter().filter(|turns| **turns > 1).count() as f64 / turns.len() as f64;
    assert!((talking - 0.3).abs() < 0.03, "{talking}");
    for number in 2..=4 {
        let of_number = turns.iter().filter(|turns| **turns == number).count() as f64 / turns.len() as f64;
        assert!((of_number - 0.1).abs() < 0.02, "{number}: {of_number}");
    }
    assert!(all.iter().all(|(_, session)| session.client == 0 || session.later.is_empty()));
    let delays: Vec<f64> = all
        .iter()
        .flat_map(|(_, session)| session.later.iter().flat_map(|turn| &turn.after))
        .map(|wait| wait.delay.as_secs_f64())
        .collect();
    let mean = delays.iter().sum::<f64>() / delays.len() as f64;
    assert!((mean - 2.0).abs() < 0.3, "{mean}");
}

fn sessions_until(mix: &ClientMix, seed: u64, end: Nanos) -> Vec<(Nanos, TraceSession)> {
    ClientSessions::new(mix.clone(), seed).take_while(|(at, _)| *at < end).collect()
}
