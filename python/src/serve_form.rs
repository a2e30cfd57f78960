//! Python arguments of `weir.serve` -> [`ServeOptions`].

use std::path::PathBuf;
use std::str::FromStr;

use pyo3::prelude::*;
use weir::base::{Nanos, units};
use weir::limits::models::{LimitModel, LimitWindow};
use weir::machine::logger::Logger;
use weir::serve::llm::TokenRange;
use weir::serve::ratelimit::{OneWayDelay, RateLimitHeaderSet};
use weir::serve::{
    ServeOptions, TestService, functions, grpc, httpbin, llm, ratelimit, read_body, read_delay, shop, sleep, stream,
    work, ws,
};
use weir::server::{AccessLogOptions, Options};
use weir::workload::mix::Mix;
use weir::workload::phases::Phases;

use crate::errors;
use crate::flag_form::FlagForm;

/// Reader of an argument whose type has its notation.
fn parsed<T: FromStr>(text: &str) -> Result<T, T::Err> {
    text.parse()
}

fn time(text: &str) -> Result<Nanos, String> {
    units::time(text).map(Nanos::from)
}

/// Options of a service, by its name and its arguments.
pub(crate) fn serve_options(service: &str, mut form: FlagForm, logger: Logger) -> PyResult<ServeOptions> {
    let mut seed = 0;
    form.set("seed", &mut seed, parsed)?;
    let mut server = server(&mut form, logger)?;
    if !matches!(service, "functions" | "sleep") {
        form.set("workers", &mut server.workers, parsed)?;
    }
    let service = match service {
        "work" => TestService::Work(work(&mut form, seed)?),
        "ratelimit" => TestService::Ratelimit(ratelimit(&mut form, seed)?),
        "functions" => TestService::Functions(functions(&mut form)?),
        "shop" => TestService::Shop(shop(&mut form, seed)?),
        "sleep" => TestService::Sleep(sleep(&mut form)?),
        "stream" => TestService::Stream(stream(&mut form, seed)?),
        "llm" => TestService::Llm(llm(&mut form, seed)?),
        "grpc" => TestService::Grpc(grpc(&mut form, seed)?),
        "httpbin" => {
            let mut options = httpbin::Options { seed, ..httpbin::Options::default() };
            form.set("max_body", &mut options.max_body_bytes, parsed)?;
            TestService::Httpbin(options)
        }
        "ws" => TestService::Ws(ws(&mut form, seed)?),
        unknown => {
            let known = "work, ratelimit, functions, shop, sleep, stream, llm, grpc, httpbin or ws";
            return Err(errors::usage(&format!("unknown service '{unknown}'; choose {known}")));
        }
    };
    form.end()?;
    Ok(ServeOptions { service, server })
}

fn server(form: &mut FlagForm, logger: Logger) -> PyResult<Options> {
    let mut options = Options { logger, ..Options::default() };
    form.set("host", &mut options.host, parsed)?;
    form.set("port", &mut options.port, parsed)?;
    options.access_log = form.one("access_log", parsed::<PathBuf>)?.map(AccessLogOptions::json);
    form.set("idle_timeout", &mut options.timeouts.idle, time)?;
    form.set("head_timeout", &mut options.timeouts.head, time)?;
    form.set("stall_timeout", &mut options.timeouts.body, time)?;
    options.timeouts.write = options.timeouts.body;
    form.set("min_rate", &mut options.timeouts.min_bytes_per_s, parsed)?;
    form.set("max_head", &mut options.max_head_bytes, parsed)?;
    form.set("max_headers", &mut options.max_header_fields, parsed)?;
    Ok(options)
}

fn grpc(form: &mut FlagForm, seed: u64) -> PyResult<grpc::Options> {
    let mut options = grpc::Options { seed, ..grpc::Options::default() };
    form.set("delay", &mut options.delay, read_delay)?;
    form.set("unavailable", &mut options.unavailable, units::fraction)?;
    options.has_reflection = !form.switch("no_reflection")?;
    Ok(options)
}

fn work(form: &mut FlagForm, seed: u64) -> PyResult<work::Options> {
    let mut options = work::Options { seed, ..work::Options::default() };
    options.path = form.one("path", parsed)?;
    options.body = form.one("body", read_body)?;
    form.set("delay", &mut options.delay, read_delay)?;
    form.set("slow_delay", &mut options.slow_delay, read_delay)?;
    form.set("mix", &mut options.mix, Mix::read)?;
    form.set("phases", &mut options.phases, Phases::read)?;
    options.slots = form.one("slots", parsed)?;
    options.max_queue = form.one("max_queue", parsed)?;
    options.overflow = form.one("overflow", parsed)?;
    Ok(options)
}

fn ratelimit(form: &mut FlagForm, seed: u64) -> PyResult<ratelimit::Options> {
    let mut options = ratelimit::Options { seed, ..ratelimit::Options::default() };
    let algorithm = form.one("algorithm", LimitModel::read)?.unwrap_or(LimitModel::SlidingLog);
    let limit = |text: &str| LimitWindow::read(text, algorithm);
    options.limits = form.many("limit", limit)?;
    if options.limits.is_empty() {
        options.limits.push(limit(ratelimit::Options::DEFAULT_LIMIT).map_err(|why| errors::usage(&why))?);
    }
    form.set("block_after", &mut options.block_after, parsed)?;
    options.weight_by = form.one("weight_by", parsed)?;
    options.key_count = form.one("keys", parsed)?;
    options.keys = form.many("key", parsed)?;
    form.set("latency_in", &mut options.latency_in, OneWayDelay::read)?;
    form.set("latency_out", &mut options.latency_out, OneWayDelay::read)?;
    form.set("limit_headers", &mut options.headers, RateLimitHeaderSet::read)?;
    options.keep_alive = form.switch("keepalive")?;
    Ok(options)
}

fn functions(form: &mut FlagForm) -> PyResult<functions::Options> {
    let mut options = functions::Options::default();
    form.set("threads", &mut options.threads, parsed)?;
    form.set("max_queue", &mut options.queue, parsed)?;
    form.set("overflow", &mut options.overflow, parsed)?;
    options.libraries = form.many("library", parsed)?;
    form.set("max_response", &mut options.max_response_bytes, parsed)?;
    Ok(options)
}

fn shop(form: &mut FlagForm, seed: u64) -> PyResult<shop::Options> {
    let mut options = shop::Options::default();
    options.rules.seed = seed;
    form.set("items", &mut options.items, parsed)?;
    form.set("max_sessions", &mut options.rules.max_sessions, parsed)?;
    options.rules.rotates_cookie = form.switch("rotate_cookie")?;
    options.rules.needs_csrf = form.switch("csrf")?;
    options.redirects_login = form.switch("redirect_login")?;
    options.uses_gzip = form.switch("gzip")?;
    form.set("delay", &mut options.delay, read_delay)?;
    form.set("slow_delay", &mut options.slow_delay, read_delay)?;
    form.set("mix", &mut options.mix, Mix::read)?;
    form.set("wrong_price", &mut options.wrong_price, units::fraction)?;
    form.set("close", &mut options.close, units::fraction)?;
    Ok(options)
}

fn sleep(form: &mut FlagForm) -> PyResult<sleep::Options> {
    let mut options = sleep::Options::default();
    form.set("threads", &mut options.threads, parsed)?;
    form.set("delay", &mut options.delay, time)?;
    Ok(options)
}

fn stream(form: &mut FlagForm, seed: u64) -> PyResult<stream::Options> {
    let mut options = stream::Options { seed, ..stream::Options::default() };
    form.set("events", &mut options.events, parsed)?;
    form.set("first_delay", &mut options.first_delay, read_delay)?;
    form.set("gap", &mut options.gap, read_delay)?;
    form.set("event_bytes", &mut options.event_bytes, parsed)?;
    form.set("pack", &mut options.pack, parsed)?;
    form.set("split", &mut options.split, parsed)?;
    form.set("split_gap", &mut options.split_gap, time)?;
    options.record = form.one("record", parsed)?;
    form.set("line_end", &mut options.sse.line_end, parsed)?;
    options.sse.has_bom = form.switch("bom")?;
    form.set("comments", &mut options.sse.comments, units::fraction)?;
    options.sse.event_name = form.one("event_name", parsed)?;
    options.sse.has_ids = form.switch("ids")?;
    options.sse.retry = form.one("retry_field", time)?;
    form.set("data_lines", &mut options.sse.data_lines, parsed)?;
    form.set("cut", &mut options.faults.cut, units::fraction)?;
    form.set("half", &mut options.faults.half, units::fraction)?;
    form.set("stall", &mut options.faults.stall, units::fraction)?;
    form.set("stall_time", &mut options.faults.stall_time, read_delay)?;
    Ok(options)
}

fn ws(form: &mut FlagForm, seed: u64) -> PyResult<ws::Options> {
    let mut options = ws::Options { seed, ..ws::Options::default() };
    form.set("delay", &mut options.delay, read_delay)?;
    options.unordered = form.switch("unordered")?;
    form.set("gap", &mut options.gap, read_delay)?;
    form.set("messages", &mut options.messages, parsed)?;
    form.set("message_bytes", &mut options.message_bytes, parsed)?;
    form.set("fragments", &mut options.fragments, parsed)?;
    options.pings = form.switch("pings")?;
    options.subprotocols = form.many("subprotocol", parsed)?;
    options.deflate = form.switch("deflate")?;
    options.no_context = form.switch("no_context")?;
    form.set("max_message", &mut options.max_message_bytes, parsed)?;
    form.set("reject", &mut options.faults.reject, units::fraction)?;
    form.set("cut", &mut options.faults.cut, units::fraction)?;
    form.set("close", &mut options.faults.close, units::fraction)?;
    form.set("close_code", &mut options.faults.close_code, parsed)?;
    form.set("ignore", &mut options.faults.ignore, units::fraction)?;
    Ok(options)
}

fn llm(form: &mut FlagForm, seed: u64) -> PyResult<llm::Options> {
    let mut options = llm::Options { seed, ..llm::Options::default() };
    form.set_all("model", &mut options.models, parsed)?;
    options.api_keys = form.many("api_key", parsed)?;
    form.set("output_tokens", &mut options.output_tokens, TokenRange::parse)?;
    form.set("tokens_per_chunk", &mut options.tokens_per_chunk, parsed)?;
    form.set("max_context", &mut options.max_context, parsed)?;
    options.record = form.one("record", parsed)?;
    form.set("block_tokens", &mut options.block_tokens, parsed)?;
    form.set("slots", &mut options.slots, parsed)?;
    form.set("prefill", &mut options.pace.prefill, read_delay)?;
    form.set("prefill_per_token", &mut options.pace.prefill_per_token, time)?;
    form.set("decode", &mut options.pace.decode, time)?;
    form.set("batch_effect", &mut options.pace.batch_effect, units::fraction)?;
    form.set("jitter", &mut options.pace.jitter, units::fraction)?;
    options.requests_per_minute = form.one("requests_per_minute", parsed)?;
    options.tokens_per_minute = form.one("tokens_per_minute", parsed)?;
    form.set("mix", &mut options.mix, Mix::read)?;
    form.set("slow_delay", &mut options.slow_delay, read_delay)?;
    form.set("stall", &mut options.pace.stall, units::fraction)?;
    form.set("stall_time", &mut options.pace.stall_time, read_delay)?;
    form.set("cut", &mut options.cut, units::fraction)?;
    Ok(options)
}
