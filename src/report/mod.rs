//! A run -> text, ab, wrk, JMeter, JSON, CSV/JTL.

pub mod jtl;
/// Placeholder until the formats are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format { Text, Ab, Wrk, Jmeter, Json }
pub fn render(run: &crate::measure::Run, _f: Format, _color: bool) -> String { run.to_json() }
pub mod csv { pub fn series(_r: &crate::measure::Run) -> String { String::new() } }
