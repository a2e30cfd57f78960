//! Reader of CSS selectors.

use super::selector::{AttributeTest, Combinator, ComplexSelector, SelectorList, SimpleSelector};

/// Longest selector, in bytes.
const MAX_BYTES: usize = 4096;
/// Most selectors within each other, as in `:not(:has(...))`.
const MAX_DEPTH: usize = 8;

/// Reads a selector.
///
/// # Errors
/// One line with the selector and what is wrong.
pub(super) fn parse_selector(text: &str) -> Result<SelectorList, String> {
    let invalid = |why: String| format!("invalid selector '{text}': {why}");
    if text.len() > MAX_BYTES {
        return Err(format!("a selector of more than {MAX_BYTES} bytes"));
    }
    let mut reader = SelectorReader { rest: text.trim(), depth: 0 };
    let list = reader.list().map_err(invalid)?;
    match reader.rest.chars().next() {
        None => Ok(list),
        Some(sign) => Err(invalid(format!("unexpected '{sign}'"))),
    }
}

struct SelectorReader<'t> {
    rest: &'t str,
    depth: usize,
}

impl SelectorReader<'_> {
    fn skip_spaces(&mut self) -> bool {
        let trimmed = self.rest.trim_start();
        let has_spaces = trimmed.len() < self.rest.len();
        self.rest = trimmed;
        has_spaces
    }

    fn take(&mut self, sign: &str) -> bool {
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn need(&mut self, sign: &str) -> Result<(), String> {
        if self.take(sign) { Ok(()) } else { Err(format!("'{sign}' is missing")) }
    }

    fn list(&mut self) -> Result<SelectorList, String> {
        let mut list = Vec::new();
        loop {
            list.push(self.complex()?);
            self.skip_spaces();
            if !self.take(",") {
                return Ok(list);
            }
        }
    }

    fn complex(&mut self) -> Result<ComplexSelector, String> {
        self.skip_spaces();
        let mut parts = Vec::new();
        let mut combinator = self.combinator().unwrap_or(Combinator::Descendant);
        loop {
            self.skip_spaces();
            parts.push((combinator, self.compound()?));
            let has_spaces = self.skip_spaces();
            combinator = match self.combinator() {
                Some(combinator) => combinator,
                None if has_spaces && !self.rest.is_empty() && !self.rest.starts_with([',', ')']) => {
                    Combinator::Descendant
                }
                None => return Ok(ComplexSelector(parts)),
            };
        }
    }

    fn combinator(&mut self) -> Option<Combinator> {
        let signs = [(">", Combinator::Child), ("+", Combinator::Next), ("~", Combinator::Later)];
        signs.into_iter().find(|(sign, _)| self.take(sign)).map(|(_, combinator)| combinator)
    }

    fn compound(&mut self) -> Result<Vec<SimpleSelector>, String> {
        let mut parts = Vec::new();
        if self.take("*") {
            parts.push(SimpleSelector::Any);
        } else if self.begins_name() {
            parts.push(SimpleSelector::Tag(self.name()?.to_lowercase()));
        }
        loop {
            if self.take("#") {
                parts.push(SimpleSelector::Id(self.name()?));
            } else if self.take(".") {
                parts.push(SimpleSelector::Class(self.name()?));
            } else if self.take("[") {
                parts.push(self.attribute()?);
            } else if self.rest.starts_with("::") {
                return Err("pseudo-elements select nothing".to_owned());
            } else if self.take(":") {
                parts.push(self.pseudo()?);
            } else if parts.is_empty() {
                return Err(match self.rest.chars().next() {
                    Some(sign) => format!("unexpected '{sign}'"),
                    None => "a part is missing".to_owned(),
                });
            } else {
                return Ok(parts);
            }
        }
    }

    fn begins_name(&self) -> bool {
        self.rest.starts_with(|sign: char| sign.is_alphabetic() || matches!(sign, '_' | '\\' | '-') || !sign.is_ascii())
    }

    /// A name, with escapes: `\:` and `\3a `.
    fn name(&mut self) -> Result<String, String> {
        let mut name = String::new();
        while let Some(sign) = self.rest.chars().next() {
            if sign == '\\' {
                self.rest = &self.rest[1..];
                name.extend(self.escape());
            } else if sign.is_alphanumeric() || matches!(sign, '_' | '-') || !sign.is_ascii() {
                name.push(sign);
                self.rest = &self.rest[sign.len_utf8()..];
            } else {
                break;
            }
        }
        if name.is_empty() { Err("a name is missing".to_owned()) } else { Ok(name) }
    }

    fn escape(&mut self) -> Option<char> {
        let digits = self.rest.bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        if digits == 0 {
            let sign = self.rest.chars().next()?;
            self.rest = &self.rest[sign.len_utf8()..];
            return Some(sign);
        }
        let code = u32::from_str_radix(&self.rest[..digits], 16).ok();
        self.rest = &self.rest[digits..];
        self.take(" ");
        code.and_then(char::from_u32)
    }

    /// A text in quotation marks, or a name.
    fn text(&mut self) -> Result<String, String> {
        let Some(mark) = self.rest.chars().next().filter(|sign| matches!(sign, '"' | '\'')) else { return self.name() };
        self.rest = &self.rest[1..];
        let mut text = String::new();
        loop {
            let sign = self.rest.chars().next().ok_or_else(|| format!("{mark} is missing"))?;
            self.rest = &self.rest[sign.len_utf8()..];
            match sign {
                _ if sign == mark => return Ok(text),
                '\\' => text.extend(self.escape()),
                _ => text.push(sign),
            }
        }
    }

    fn attribute(&mut self) -> Result<SimpleSelector, String> {
        type Made = fn(String) -> AttributeTest;
        const TESTS: [(&str, Made); 7] = [
            ("!=", AttributeTest::Differs),
            ("~=", AttributeTest::Word),
            ("|=", AttributeTest::Dash),
            ("^=", AttributeTest::Begins),
            ("$=", AttributeTest::Ends),
            ("*=", AttributeTest::Contains),
            ("=", AttributeTest::Equals),
        ];
        self.skip_spaces();
        let name = self.name()?.to_lowercase();
        self.skip_spaces();
        let made = TESTS.into_iter().find(|(sign, _)| self.take(sign)).map(|(_, made)| made);
        let (mut test, mut ignores_case) = (AttributeTest::Present, false);
        if let Some(made) = made {
            self.skip_spaces();
            test = made(self.text()?);
            self.skip_spaces();
            ignores_case = self.take("i") || self.take("I");
            self.skip_spaces();
        }
        self.need("]")?;
        Ok(SimpleSelector::Attribute { name, test, ignores_case })
    }

    fn pseudo(&mut self) -> Result<SimpleSelector, String> {
        use SimpleSelector::{Only, Position};
        let name = self.name()?.to_lowercase();
        let at = |from_end, of_type| Position { step: 0, offset: 1, from_end, of_type };
        Ok(match name.as_str() {
            "first-child" => at(false, false),
            "last-child" => at(true, false),
            "first-of-type" => at(false, true),
            "last-of-type" => at(true, true),
            "only-child" => Only { of_type: false },
            "only-of-type" => Only { of_type: true },
            "empty" => SimpleSelector::Empty,
            "root" => SimpleSelector::Root,
            "checked" => SimpleSelector::Checked,
            "selected" => SimpleSelector::Selected,
            "disabled" => SimpleSelector::Disabled,
            "enabled" => SimpleSelector::Enabled,
            "input" => SimpleSelector::Input,
            "nth-child" => self.position(false, false)?,
            "nth-last-child" => self.position(true, false)?,
            "nth-of-type" => self.position(false, true)?,
            "nth-last-of-type" => self.position(true, true)?,
            "not" => SimpleSelector::Not(self.inner()?),
            "is" | "where" | "matches" => SimpleSelector::Is(self.inner()?),
            "has" => SimpleSelector::Has(self.inner()?),
            "contains" => {
                self.need("(")?;
                self.skip_spaces();
                let text = match self.rest.starts_with(['"', '\'']) {
                    true => self.text()?,
                    false => {
                        let end = self.rest.find(')').unwrap_or(self.rest.len());
                        let text = self.rest[..end].trim().to_owned();
                        self.rest = &self.rest[end..];
                        text
                    }
                };
                self.skip_spaces();
                self.need(")")?;
                SimpleSelector::Contains(text)
            }
            _ => return Err(format!("':{name}' is not supported")),
        })
    }

    fn inner(&mut self) -> Result<SelectorList, String> {
        self.need("(")?;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("more than {MAX_DEPTH} selectors within each other"));
        }
        let list = self.list()?;
        self.skip_spaces();
        self.need(")")?;
        self.depth -= 1;
        Ok(list)
    }

    fn position(&mut self, from_end: bool, of_type: bool) -> Result<SimpleSelector, String> {
        self.need("(")?;
        let end = self.rest.find(')').ok_or("')' is missing")?;
        let text: String =
            self.rest[..end].chars().filter(|sign| !sign.is_whitespace()).collect::<String>().to_lowercase();
        self.rest = &self.rest[end + 1..];
        let wrong = || format!("invalid position '{text}'; write e.g. 2n+1, odd or 3");
        let number = |part: &str| part.trim_start_matches('+').parse::<i32>().map(i64::from).map_err(|_| wrong());
        let (step, offset) = match text.as_str() {
            "odd" => (2, 1),
            "even" => (2, 0),
            _ => match text.split_once('n') {
                None => (0, number(&text)?),
                Some((step, offset)) => {
                    let step = match step {
                        "" | "+" => 1,
                        "-" => -1,
                        _ => number(step)?,
                    };
                    (step, if offset.is_empty() { 0 } else { number(offset)? })
                }
            },
        };
        Ok(SimpleSelector::Position { step, offset, from_end, of_type })
    }
}
