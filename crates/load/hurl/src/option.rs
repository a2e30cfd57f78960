//! Options of a request.

use std::fmt;

use crate::error::Parsed;
use crate::option_name::OptionName;
use crate::option_value::OptionValue;
use crate::position::TextPosition;
use crate::reader::Reader;

/// Line of `[Options]`.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestOption {
    /// Name.
    pub name: OptionName,
    /// Value, of the name's type.
    pub value: OptionValue,
    /// Place of the name.
    pub position: TextPosition,
}

impl RequestOption {
    /// Reads a line.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Parsed<Self> {
        let start = reader.cursor();
        let position = reader.position();
        let word = reader.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_'));
        let Some(name) = OptionName::from_word(word) else {
            return Err(reader.expected_at(start, "an option").with_nearest(word, OptionName::spellings()));
        };
        reader.skip_spaces();
        reader.need(":")?;
        reader.skip_spaces();
        let value = OptionValue::read(reader, name.value_type())?;
        reader.end_of_line()?;
        Ok(Self { name, value, position })
    }
}

/// `name: value`.
impl fmt::Display for RequestOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.value)
    }
}
