//! Time series of a run as CSV.

use weir_measure::Run;

/// CSV with a header and a line per interval, warm-up included; names have their units. Times are of successes, except
/// those that begin with `failed_`.
pub fn series(run: &Run) -> String {
    let mut text = String::from(
        "t_s,width_s,ok,failed,rate_per_s,bytes_in,in_flight,backlog,p50_ms,p99_ms,max_ms,\
         failed_p50_ms,failed_p99_ms,failed_max_ms\n",
    );
    for point in &run.series {
        // Times to the microsecond: the histograms have two digits.
        text.push_str(&format!(
            "{:.3},{:.3},{},{},{:.3},{},{},{},{:.3},{:.3},{:.3},{:.3},{:.3},{:.3}\n",
            point.t_s,
            point.width_s,
            point.ok,
            point.failed,
            point.rate_per_s(),
            point.bytes_in,
            point.in_flight,
            point.backlog,
            point.p50_ms,
            point.p99_ms,
            point.max_ms,
            point.failed_p50_ms,
            point.failed_p99_ms,
            point.failed_max_ms,
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use crate::tests::fixtures;

    #[test]
    fn each_second_is_a_line_and_a_run_without_any_is_its_header() {
        fixtures::same(&super::series(&fixtures::open()), include_str!("golden/open.csv"), "open.csv");
        assert_eq!(super::series(&fixtures::empty()).lines().count(), 1);
    }
}
