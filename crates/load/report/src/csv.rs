//! Time series of a run as CSV.

use super::number_format::sanitize;
use weir_measure::Run;
use weir_measure::run_steps::{RunCheck, RunStep};

/// CSV with a header and a line per interval, warm-up included; names have their units. Times are of successes, except
/// those that begin with `failed_`; they are empty without any.
pub fn series(run: &Run) -> String {
    let mut text = String::from(
        "t_s,width_s,ok,failed,rate_per_s,bytes_in,in_flight,backlog,p50_ms,p99_ms,max_ms,\
         failed_p50_ms,failed_p99_ms,failed_max_ms,max_in_flight\n",
    );
    for point in &run.series {
        text.push_str(&format!(
            "{:.3},{:.3},{},{},{:.3},{},{},{},{},{},{},{},{},{},{}\n",
            point.t_s,
            point.width_s,
            point.ok,
            point.failed,
            point.rate_per_s(),
            point.bytes_in,
            point.in_flight,
            point.backlog,
            ms(point.p50_ms),
            ms(point.p99_ms),
            ms(point.max_ms),
            ms(point.failed_p50_ms),
            ms(point.failed_p99_ms),
            ms(point.failed_max_ms),
            point.max_in_flight,
        ));
    }
    text
}

/// CSV with a header and a line per step of the scenarios; figures are those of the window. Times are of successes,
/// except those that begin with `failed_`.
pub fn steps(run: &Run) -> String {
    let mut text = String::from(
        "scenario,step,requests,ok,failed,redirects,retries,unsent,rate_per_s,bytes_in,bytes_out,mean_ms,p50_ms,p95_ms,\
         p99_ms,max_ms,failed_p50_ms,failed_max_ms,checks_passed,checks_failed\n",
    );
    for step in &run.steps {
        let RunStep { response_ms: times, failed_ms: failures, .. } = step;
        let checks = |count: fn(&RunCheck) -> u64| step.checks.iter().map(count).sum::<u64>();
        text.push_str(&format!(
            "{},{},{},{},{},{},{},{},{:.3},{},{},{},{},{},{},{},{},{},{},{}\n",
            quoted(&step.scenario),
            quoted(&step.name),
            step.requests,
            step.ok,
            step.failed,
            step.redirects,
            step.retries,
            step.unsent,
            step.rate_per_s,
            step.bytes_in,
            step.bytes_out,
            ms(times.mean),
            ms(times.p50),
            ms(times.p95),
            ms(times.p99),
            ms(times.max),
            ms(failures.p50),
            ms(failures.max),
            checks(|check| check.passed),
            checks(|check| check.failed),
        ));
    }
    text
}

/// Time to the microsecond, since the histograms have two digits; empty if it was not measured.
fn ms(value: Option<f64>) -> String {
    value.map(|ms| format!("{ms:.3}")).unwrap_or_default()
}

/// Field of CSV (RFC 4180) on one line. A name that a spreadsheet would take for a formula begins with an apostrophe.
fn quoted(field: &str) -> String {
    let field = sanitize(field);
    let field = if field.starts_with(['=', '+', '-', '@']) { format!("'{field}") } else { field };
    if field.contains(['"', ',']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    use crate::tests::fixtures;

    #[test]
    fn each_second_is_a_line_and_a_run_without_any_is_its_header() {
        fixtures::same(&super::series(&fixtures::open()), include_str!("golden/open.csv"), "open.csv");
        assert_eq!(super::series(&fixtures::empty()).lines().count(), 1);
    }

    #[test]
    fn each_step_is_a_line_and_its_name_one_field() {
        fixtures::same(&super::steps(&fixtures::shop()), include_str!("golden/shop_steps.csv"), "shop_steps.csv");
        assert_eq!(super::quoted("=1+2,\"a\"\n"), "\"'=1+2,\"\"a\"\"?\"");
        assert_eq!(super::steps(&fixtures::closed()).lines().count(), 1);
    }
}
