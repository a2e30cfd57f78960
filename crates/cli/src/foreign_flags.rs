//! Flags of other load generators that weir has not, with what gives the same here. Flags that weir has with another
//! meaning are not here: a command with them means weir's.

use clap::Command;

/// Flag of another tool.
#[derive(Debug)]
struct ForeignFlag {
    flag: &'static str,
    /// Tools that have it.
    tools: &'static str,
    /// Flag of weir with the same effect, or the reason why none is needed.
    own: &'static str,
}

const fn foreign(flag: &'static str, tools: &'static str, own: &'static str) -> ForeignFlag {
    ForeignFlag { flag, tools, own }
}

const BODY_FILE: &str = "--body @FILE";
const ALWAYS_PRINTED: &str = "leave it out; percentiles are always printed";

/// Flags of ab, wrk, wrk2, hey, oha, bombardier, vegeta, k6, Locust, JMeter and autocannon,
/// and of load generators for language models.
const FOREIGN_FLAGS: [ForeignFlag; 57] = [
    foreign("-R", "wrk2", "--rate"),
    foreign("-L", "wrk2", ALWAYS_PRINTED),
    foreign("--latency", "wrk", ALWAYS_PRINTED),
    foreign("--latencies", "bombardier", ALWAYS_PRINTED),
    foreign("--script", "wrk", "--scenario"),
    foreign("-z", "hey and oha", "--duration"),
    foreign("-D", "hey and oha", BODY_FILE),
    foreign("-x", "hey and oha", "--connect-to HOST:PORT; there are no proxies"),
    foreign("--cpus", "hey", "--threads"),
    foreign("--disable-keepalive", "hey and oha", "--no-keepalive"),
    foreign("--disable-redirects", "hey", "leave it out; redirects are not followed"),
    foreign("--redirect", "oha", "--max-redirects in a scenario"),
    foreign("--latency-correction", "oha", "--rate; response times then count from the intended start"),
    foreign("--no-tui", "oha", "--quiet"),
    foreign("--query-per-second", "oha", "--rate"),
    foreign("--burst-rate", "oha", "--stages"),
    foreign("-p", "ab", BODY_FILE),
    foreign("--postfile", "ab", BODY_FILE),
    foreign("-T", "ab and hey", "--header 'Content-Type: TYPE'"),
    foreign("-C", "ab", "--header 'Cookie: NAME=VALUE'"),
    foreign("-A", "ab", "--auth"),
    foreign("-g", "ab", "--jtl"),
    foreign("-w", "ab", "--html"),
    foreign("-i", "k6, and in ab HEAD", "--requests, or --method HEAD"),
    foreign("-u", "k6 and Locust", "--users"),
    foreign("--vus", "k6", "--users"),
    foreign("--stage", "k6", "--stages"),
    foreign("--iterations", "k6", "--requests"),
    foreign("--rps", "k6", "--rate"),
    foreign("--secret-source", "k6", "-e K6_SECRET_SOURCE=file=FILE"),
    foreign("--no-connection-reuse", "k6", "--no-keepalive"),
    foreign("--insecure-skip-tls-verify", "k6", "--insecure"),
    foreign("--spawn-rate", "Locust", "--ramp-up TIME"),
    foreign("--run-time", "Locust", "--duration"),
    foreign("--locustfile", "Locust", "--scenario"),
    foreign("--headless", "Locust", "leave it out; --web shows the page"),
    foreign("--autostart", "Locust", "leave it out; a load starts at once"),
    foreign("--only-summary", "Locust", "--quiet"),
    foreign("--host", "Locust", "the URL before the flags"),
    foreign("-J", "JMeter", "--variable NAME=VALUE"),
    foreign("-G", "JMeter", "--variable NAME=VALUE"),
    foreign("-l", "JMeter", "--jtl"),
    foreign("-E", "ab", "--cert"),
    foreign("--body-file", "bombardier", BODY_FILE),
    foreign("--fasthttp", "bombardier", "leave it out"),
    foreign("--http1", "bombardier", "leave it out"),
    foreign("--print", "bombardier", "--format"),
    foreign("--amount", "autocannon", "--requests"),
    foreign("--workers", "autocannon and vegeta", "--threads"),
    foreign("--pipelining", "autocannon", "--pipeline"),
    foreign("--backend", "vLLM", "--api"),
    foreign("--max-concurrency", "vLLM", "--concurrency"),
    foreign("--random-input-len", "vLLM", "--input-tokens"),
    foreign("--random-output-len", "vLLM", "--output-tokens"),
    foreign("--random-prefix-len", "vLLM", "--prefix-tokens"),
    foreign("--request-count", "AIPerf", "--num-prompts"),
    foreign("--request-rate", "vLLM and AIPerf", "--rate"),
];

/// Flags that vegeta and other Go programs write with one dash.
const ONE_DASH: [&str; 8] = ["rate", "duration", "body", "header", "timeout", "insecure", "connections", "cert"];

/// Hint about a flag that another tool has: `-R is wrk2's: --rate`. None if no tool has it, or the command `asked` has
/// no equivalent.
pub(super) fn foreign_flag(given: &str, asked: &Command) -> Option<String> {
    let given = given.split(['=', ' ']).next()?;
    let found = FOREIGN_FLAGS.iter().find(|foreign| foreign.flag == given)?;
    let has_own = |long: &str| asked.get_arguments().any(|arg| !arg.is_hide_set() && arg.get_long() == Some(long));
    let own = found.own.strip_prefix("--").map(|own| own.split([' ', ';', ',']).next().unwrap_or_default());
    own.is_none_or(has_own).then(|| match found.tools.split_once(", ") {
        Some((tool, other)) => format!("{given} is {tool}'s, {other}: {}", found.own),
        None => format!("{given} is {}'s: {}", found.tools, found.own),
    })
}

/// Argument in the notation of Go's flags: `-rate=50` or `-duration`, with what weir writes.
pub(super) fn one_dash<'a>(args: impl Iterator<Item = &'a str>, asked: &Command) -> Option<String> {
    let name_of = |arg: &'a str| {
        let name = arg.strip_prefix('-')?.split('=').next()?;
        let is_known = asked.get_arguments().any(|own| own.get_long() == Some(name));
        (ONE_DASH.contains(&name) && is_known).then_some(name)
    };
    let name = args.take_while(|arg| *arg != "--").find_map(name_of)?;
    Some(format!("-{name} is vegeta's: --{name}"))
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    fn load() -> Command {
        let longs = ["rate", "duration", "body", "threads", "requests"];
        Command::new("load").args(longs.map(|flag| Arg::new(flag).long(flag)))
    }

    #[test]
    fn a_flag_of_another_tool_has_what_weir_has_for_it() {
        let of = |given: &str| foreign_flag(given, &load());
        assert_eq!(of("-R").as_deref(), Some("-R is wrk2's: --rate"));
        assert_eq!(of("-z").as_deref(), Some("-z is hey and oha's: --duration"));
        assert_eq!(of("--body-file=x").as_deref(), Some("--body-file is bombardier's: --body @FILE"));
        assert_eq!(of("-i").as_deref(), Some("-i is k6's, and in ab HEAD: --requests, or --method HEAD"));
        assert_eq!(
            of("--latency").as_deref(),
            Some("--latency is wrk's: leave it out; percentiles are always printed")
        );
        assert_eq!((of("--vus"), of("-Z")), (None, None), "there is no --users in this command");
    }

    #[test]
    fn flags_with_one_dash_are_found() {
        let of = |args: &[&'static str]| one_dash(args.iter().copied(), &load());
        assert_eq!(of(&["http://h/", "-rate=50"]).as_deref(), Some("-rate is vegeta's: --rate"));
        assert_eq!(of(&["-duration", "5s"]).as_deref(), Some("-duration is vegeta's: --duration"));
        assert_eq!((of(&["-r", "5"]), of(&["-timeout=5"]), of(&["--", "-rate=5"])), (None, None, None));
    }

    #[test]
    fn each_flag_is_there_once() {
        for (at, foreign) in FOREIGN_FLAGS.iter().enumerate() {
            assert!(FOREIGN_FLAGS[..at].iter().all(|other| other.flag != foreign.flag), "{}", foreign.flag);
        }
    }
}
