//! `[[client]]` of a file.

use weir_base::Nanos;
use weir_base::units;
use weir_document::read::{DocumentNode, DocumentTable};
use weir_load::steps::ThinkTime;
use weir_pace::notation;
use weir_pace::schedule::{Arrivals, Burstiness, LoadStage, WeibullShape};

use super::load_client::{LoadClient, MAX_TURNS, MIN_TURNS};
use crate::TokenCount;

/// Length of a rate without an end: ten years.
pub(super) const ENDLESS: Nanos = Nanos::from_secs(10 * 365 * 86_400);
/// Tokens of a prompt, and of a response, where the file has none: as of random prompts.
const DEFAULT_INPUT: TokenCount = TokenCount::Normal { mean: 550, deviation: 150 };
const DEFAULT_OUTPUT: TokenCount = TokenCount::Normal { mean: 150, deviation: 10 };
/// Turns of a conversation where the file has none.
const DEFAULT_TURNS: TokenCount = TokenCount::Uniform { min: 2, max: 6 };
/// Maximum sessions per second.
const MAX_RATE: f64 = 1e6;
/// Maximum tokens of a prefix.
const MAX_PREFIX: u64 = 1_000_000;
/// Maximum characters of a name.
const MAX_NAME: usize = 64;
/// Remedy of a number of tokens.
const TOKENS: &str =
    r#"write e.g. 550, "400..700", "lognormal 500 2000" (median, p95), "exponential 300" or "pareto 50 900""#;

/// Reads the client number `at` of a file; `None`, with an error, if it is none.
pub(super) fn client(node: &DocumentNode<'_>, at: usize) -> Option<LoadClient> {
    let table = node.table()?;
    let name = table.get("name").and_then(|node| self::name(&node)).unwrap_or_else(|| format!("client {}", at + 1));
    let tokens = |key, default| table.get(key).and_then(|node| self::tokens(&node)).unwrap_or(default);
    let (input, output) = (tokens("input_tokens", DEFAULT_INPUT), tokens("output_tokens", DEFAULT_OUTPUT));
    let turns = table.get("turns");
    let conversations = table.get("conversations").and_then(|node| fraction(&node));
    if let (Some(turns), None) = (&turns, conversations) {
        turns.error(
            "turns without conversations",
            r#"write the share of sessions with several turns, conversations = "30%""#,
        );
    }
    let client = LoadClient {
        name,
        stages: stages(&table),
        arrivals: arrivals(&table),
        input,
        output,
        prefix_tokens: table.get("prefix_tokens").and_then(|node| node.integer(0..=MAX_PREFIX)).unwrap_or(0),
        conversations: conversations.unwrap_or(0.0),
        turns: turns.and_then(|node| self::turns(&node)).unwrap_or(DEFAULT_TURNS),
        think: table.get("think").and_then(|node| think(&node)).unwrap_or_default(),
    };
    table.check_unknown_keys();
    Some(client)
}

fn name(node: &DocumentNode<'_>) -> Option<String> {
    let name = node.string()?;
    if name.trim().is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        node.expected("name", format!("write 1 to {MAX_NAME} characters"));
    }
    Some(name.to_owned())
}

/// Rate over time: `rate`, from begin to end, or `stages`.
fn stages(table: &DocumentTable<'_>) -> Vec<LoadStage> {
    let rate = table.get("rate").map(|node| {
        let text = node.value().as_str().map_or_else(|| node.display(), str::to_owned);
        let rate = units::rate(&text).ok().filter(|rate| *rate > 0.0 && *rate <= MAX_RATE);
        if rate.is_none() {
            node.expected("rate", r#"write sessions per second as 0.5, "2/s" or "30/m", at most 1M"#);
        }
        vec![LoadStage { from_per_s: rate.unwrap_or(1.0), to_per_s: rate.unwrap_or(1.0), length: ENDLESS }]
    });
    let stages = table.get("stages").map(|node| {
        let parsed = node.string().map(notation::stages);
        if let Some(Err(why)) = &parsed {
            let (what, remedy) = why.split_once("; ").unwrap_or((why, ""));
            node.error(what, remedy);
        }
        parsed.and_then(Result::ok).unwrap_or_default()
    });
    match (rate, stages) {
        (Some(rate), None) => rate,
        (None, Some(stages)) => stages,
        (Some(_), Some(_)) => {
            table
                .error("rate and stages cannot be combined", r#"keep one; a rate over time is stages = "0-8/1m,8/5m""#);
            Vec::new()
        }
        (None, None) => {
            table.error("a client without rate", r#"write rate = 2, or stages = "0-8/1m,8/5m""#);
            Vec::new()
        }
    }
}

/// Arrival process: `arrivals`, and `cv` of its gaps.
fn arrivals(table: &DocumentTable<'_>) -> Arrivals {
    const KINDS: [&str; 4] = ["poisson", "constant", "gamma", "weibull"];
    let kind = table.get("arrivals").and_then(|node| node.choice(&KINDS.map(|kind| (kind, kind))));
    let variation = table.get("cv");
    let cv = variation.as_ref().and_then(|node| node.number(0.0..=1e9));
    let (kind, cv) = match (kind, cv) {
        (Some("poisson" | "constant"), Some(_)) => {
            let problem = "cv is for gamma and weibull";
            table.error(problem, "leave it out: poisson has 1, constant has 0");
            return Arrivals::Poisson;
        }
        (Some("constant"), None) => return Arrivals::Constant,
        (Some("gamma" | "weibull"), None) => {
            table
                .error("arrivals in bursts without cv", "write the standard deviation of gaps by their mean, cv = 2.5");
            return Arrivals::Poisson;
        }
        (_, None) => return Arrivals::Poisson,
        (kind, Some(cv)) => (kind, cv),
    };
    let made = match kind {
        Some("weibull") => WeibullShape::of_variation(cv).map(Arrivals::Weibull),
        _ => Burstiness::of_variation(cv).map(Arrivals::Gamma),
    };
    made.unwrap_or_else(|why| {
        let (what, remedy) = why.split_once("; ").unwrap_or((&why, ""));
        if let Some(node) = &variation {
            node.error(what, remedy);
        }
        Arrivals::Poisson
    })
}

fn tokens(node: &DocumentNode<'_>) -> Option<TokenCount> {
    let text = node.value().as_str().map_or_else(|| node.display(), str::to_owned);
    let count = text.parse().ok();
    if count.is_none() {
        node.expected("number of tokens", TOKENS);
    }
    count
}

/// Turns of a conversation. Draws of a distribution are cut to what is possible, a number has to be.
fn turns(node: &DocumentNode<'_>) -> Option<TokenCount> {
    let count = tokens(node)?;
    let is_possible = !matches!(count, TokenCount::Constant(turns) if !(MIN_TURNS..=MAX_TURNS).contains(&turns));
    if !is_possible {
        node.expected("number of turns", format!("write {MIN_TURNS} to {MAX_TURNS}; conversations = 0 has none"));
    }
    is_possible.then_some(count)
}

/// Fraction in [0, 1]: `"30%"` or 0.3.
fn fraction(node: &DocumentNode<'_>) -> Option<f64> {
    let text = node.value().as_str().map_or_else(|| node.display(), str::to_owned);
    let fraction = units::fraction(&text).ok().filter(|fraction| *fraction <= 1.0);
    if fraction.is_none() {
        node.expected("fraction", r#"write e.g. "30%" or 0.3"#);
    }
    fraction
}

fn think(node: &DocumentNode<'_>) -> Option<ThinkTime> {
    let parsed = ThinkTime::parse(node.string()?);
    if let Err(why) = &parsed {
        let (what, remedy) = why.split_once("; ").unwrap_or((why, ""));
        node.error(what, remedy);
    }
    parsed.ok()
}
