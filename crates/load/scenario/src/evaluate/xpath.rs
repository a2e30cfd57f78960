//! XPath 1.0 in bodies and texts.

use weir_hurl::{ParseError, Template};
use xpath_eval::{EvaluationContext, Expr, Node, Value as Found, evaluate, parse};

use super::template::CompiledTemplate;
use super::variables::VariableNames;
use super::{Scope, mistake};
use crate::markup::MarkupTree;
use crate::value::Value;

/// XPath: compiled once, or for each value of its variables.
#[derive(Clone, Debug)]
pub(super) enum CompiledXPath {
    Fixed(Box<Expr>),
    Dynamic(CompiledTemplate),
}

impl CompiledXPath {
    pub(super) fn compile(path: &Template, names: &mut VariableNames) -> Result<Self, ParseError> {
        match path.as_text() {
            Some(text) => parse(text)
                .map(|path| Self::Fixed(Box::new(path)))
                .map_err(|error| mistake(path.position, "an XPath", format!("'{text}': {}", error.message))),
            None => CompiledTemplate::compile(path, names).map(Self::Dynamic),
        }
    }

    /// Value in a tree: a text, number or boolean, or the texts of nodes.
    pub(super) fn find(&self, tree: &MarkupTree, scope: &mut Scope<'_, '_>) -> Result<Option<Value>, String> {
        let parsed;
        let path = match self {
            Self::Fixed(path) => &**path,
            Self::Dynamic(template) => {
                let text = template.evaluate(scope).map_err(|error| error.to_string())?;
                parsed = parse(&text).map_err(|error| format!("'{text}' is no XPath: {}", error.message))?;
                &parsed
            }
        };
        let namespaces = |prefix: &str| tree.namespace(prefix).map(str::to_owned);
        let mut context = EvaluationContext::new(tree.root());
        context.namespaces = Some(&namespaces);
        Ok(Some(match evaluate(path, &context).map_err(|error| format!("{error:?}"))? {
            Found::NodeSet(nodes) => Value::Nodes(nodes.iter().map(|node| node.string_value()).collect()),
            Found::Boolean(value) => Value::Bool(value),
            Found::Number(value) => Value::Float(value),
            Found::String(text) => Value::Text(text),
        }))
    }
}
