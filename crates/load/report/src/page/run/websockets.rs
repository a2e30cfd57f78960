//! Connections of WebSocket over time.

use crate::page::{Block, Chart, ChartAxis, ChartLine, ChartSpan, Section, ValueUnit};
use crate::websocket::facts;
use weir_measure::Run;
use weir_measure::series::SeriesPoint;
use weir_measure::websocket_series::WebSocketPoint;

/// Number of an inconspicuous colour.
const GREY_HUE: usize = 2;

/// Connections that were held and upgraded over time; none without WebSocket, charts only of several intervals.
pub(super) fn websockets(run: &Run) -> Section {
    let facts = facts(run);
    if facts.is_empty() {
        return Section::default();
    }
    let mut blocks = vec![Block::Text(format!("Connections: {}.", facts.join(", ")))];
    if run.series.iter().filter(|point| point.websocket.is_some()).count() > 1 {
        blocks.push(Block::Chart(held(run)));
        blocks.push(Block::Chart(upgraded(run)));
    }
    Section::new("WebSocket", blocks)
}

fn held(run: &Run) -> Chart {
    // At the end of the load all are closed.
    let last = run.series.len().saturating_sub(1);
    let value = |(nth, point): (usize, &SeriesPoint)| {
        (point.t_s, of(point, |own| own.held as f64).filter(|held| nth < last || *held > 0.0))
    };
    let axis = ChartAxis::new("connections, at the end of each interval", ValueUnit::Count);
    chart(run, "Connections held over time", axis)
        .line(ChartLine::new("held", run.series.iter().enumerate().map(value)))
}

fn upgraded(run: &Run) -> Chart {
    // The last interval may be too short for a rate.
    let usual = run.series.iter().map(|point| point.width_s).fold(0.0, f64::max);
    let value = |point: &SeriesPoint| {
        let is_whole = point.width_s > usual / 2.0;
        (point.t_s, of(point, |own| own.upgraded as f64 / point.width_s).filter(|_| is_whole))
    };
    let axis = ChartAxis::new("connections per second", ValueUnit::PerSecond);
    chart(run, "Upgrades over time", axis)
        .line(ChartLine::new("upgraded", run.series.iter().map(value)).in_hue(GREY_HUE))
}

fn of(point: &SeriesPoint, value: impl Fn(&WebSocketPoint) -> f64) -> Option<f64> {
    point.websocket.as_ref().map(value)
}

fn chart(run: &Run, title: &str, y: ChartAxis) -> Chart {
    let mut chart = Chart::new(title, ChartAxis::new("since the start", ValueUnit::Seconds), y);
    chart.group = "time".into();
    if run.warmup_s > 0.0 {
        chart.spans.push(ChartSpan { from: 0.0, to: run.warmup_s, name: "warm-up".into() });
    }
    chart
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{of_run, render};
    use crate::tests::fixtures;
    use weir_measure::run_websocket::RunWebSocket;

    #[test]
    fn connections_have_their_charts_over_time() {
        let mut run = fixtures::open();
        assert!(websockets(&run).blocks.is_empty());
        run.websocket = Some(RunWebSocket { upgraded: 7, ..RunWebSocket::default() });
        for (nth, point) in run.series.iter_mut().enumerate() {
            point.websocket = Some(WebSocketPoint { held: nth as u64 + 1, upgraded: 2 });
        }
        let html = render(&of_run(&run));
        assert!(html.contains("Connections held over time") && html.contains("Upgrades over time"));
        assert!(html.contains("Connections: 7 upgraded."));
        let lines = held(&run).lines;
        assert_eq!(lines[0].values().collect::<Vec<_>>(), (1..=run.series.len()).map(|n| n as f64).collect::<Vec<_>>());
        run.series.truncate(1);
        assert_eq!(websockets(&run).blocks.len(), 1);
    }
}
