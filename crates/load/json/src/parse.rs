//! Parser of paths.

use super::error::JsonPathError;
use super::expression::{Comparison, Logical, NodeQuery, Operand, Pattern, compile_pattern};
use super::literal::Literal;
use super::segment::{Segment, Selector, are_singular};

/// Maximum number of levels of parentheses and filters.
const MAX_NESTING: usize = 64;
/// Largest integer of a path (I-JSON).
const MAX_INTEGER: i64 = (1 << 53) - 1;

pub(super) type PathResult<T> = Result<T, JsonPathError>;

/// Segments of a path.
pub(super) fn path(text: &str) -> PathResult<Vec<Segment>> {
    let mut parser = PathParser { text, at: 0, nesting: 0 };
    parser.expect("$", "'$'")?;
    let segments = parser.segments()?;
    if parser.at < text.len() { Err(parser.error("the end of the path, '.' or '['")) } else { Ok(segments) }
}

pub(super) struct PathParser<'t> {
    text: &'t str,
    pub(super) at: usize,
    nesting: usize,
}

/// Beginning of a filter, before it is known to be a test or a comparison.
enum Term {
    Operand(Operand),
    Query(NodeQuery),
    Test(Logical),
}

impl<'t> PathParser<'t> {
    pub(super) fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn error(&self, expected: &'static str) -> JsonPathError {
        JsonPathError { offset: self.at, expected }
    }

    fn take(&mut self, token: &str) -> bool {
        let has = self.rest().starts_with(token);
        if has {
            self.at += token.len();
        }
        has
    }

    pub(super) fn expect(&mut self, token: &str, expected: &'static str) -> PathResult<()> {
        if self.take(token) { Ok(()) } else { Err(self.error(expected)) }
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> PathResult<T>) -> PathResult<T> {
        if self.nesting == MAX_NESTING {
            return Err(self.error("fewer levels of filters"));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    fn segments(&mut self) -> PathResult<Vec<Segment>> {
        let mut segments = Vec::new();
        loop {
            let before = self.at;
            self.space();
            let segment = if self.take("..") {
                let selectors = if self.take("[") { self.bracketed()? } else { vec![self.dotted()?] };
                Segment { is_descendant: true, selectors }
            } else if self.take(".") {
                Segment { is_descendant: false, selectors: vec![self.dotted()?] }
            } else if self.take("[") {
                Segment { is_descendant: false, selectors: self.bracketed()? }
            } else {
                self.at = before;
                return Ok(segments);
            };
            segments.push(segment);
        }
    }

    /// `*` or a name behind a dot.
    fn dotted(&mut self) -> PathResult<Selector> {
        if self.take("*") {
            return Ok(Selector::Wildcard);
        }
        let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric() || !c.is_ascii();
        let rest = self.rest();
        let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        if length == 0 || rest.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(self.error("a name or '*'"));
        }
        self.at += length;
        Ok(Selector::Name(rest[..length].to_owned()))
    }

    /// Selectors behind `[`, up to `]`.
    fn bracketed(&mut self) -> PathResult<Vec<Selector>> {
        let mut selectors = Vec::new();
        loop {
            self.space();
            selectors.push(self.selector()?);
            self.space();
            if self.take("]") {
                return Ok(selectors);
            }
            self.expect(",", "',' or ']'")?;
        }
    }

    fn selector(&mut self) -> PathResult<Selector> {
        match self.peek() {
            Some('\'' | '"') => self.string().map(Selector::Name),
            Some('*') => {
                self.at += 1;
                Ok(Selector::Wildcard)
            }
            Some('?') => {
                self.at += 1;
                self.space();
                self.nested(Self::any).map(|condition| Selector::Filter(Box::new(condition)))
            }
            Some('-' | '0'..='9' | ':') => self.index_or_slice(),
            _ => Err(self.error("a name in quotes, an index, a slice, '*' or '?'")),
        }
    }

    fn index_or_slice(&mut self) -> PathResult<Selector> {
        let start = self.optional_integer()?;
        self.space();
        if !self.take(":") {
            return start.map(Selector::Index).ok_or_else(|| self.error("an index"));
        }
        self.space();
        let end = self.optional_integer()?;
        self.space();
        let mut step = None;
        if self.take(":") {
            self.space();
            step = self.optional_integer()?;
        }
        Ok(Selector::Slice { start, end, step: step.unwrap_or(1) })
    }

    fn optional_integer(&mut self) -> PathResult<Option<i64>> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return if sign == 1 { Err(self.error("an integer")) } else { Ok(None) };
        }
        let text = &rest[..sign + digits];
        let has_zero_before = rest[sign..].starts_with('0') && (digits > 1 || sign == 1);
        let number = text.parse::<i64>().ok().filter(|n| !has_zero_before && n.abs() <= MAX_INTEGER);
        let number = number.ok_or_else(|| self.error("an integer without leading zeros, below 2^53"))?;
        self.at += text.len();
        Ok(Some(number))
    }

    fn any(&mut self) -> PathResult<Logical> {
        let mut conditions = vec![self.all()?];
        loop {
            self.space();
            if !self.take("||") {
                break;
            }
            self.space();
            conditions.push(self.all()?);
        }
        Ok(if conditions.len() == 1 { conditions.remove(0) } else { Logical::Any(conditions) })
    }

    fn all(&mut self) -> PathResult<Logical> {
        let mut conditions = vec![self.condition()?];
        loop {
            self.space();
            if !self.take("&&") {
                break;
            }
            self.space();
            conditions.push(self.condition()?);
        }
        Ok(if conditions.len() == 1 { conditions.remove(0) } else { Logical::All(conditions) })
    }

    fn condition(&mut self) -> PathResult<Logical> {
        if self.rest().starts_with('!') && !self.rest().starts_with("!=") {
            self.at += 1;
            self.space();
            let inner = if self.rest().starts_with('(') { self.parenthesized()? } else { self.test()? };
            return Ok(Logical::Not(Box::new(inner)));
        }
        if self.rest().starts_with('(') {
            return self.parenthesized();
        }
        self.test()
    }

    fn parenthesized(&mut self) -> PathResult<Logical> {
        self.at += 1;
        self.space();
        let inner = self.nested(Self::any)?;
        self.space();
        self.expect(")", "')'")?;
        Ok(inner)
    }

    /// Comparison, existence test or test by a function.
    fn test(&mut self) -> PathResult<Logical> {
        let start = self.at;
        let left = self.term()?;
        self.space();
        let Some(comparison) = self.comparison() else {
            return match left {
                Term::Test(test) => Ok(test),
                Term::Query(query) => Ok(Logical::Exists(query)),
                Term::Operand(_) => Err(self.error("a comparison")),
            };
        };
        let at = JsonPathError { offset: start, expected: "a value: a literal or a path to one node" };
        let left = operand(left).ok_or(at)?;
        self.space();
        let at = JsonPathError { offset: self.at, expected: "a value: a literal or a path to one node" };
        let right = operand(self.term()?).ok_or(at)?;
        Ok(Logical::Compare(left, comparison, right))
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let known = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        known.into_iter().find(|(token, _)| self.take(token)).map(|(_, comparison)| comparison)
    }

    fn term(&mut self) -> PathResult<Term> {
        let literal = |literal| Ok(Term::Operand(Operand::Literal(literal)));
        match self.peek() {
            Some('@' | '$') => self.query().map(Term::Query),
            Some('\'' | '"') => literal(Literal::Text(self.string()?)),
            Some('-' | '0'..='9') => literal(self.number()?),
            Some('a'..='z') => {
                let rest = self.rest();
                let length = rest.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'));
                let word = &rest[..length.unwrap_or(rest.len())];
                let constant = match word {
                    "true" => Some(Literal::Bool(true)),
                    "false" => Some(Literal::Bool(false)),
                    "null" => Some(Literal::Null),
                    _ => None,
                };
                match constant {
                    Some(constant) => {
                        self.at += word.len();
                        literal(constant)
                    }
                    None => self.nested(|parser| parser.function(word)),
                }
            }
            _ => Err(self.error("a path, a literal or a function")),
        }
    }

    fn query(&mut self) -> PathResult<NodeQuery> {
        let is_root = self.rest().starts_with('$');
        self.at += 1;
        self.nested(Self::segments).map(|segments| NodeQuery { is_root, segments })
    }

    fn number(&mut self) -> PathResult<Literal> {
        let rest = self.rest();
        let is_number = |c: char| matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E');
        let text = &rest[..rest.find(|c| !is_number(c)).unwrap_or(rest.len())];
        // JSON's grammar: no leading zeros, digits on both sides of the point.
        let number: serde_json::Number = serde_json::from_str(text).map_err(|_| self.error("a number"))?;
        self.at += text.len();
        Ok(number.as_i64().map_or_else(|| Literal::Float(number.as_f64().unwrap_or(f64::NAN)), Literal::Integer))
    }

    fn function(&mut self, name: &str) -> PathResult<Term> {
        let unknown = self.error("length, count, value, match or search");
        self.at += name.len();
        self.expect("(", "'('")?;
        self.space();
        let term = match name {
            "length" => Term::Operand(Operand::Length(Box::new(self.value_argument()?))),
            "count" | "value" => {
                if !self.rest().starts_with(['@', '$']) {
                    return Err(self.error("a path"));
                }
                let query = self.query()?;
                Term::Operand(if name == "count" { Operand::Count(query) } else { Operand::ValueOf(query) })
            }
            "match" | "search" => {
                let text = self.value_argument()?;
                self.space();
                self.expect(",", "','")?;
                self.space();
                let is_whole = name == "match";
                let pattern = match self.value_argument()? {
                    Operand::Literal(Literal::Text(pattern)) => {
                        Pattern::Fixed(compile_pattern(&pattern, is_whole).map(Box::new))
                    }
                    pattern => Pattern::Dynamic { pattern, is_whole },
                };
                Term::Test(Logical::Match(text, pattern))
            }
            _ => return Err(unknown),
        };
        self.space();
        self.expect(")", "')'")?;
        Ok(term)
    }

    fn value_argument(&mut self) -> PathResult<Operand> {
        let at = JsonPathError { offset: self.at, expected: "a value: a literal or a path to one node" };
        operand(self.term()?).ok_or(at)
    }
}

fn operand(term: Term) -> Option<Operand> {
    match term {
        Term::Operand(operand) => Some(operand),
        Term::Query(query) => are_singular(&query.segments).then_some(Operand::Single(query)),
        Term::Test(_) => None,
    }
}
