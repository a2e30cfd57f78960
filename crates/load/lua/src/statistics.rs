//! Arguments of `done`: `summary`, and the statistics of latencies and rates.

use mlua::{Lua, MetaMethod, Table, UserData, UserDataFields, UserDataMethods, Value};
use weir_histogram::Histogram;
use weir_measure::Run;

/// Values with their number, as `latency` and `requests` of `done`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Statistics {
    /// Values in ascending order, each once, with its number.
    values: Vec<(u64, u64)>,
}

impl Statistics {
    /// Statistics of values in any order.
    fn new(values: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut all: Vec<(u64, u64)> = values.into_iter().filter(|(_, number)| *number > 0).collect();
        all.sort_unstable();
        all.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1 += next.1;
            }
            is_same
        });
        Self { values: all }
    }

    /// Response times of all responses of a run, in microseconds.
    pub(crate) fn of_latencies(run: &Run) -> Self {
        let histogram = Histogram::from_base64(&run.responses.histogram, Histogram::precise).ok();
        let recorded = histogram.iter().flat_map(Histogram::recorded);
        Self::new(recorded.map(|(time, number)| ((time.0 + 500) / 1_000, number)))
    }

    /// Responses per second of a thread, one value for each interval of a run with this number of threads.
    pub(crate) fn of_rates(run: &Run, threads: u64) -> Self {
        let full = run.series.iter().filter(|point| point.width_s > 0.0 && point.responses > 0);
        let rate = |responses: u64, width_s: f64| responses as f64 / width_s / threads.max(1) as f64;
        Self::new(full.map(|point| (rate(point.responses, point.width_s).round() as u64, threads)))
    }

    fn count(&self) -> u64 {
        self.values.iter().map(|(_, number)| number).sum()
    }

    fn mean(&self) -> f64 {
        let sum: f64 = self.values.iter().map(|(value, number)| *value as f64 * *number as f64).sum();
        sum / self.count().max(1) as f64
    }

    /// Standard deviation of a sample.
    fn deviation(&self) -> f64 {
        let (count, mean) = (self.count(), self.mean());
        if count < 2 {
            return 0.0;
        }
        let squares = self.values.iter().map(|(value, number)| (*value as f64 - mean).powi(2) * *number as f64);
        (squares.sum::<f64>() / (count - 1) as f64).sqrt()
    }

    /// Value that `p` percent of all do not exceed; 0 without values.
    fn percentile(&self, p: f64) -> u64 {
        let rank = (p / 100.0 * self.count() as f64 + 0.5).round() as u64;
        let mut sum = 0;
        let found = self.values.iter().find(|(_, number)| {
            sum += number;
            sum >= rank
        });
        found.map_or(0, |(value, _)| *value)
    }

    /// The `index`th value from 1 on, and its number; zeros beyond.
    fn at(&self, index: i64) -> (u64, u64) {
        let at = usize::try_from(index).ok().and_then(|index| index.checked_sub(1));
        at.and_then(|at| self.values.get(at)).copied().unwrap_or_default()
    }
}

impl UserData for Statistics {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("min", |_, this| Ok(this.values.first().map_or(0, |(value, _)| *value)));
        fields.add_field_method_get("max", |_, this| Ok(this.values.last().map_or(0, |(value, _)| *value)));
        fields.add_field_method_get("mean", |_, this| Ok(this.mean()));
        fields.add_field_method_get("stdev", |_, this| Ok(this.deviation()));
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("percentile", |_, this, p: f64| Ok(this.percentile(p)));
        methods.add_meta_method(MetaMethod::Call, |_, this, index: f64| Ok(this.at(index as i64)));
        // Scripts read fields that were never there; in wrk each is its own name.
        methods.add_meta_method(MetaMethod::Index, |_, _, name: Value| Ok(name));
        methods.add_meta_method(MetaMethod::Len, |_, this, ()| Ok(this.values.len()));
    }
}

/// `summary` of `done`.
///
/// # Errors
/// If the interpreter has no memory left.
pub(crate) fn summary(lua: &Lua, run: &Run) -> mlua::Result<Table> {
    let failures = |kinds: &[&str]| -> u64 { kinds.iter().filter_map(|kind| run.failures.get(*kind)).sum() };
    let is_error = |status: &str| status.parse::<u16>().is_ok_and(|status| status > 399);
    let status: u64 = run.status.iter().filter(|(status, _)| is_error(status)).map(|(_, number)| number).sum();
    let errors = lua.create_table()?;
    errors.set("connect", failures(&["connect", "dns", "tls"]))?;
    errors.set("read", failures(&["closed", "reset", "protocol"]))?;
    errors.set("write", 0)?;
    errors.set("status", status)?;
    errors.set("timeout", failures(&["timeout"]))?;
    let summary = lua.create_table()?;
    summary.set("duration", (run.duration_s * 1e6).round())?;
    summary.set("requests", run.status.values().sum::<u64>())?;
    summary.set("bytes", run.bytes.read)?;
    summary.set("errors", errors)?;
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_values() {
        let statistics = Statistics::new([(30, 1), (10, 2), (20, 0), (10, 1), (40, 4)]);
        assert_eq!(statistics.values, [(10, 3), (30, 1), (40, 4)]);
        assert_eq!((statistics.mean(), statistics.count()), (27.5, 8));
        assert!((statistics.deviation() - 14.880_476).abs() < 1e-3);
        let percentiles = [0.0, 25.0, 40.0, 50.0, 99.999].map(|p| statistics.percentile(p));
        assert_eq!(percentiles, [10, 10, 30, 40, 40]);
        assert_eq!([-1, 0, 1, 3, 4].map(|at| statistics.at(at)), [(0, 0), (0, 0), (10, 3), (40, 4), (0, 0)]);
        let none = Statistics::default();
        assert_eq!((none.mean(), none.deviation(), none.percentile(50.0)), (0.0, 0.0, 0));
    }

    #[test]
    fn scripts_read_them_as_in_wrk() {
        let lua = Lua::new();
        lua.globals().set("latency", Statistics::new([(10, 3), (30, 1)])).unwrap();
        let read = "local v, n = latency(1); return latency.min, latency.max, latency.mean, #latency, v, n, \
                    latency:percentile(99), (latency(2)), (latency(3)), latency.total";
        let read: (u64, u64, f64, u64, u64, u64, u64, u64, u64, String) = lua.load(read).eval().unwrap();
        assert_eq!(read, (10, 30, 15.0, 2, 10, 3, 30, 30, 0, "total".to_owned()));
    }
}
