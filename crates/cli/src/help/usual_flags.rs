//! Flags of most runs with a short text each, for `-h` of commands that have many.

/// What `-h` of a command shows.
pub(super) struct ShortHelp {
    pub(super) command: &'static str,
    /// Usage after the command's name.
    pub(super) usage: &'static str,
    /// Name of the argument and what it is.
    pub(super) argument: (&'static str, &'static str),
    pub(super) groups: [FlagGroup; 4],
    /// Topic of `--help` that the last lines name.
    pub(super) topic: &'static str,
}

/// Heading, and flags below it: name and text.
pub(super) type FlagGroup = (&'static str, &'static [(&'static str, &'static str)]);

const URL: (&str, &str) = ("[URL]", "http://localhost:8080/path or grpc://localhost:50051/pkg.Service/Method");

const SCENARIO: FlagGroup = (
    "Scenario",
    &[
        ("scenario", "play a file: hurl, k6, Locust, wrk, HAR, Postman, JMX"),
        ("data", "give each iteration a row of this CSV, JSON or JSONL"),
        ("think", "wait between steps: 1s, 1s..3s, exponential 2s"),
    ],
);

const REQUEST: FlagGroup = (
    "Request",
    &[
        ("method", "use this method [default: GET; POST with a body]"),
        ("header", "add a request header; repeatable"),
        ("body", "send this body, @FILE, or @- for stdin"),
        ("auth", "send basic authentication"),
        ("timeout", "time out a request after TIME [default: 30s]"),
        ("check", "check each response with a hurl assert"),
        ("insecure", "skip certificate verification"),
    ],
);

/// What `-h` of each command with many flags shows.
pub(super) const SHORT_HELPS: [ShortHelp; 4] = [
    ShortHelp {
        command: "load",
        usage: "[OPTIONS] [URL]",
        argument: URL,
        groups: [
            (
                "Load",
                &[
                    ("connections", "open N connections (closed loop) [default: 50]"),
                    ("duration", "run for TIME: 30s, 5m, 2h [default: 10s]"),
                    ("requests", "stop after N requests, or iterations of a scenario"),
                    ("rate", "send requests at a fixed rate (open loop): 500, 10k"),
                    ("stages", "change the rate over time: 0-200/30s,200/1m"),
                    ("users", "run N users, each with its own connection"),
                    ("ramp-up", "start users evenly over TIME [default: 0s]"),
                ],
            ),
            SCENARIO,
            REQUEST,
            (
                "Result",
                &[
                    ("slo", "set an objective: \"p99<200ms\"; exit with 1 if missed"),
                    ("warmup", "exclude the first TIME from the result [default: 0s]"),
                    ("format", "print as ab, wrk, jmeter, k6 or json [default: text]"),
                    ("out", "write the run to FILE as JSON; - is stdout"),
                    ("html", "write the HTML report to FILE"),
                    ("junit", "write the objectives to FILE as JUnit XML"),
                    ("web", "serve a page to watch and change the load"),
                    ("tui", "show a full-screen view in the terminal"),
                ],
            ),
        ],
        topic: "grpc",
    },
    ShortHelp {
        command: "llm",
        usage: "[OPTIONS] <URL>",
        argument: ("<URL>", "the server's, e.g. http://localhost:8000; the API's path is added"),
        groups: [
            (
                "Endpoint",
                &[
                    ("model", "request this model; most APIs need it"),
                    ("api", "use this API: chat, messages, ollama, tgi, ..."),
                    ("api-key-env", "read the API key from this environment variable"),
                    ("header", "add a request header; repeatable"),
                    ("timeout", "time out a request after TIME [default: 10m]"),
                ],
            ),
            (
                "Prompts",
                &[
                    ("dataset", "send prompts from FILE [default: random]"),
                    ("input-tokens", "make prompts this long [default: 550+-150]"),
                    ("output-tokens", "limit responses to 150, 150+-10 or 100..200"),
                    ("trace", "replay the requests of FILE at their times"),
                ],
            ),
            (
                "Load",
                &[
                    ("concurrency", "hold N conversations at once [default: 8]"),
                    ("rate", "start conversations at a fixed rate: 4, 0.5, 30/m"),
                    ("stages", "change the rate over time: 0-8/1m,8/5m"),
                    ("sweep", "run once per value, e.g. concurrency=1,4,16"),
                    ("capacity", "find the highest value that meets the objectives"),
                    ("num-prompts", "stop after N conversations"),
                    ("duration", "run for TIME: 30s, 5m, 2h [default: 30s]"),
                    ("warmup", "exclude the first TIME [default: 0s]"),
                ],
            ),
            (
                "Result",
                &[
                    ("goodput", "count good requests: \"ttft:500ms tpot:50ms\""),
                    ("slo", "set an objective: \"ttft.p99<500ms\""),
                    ("tokenizer", "count tokens with this tokenizer.json"),
                    ("format", "print as json or vllm [default: text]"),
                    ("out", "write the run to FILE as JSON; - is stdout"),
                    ("html", "write the HTML report to FILE"),
                    ("web", "serve a page to watch and change the load"),
                    ("tui", "show a full-screen view in the terminal"),
                ],
            ),
        ],
        topic: "connection",
    },
    ShortHelp {
        command: "replay",
        usage: "[OPTIONS] <LOG>...",
        argument: ("<LOG>...", "access logs in chronological order, also .gz; - is stdin"),
        groups: [
            (
                "Log",
                &[
                    ("log-pattern", "read lines in this format, or nginx pattern"),
                    ("from", "start at a time, or 10m after the first request"),
                    ("to", "stop before this time"),
                    ("filter", "send only what matches: 'status<500'; repeatable"),
                    ("unsafe", "send POST, PUT, PATCH and DELETE, too"),
                    ("recorded-headers", "send Host, User-Agent and Referer as recorded"),
                    ("dry-run", "print counts of the log without sending anything"),
                ],
            ),
            (
                "Request",
                &[
                    ("target", "send requests to this URL"),
                    ("header", "add a request header; repeatable"),
                    ("timeout", "time out a request after TIME [default: 30s]"),
                    ("insecure", "skip certificate verification"),
                ],
            ),
            (
                "Load",
                &[
                    ("speed", "replay faster or slower, e.g. 2x, 0.5 [default: 1]"),
                    ("requests", "stop after N requests [default: all of the log]"),
                    ("duration", "run for TIME [default: as long as the log]"),
                    ("warmup", "exclude the first TIME from the result [default: 0s]"),
                ],
            ),
            (
                "Result",
                &[
                    ("slo", "set an objective: \"p99<200ms\"; exit with 1 if missed"),
                    ("format", "print as ab, wrk, jmeter, k6 or json [default: text]"),
                    ("out", "write the run to FILE as JSON; - is stdout"),
                    ("html", "write the HTML report to FILE"),
                    ("web", "serve a page to watch and change the load"),
                    ("tui", "show a full-screen view in the terminal"),
                ],
            ),
        ],
        topic: "connection",
    },
    ShortHelp {
        command: "capacity",
        usage: "[OPTIONS] [URL]",
        argument: URL,
        groups: [
            (
                "Search",
                &[
                    ("slo", "set an objective to meet, e.g. \"p99<200ms\""),
                    ("closed", "search over users, not over requests per second"),
                    ("from", "start at this load [default: 100/s, or 1 user]"),
                    ("to", "search up to this load"),
                    ("precision", "stop when the bounds are this close [default: 3%]"),
                    ("step-time", "spend at most TIME per load level [default: 30s]"),
                    ("max-time", "end the search after TIME"),
                    ("warmup", "exclude the start of each load level [default: 1s]"),
                    ("recovery", "test whether the service comes back by itself"),
                    ("pid", "report the CPU use of the service with this ID"),
                ],
            ),
            SCENARIO,
            REQUEST,
            (
                "Result",
                &[
                    ("format", "print as json [default: text]"),
                    ("out", "write the result to FILE as JSON"),
                    ("html", "write the HTML report to FILE"),
                ],
            ),
        ],
        topic: "recovery",
    },
];
