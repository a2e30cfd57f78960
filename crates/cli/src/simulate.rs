//! Arguments of `weir simulate`: scenarios and limiters, run in parallel and printed.

use clap::{Args, ValueEnum};

use weir_command::Interrupt;
use weir_command::exit;
use weir_command::stdout::print;
use weir_machine::parallel;
use weir_simulate::{LimiterComparison, SimulationPlan, run as simulate, scenario, text};

/// Arguments of `weir simulate`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  weir simulate --scenario flash-crowd
  weir simulate --scenario step-up,ramp --limiter auto,none")]
pub(super) struct SimulateArgs {
    /// run this scenario; repeatable; see --list [default: all]
    #[arg(long = "scenario", value_name = "NAME|all", value_delimiter = ',')]
    scenarios: Vec<String>,
    #[arg(
        long = "limiter",
        value_name = "LIMITER|all",
        value_delimiter = ',',
        default_value = "auto",
        help = "run auto, culprits, static[:N], aimd, vegas, gradient2, envoy, codel, none; repeatable"
    )]
    limiters: Vec<String>,
    /// seed all random choices [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// list the scenarios
    #[arg(long)]
    list: bool,
    /// print the report in this format
    #[arg(short, long, value_enum, default_value_t = SimulateFormat::Text)]
    format: SimulateFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SimulateFormat {
    Text,
    Json,
}

pub(super) fn run(args: &SimulateArgs) -> Result<u8, String> {
    if args.list {
        let line = |name| format!("{name:16}{}\n", scenario::description(name).unwrap_or_default());
        return print(&scenario::names().map(line).collect::<String>(), false).map(|()| exit::OK);
    }
    let plan = SimulationPlan::new(&args.scenarios, &args.limiters, args.seed)?;
    let interrupt = Interrupt::install().map_err(|error| format!("cannot listen for Ctrl-C: {error}"))?;
    let reports =
        parallel(&plan.runs(), |(scenario, limiter)| simulate(scenario, limiter), &mut || !interrupt.is_requested());
    let comparison = LimiterComparison::new(reports);
    let report = match args.format {
        SimulateFormat::Text => text::render(&comparison),
        SimulateFormat::Json => {
            serde_json::to_string(&comparison).map(|json| json + "\n").map_err(|error| error.to_string())?
        }
    };
    print(&report, false)?;
    Ok(if interrupt.is_requested() { exit::INTERRUPTED } else { exit::OK })
}
