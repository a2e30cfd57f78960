//! Streams of a run: how they ended, their events, and tokens of language models.

use super::plots::percentiles;
use super::stream_plots::stream_course;
use crate::page::{Block, Section};
use crate::streams::{ends, events, goodput, own_part, times, tokens};
use crate::websocket;
use weir_histogram::Histogram;
use weir_measure::Run;

pub(super) fn streams(run: &Run) -> Section {
    let Some(streams) = &run.streams else { return Section::default() };
    let mut sentences = if run.listens() {
        let messages =
            websocket::messages(streams).into_iter().chain(websocket::coalesced(streams)).collect::<Vec<_>>();
        let ends = websocket::ends(run, streams);
        vec![format!("Messages: {}.", messages.join(", ")), format!("Connections: {}.", ends.join(", "))]
    } else {
        vec![format!("Streams: {}.", ends(streams).join(", ")), format!("Events: {}.", events(streams).join(", "))]
    };
    if let Some(llm) = &run.llm {
        sentences.push(format!("Tokens: {}.", tokens(llm).join(", ")));
        sentences.extend(goodput(llm).map(|words| format!("Goodput: {words}.")));
        sentences.push(
            "TTFT counts from the intended start to the first event with a token, TPOT is the time per token after \
             the first, and a chunk gap is the time between two events with tokens."
                .to_owned(),
        );
        let own = own_part(llm);
        if !own.is_empty() {
            sentences.push(format!("Of TTFT: {}.", own.join("; ")));
        }
    }
    let mut blocks: Vec<Block> = sentences.into_iter().map(Block::Text).collect();
    let named = histograms(run);
    let named: Vec<(&str, &Histogram)> = named.iter().map(|(name, times)| (*name, times)).collect();
    if !named.is_empty() {
        let mut chart = percentiles(&named);
        chart.title = if run.listens() { "Percentiles of messages" } else { "Percentiles of streams" }.into();
        chart.x.name = "fraction at most as long".into();
        blocks.push(Block::Chart(chart));
    }
    blocks.extend(stream_course(run));
    let (title, of, all) = match run.listens() {
        true => ("Messages", "Times of messages", websocket::times(run)),
        false => ("Streams", "Times of streams", times(run)),
    };
    blocks.extend(super::tables::spreads(of, &all).map(Block::Table));
    Section::new(title, blocks)
}

/// Histograms by their names, without the empty ones.
fn histograms(run: &Run) -> Vec<(&'static str, Histogram)> {
    let of_llm = run.llm.iter().filter(|llm| llm.chunks > 0).flat_map(|llm| {
        [
            ("TTFT", llm.ttft_times()),
            ("TPOT", llm.tpot_times()),
            ("chunk gap", llm.chunk_gaps()),
            ("end to end", llm.e2e_times()),
        ]
    });
    let of_streams =
        run.streams.iter().flat_map(|streams| [("first event", streams.first_event_times()), ("gap", streams.gaps())]);
    let named: Vec<_> = of_llm.collect();
    let named = if named.is_empty() { of_streams.collect() } else { named };
    let is_filled = |histogram: &Histogram| histogram.count() > 0;
    named.into_iter().filter_map(|(name, times)| Some((name, times.ok().filter(is_filled)?))).collect()
}
