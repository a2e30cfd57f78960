//! Stand-in, to be replaced.
#![allow(missing_docs, reason = "replaced")]
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Text(String),
}
impl Value {
    pub fn of_text(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Text(text.to_owned()), Self::Integer)
    }
    pub fn text(s: String) -> Self {
        Self::Text(s)
    }
    pub fn template_text(&self) -> Option<String> {
        match self {
            Self::Text(t) => Some(t.clone()),
            Self::Integer(i) => Some(i.to_string()),
            Self::Bool(b) => Some(b.to_string()),
            Self::Null => Some("null".into()),
        }
    }
}
impl From<&weir_hurl::NumberLiteral> for Value {
    fn from(n: &weir_hurl::NumberLiteral) -> Self {
        match n {
            weir_hurl::NumberLiteral::Integer(i) => Self::Integer(*i),
            n => Self::Text(n.to_string()),
        }
    }
}
