//! Values of options.

use std::fmt;
use std::time::Duration;

use crate::error::Parsed;
use crate::number;
use crate::option_name::OptionType;
use crate::reader::Reader;
use crate::template::Template;
use crate::template_style::TemplateStyle;
use crate::templated::Templated;
use crate::variable::VariableDefinition;

/// Value of an option. The variant depends on the option's name.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// `true` or `false`.
    Flag(Templated<bool>),
    /// Number of redirects, repetitions or retries.
    Count(Templated<OptionCount>),
    /// Integer of at least 0.
    Natural(Templated<u64>),
    /// Time; in milliseconds, if an expression has the value.
    Duration(Templated<OptionDuration>),
    /// Text.
    Text(Template),
    /// Name of a file.
    File(Template),
    /// File of a certificate.
    Certificate {
        /// Name of the file.
        file: Template,
        /// Password of the file, after a colon.
        password: Option<Template>,
    },
    /// Variable.
    Variable(VariableDefinition),
    /// Detail of the log.
    Verbosity(LogVerbosity),
}

/// Number of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionCount {
    /// Maximum.
    Finite(u64),
    /// Unlimited: -1.
    Infinite,
}

/// Time with units of `ms`, `s`, `m` or `h`; `ms` without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionDuration(pub Duration);

crate::words::words! {
    /// Detail of a log.
    pub enum LogVerbosity {
        /// Little.
        Brief = "brief",
        /// All, with bodies.
        Debug = "debug",
        /// Much.
        Verbose = "verbose",
    }
}

/// Units of time, in milliseconds; each is a multiple of those after it.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl OptionValue {
    pub(crate) fn read(reader: &mut Reader<'_>, value_type: OptionType) -> Parsed<Self> {
        Ok(match value_type {
            OptionType::Flag => Self::Flag(Templated::read(reader, read_flag)?),
            OptionType::Count => Self::Count(Templated::read(reader, OptionCount::read)?),
            OptionType::Natural => Self::Natural(Templated::read(reader, number::read_natural)?),
            OptionType::Duration => Self::Duration(Templated::read(reader, OptionDuration::read)?),
            OptionType::Text => Self::Text(Template::read_value(reader)?),
            OptionType::File => Self::File(Template::read_file_name(reader)?),
            OptionType::Certificate => read_certificate(reader)?,
            OptionType::Variable => Self::Variable(VariableDefinition::read(reader)?),
            OptionType::Verbosity => Self::Verbosity(read_verbosity(reader)?),
        })
    }
}

fn read_flag(reader: &mut Reader<'_>) -> Parsed<bool> {
    let start = reader.cursor();
    match reader.take_word() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(reader.expected_at(start, "true or false")),
    }
}

fn read_verbosity(reader: &mut Reader<'_>) -> Parsed<LogVerbosity> {
    let start = reader.cursor();
    let verbosity = LogVerbosity::from_word(reader.take_word());
    verbosity.ok_or_else(|| reader.expected_at(start, "brief, verbose or debug"))
}

fn read_certificate(reader: &mut Reader<'_>) -> Parsed<OptionValue> {
    let start = reader.cursor();
    let file = Template::read(reader, TemplateStyle::Certificate)?;
    if file.is_empty() || reader.text_since(start).starts_with('[') {
        return Err(reader.expected_at(start, "a file name"));
    }
    let password = if reader.eat(":") { Some(Template::read(reader, TemplateStyle::File)?) } else { None };
    Ok(OptionValue::Certificate { file, password })
}

impl OptionCount {
    fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        match number::read_integer(reader)? {
            -1 => Ok(Self::Infinite),
            count => match u64::try_from(count) {
                Ok(count) => Ok(Self::Finite(count)),
                Err(_) => Err(reader.expected_at(start, "an integer of at least -1")),
            },
        }
    }
}

impl OptionDuration {
    fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        let value = number::read_natural(reader)?;
        let unit_start = reader.cursor();
        let unit = match reader.take_while(|c| c.is_ascii_alphabetic()) {
            "" => 1,
            word => match UNITS.iter().find(|(unit, _)| *unit == word) {
                Some((_, millis)) => *millis,
                None => return Err(reader.expected_at(unit_start, "a unit: ms, s, m or h")),
            },
        };
        let millis = value.checked_mul(unit).ok_or_else(|| reader.expected_at(start, "a shorter duration"))?;
        Ok(Self(Duration::from_millis(millis)))
    }
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(value) => value.fmt(f),
            Self::Count(value) => value.fmt(f),
            Self::Natural(value) => value.fmt(f),
            Self::Duration(value) => value.fmt(f),
            Self::Text(template) => template.fmt(f),
            Self::File(name) => name.in_style(TemplateStyle::File).fmt(f),
            Self::Certificate { file, password } => {
                file.in_style(TemplateStyle::Certificate).fmt(f)?;
                let password = password.as_ref().map(|password| password.in_style(TemplateStyle::File));
                password.map_or(Ok(()), |password| write!(f, ":{password}"))
            }
            Self::Variable(variable) => variable.fmt(f),
            Self::Verbosity(verbosity) => verbosity.fmt(f),
        }
    }
}

impl fmt::Display for OptionCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finite(count) => count.fmt(f),
            Self::Infinite => f.write_str("-1"),
        }
    }
}

/// The duration in its largest unit without a fraction; below a millisecond it is cut off.
impl fmt::Display for OptionDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let largest = UNITS.into_iter().find(|(_, unit)| millis > 0 && millis.is_multiple_of(u128::from(*unit)));
        let (unit, size) = largest.unwrap_or(("ms", 1));
        write!(f, "{}{unit}", millis / u128::from(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let cases = [("1500", "1500ms"), ("2s", "2s"), ("120s", "2m"), ("0m", "0ms"), ("48h", "48h"), ("90m", "90m")];
        for (text, expected) in cases {
            assert_eq!(OptionDuration::read(&mut Reader::new(text)).unwrap().to_string(), expected);
        }
        assert!(OptionDuration::read(&mut Reader::new("5124095576030432h")).is_err());
        let error = OptionDuration::read(&mut Reader::new("10sec")).unwrap_err().to_string();
        assert_eq!(error, "1:3: expected a unit: ms, s, m or h, found 'sec'");
    }

    #[test]
    fn counts_are_limited_or_not() {
        assert_eq!(OptionCount::read(&mut Reader::new("3")), Ok(OptionCount::Finite(3)));
        assert_eq!(OptionCount::read(&mut Reader::new("-1")), Ok(OptionCount::Infinite));
        assert!(OptionCount::read(&mut Reader::new("-2")).is_err());
    }
}
