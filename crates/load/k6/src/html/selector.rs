//! CSS selectors.

/// Selectors with commas between them: a node needs to match one.
pub(super) type SelectorList = Vec<ComplexSelector>;

/// Compound selectors, each with what is between it and the one before; the first one has descendants of all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ComplexSelector(pub(super) Vec<(Combinator, Vec<SimpleSelector>)>);

/// What is between two compound selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combinator {
    /// A space.
    Descendant,
    /// `>`.
    Child,
    /// `+`.
    Next,
    /// `~`.
    Later,
}

/// Part of a compound selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SimpleSelector {
    Any,
    Tag(String),
    Id(String),
    Class(String),
    Attribute {
        name: String,
        test: AttributeTest,
        ignores_case: bool,
    },
    /// Position among siblings, from the first or the last, of all or of those of the same name: `a * n + b`.
    Position {
        step: i64,
        offset: i64,
        from_end: bool,
        of_type: bool,
    },
    /// The only child, or the only one of its name.
    Only {
        of_type: bool,
    },
    Empty,
    Root,
    Checked,
    Selected,
    Disabled,
    Enabled,
    /// Elements of forms.
    Input,
    /// Text within it.
    Contains(String),
    /// None of these.
    Not(SelectorList),
    /// One of these.
    Is(SelectorList),
    /// One of these within it.
    Has(SelectorList),
}

/// What the value of an attribute is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttributeTest {
    Present,
    /// `=`.
    Equals(String),
    /// `!=`, also without the attribute.
    Differs(String),
    /// `~=`: a word of it.
    Word(String),
    /// `|=`: it, or it and a dash.
    Dash(String),
    /// `^=`.
    Begins(String),
    /// `$=`.
    Ends(String),
    /// `*=`.
    Contains(String),
}

impl AttributeTest {
    /// Whether a value passes; `None` for a missing attribute.
    pub(super) fn passes(&self, value: Option<&str>, ignores_case: bool) -> bool {
        let lower = |text: &str| if ignores_case { text.to_lowercase() } else { text.to_owned() };
        let Some(value) = value.map(lower) else { return matches!(self, Self::Differs(_)) };
        match self {
            Self::Present => true,
            Self::Equals(text) => value == lower(text),
            Self::Differs(text) => value != lower(text),
            Self::Word(text) => !text.is_empty() && value.split_ascii_whitespace().any(|word| word == lower(text)),
            Self::Dash(text) => {
                let text = lower(text);
                value.strip_prefix(&text).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            }
            Self::Begins(text) => !text.is_empty() && value.starts_with(&lower(text)),
            Self::Ends(text) => !text.is_empty() && value.ends_with(&lower(text)),
            Self::Contains(text) => !text.is_empty() && value.contains(&lower(text)),
        }
    }
}
