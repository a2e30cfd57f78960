//! Enums as objects.

use oxc_ast::ast::{
    BinaryOperator, Expression, IdentifierReference, TSEnumDeclaration, TSEnumMember, TSEnumMemberName, UnaryOperator,
};
use oxc_ast_visit::Visit;
use oxc_span::GetSpan as _;

use super::eraser::Eraser;

/// Value of a member that is known before the script runs.
#[derive(Clone, Debug, PartialEq)]
enum EnumValue {
    Number(f64),
    Text(String),
}

/// Members that came before.
type Members = Vec<(String, Option<EnumValue>)>;

impl Eraser<'_> {
    /// Replaces an enum by the object that TypeScript makes of it, on the same lines.
    pub(super) fn replace_enum(&mut self, it: &TSEnumDeclaration<'_>) {
        if it.declare {
            return self.edits.erase_whole(it.span);
        }
        let name = it.id.name.as_str();
        self.value_names.insert(name.to_owned());
        let (open, close) = (it.body.span.start, it.body.span.end);
        self.edits.replace(it.span.start, open + 1, format!("var {name}; (function ({name}) {{"));
        let mut members: Members = Vec::new();
        for member in &it.body.members {
            let key = key_of(&member.id);
            let value = self.replace_member(name, &key, member, &members);
            members.push((key, value));
        }
        self.edits.replace(close - 1, close, format!("}})({name} || ({name} = {{}}));"));
    }

    fn replace_member(
        &mut self,
        name: &str,
        key: &str,
        member: &TSEnumMember<'_>,
        before: &Members,
    ) -> Option<EnumValue> {
        let quoted = serde_json::to_string(key).unwrap_or_default();
        let (start, end) = (member.span.start, member.span.end);
        self.edits.blank_sign(end, ',');
        let Some(initializer) = &member.initializer else {
            let number = match before.last() {
                None => 0.0,
                Some((_, Some(EnumValue::Number(last)))) => last + 1.0,
                Some(_) => {
                    self.reject(member.span, format!("the member '{key}' of the enum '{name}' needs a value"));
                    return None;
                }
            };
            self.edits.replace(start, end, format!("{name}[{name}[{quoted}] = {number}] = {quoted};"));
            return Some(EnumValue::Number(number));
        };
        let value = evaluated(initializer, name, before);
        let value_start = initializer.span().start;
        match value {
            Some(EnumValue::Text(_)) => {
                self.edits.replace(start, value_start, format!("{name}[{quoted}] = "));
                self.edits.replace(end, end, ";".to_owned());
            }
            _ => {
                self.edits.replace(start, value_start, format!("{name}[{name}[{quoted}] = "));
                self.edits.replace(end, end, format!("] = {quoted};"));
            }
        }
        let mut references = MemberReferences { members: before, found: Vec::new() };
        references.visit_expression(initializer);
        for at in references.found {
            self.edits.replace(at, at, format!("{name}."));
        }
        self.visit_expression(initializer);
        value
    }
}

/// Places of names in a value that are members of the same enum.
struct MemberReferences<'m> {
    members: &'m Members,
    found: Vec<u32>,
}

impl<'a> Visit<'a> for MemberReferences<'_> {
    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        if self.members.iter().any(|(known, _)| it.name == *known) {
            self.found.push(it.span.start);
        }
    }
}

fn key_of(id: &TSEnumMemberName<'_>) -> String {
    match id {
        TSEnumMemberName::Identifier(id) => id.name.to_string(),
        TSEnumMemberName::String(text) | TSEnumMemberName::ComputedString(text) => text.value.to_string(),
        TSEnumMemberName::ComputedTemplateString(text) => {
            text.quasis.iter().map(|part| part.value.cooked.as_ref().map_or("", |text| text.as_str())).collect()
        }
    }
}

/// Value of an expression of literals and of members that came before.
fn evaluated(expression: &Expression<'_>, name: &str, before: &Members) -> Option<EnumValue> {
    use EnumValue::{Number, Text};
    let member = |key: &str| before.iter().find(|(known, _)| known == key).and_then(|(_, value)| value.clone());
    match expression {
        Expression::NumericLiteral(it) => Some(Number(it.value)),
        Expression::StringLiteral(it) => Some(Text(it.value.to_string())),
        Expression::TemplateLiteral(it) if it.expressions.is_empty() => {
            it.quasis.first()?.value.cooked.as_ref().map(|text| Text(text.to_string()))
        }
        Expression::TemplateLiteral(it) => {
            // It is a text, whatever is in it.
            Some(Text(it.quasis.first()?.value.raw.to_string()))
        }
        Expression::ParenthesizedExpression(it) => evaluated(&it.expression, name, before),
        Expression::TSAsExpression(it) => evaluated(&it.expression, name, before),
        Expression::Identifier(it) => member(&it.name),
        Expression::StaticMemberExpression(it) => match &it.object {
            Expression::Identifier(object) if object.name == name => member(&it.property.name),
            _ => None,
        },
        Expression::ComputedMemberExpression(it) => match (&it.object, &it.expression) {
            (Expression::Identifier(object), Expression::StringLiteral(key)) if object.name == name => {
                member(&key.value)
            }
            _ => None,
        },
        Expression::UnaryExpression(it) => match (it.operator, evaluated(&it.argument, name, before)?) {
            (UnaryOperator::UnaryNegation, Number(value)) => Some(Number(-value)),
            (UnaryOperator::UnaryPlus, Number(value)) => Some(Number(value)),
            (UnaryOperator::BitwiseNot, Number(value)) => Some(Number(f64::from(!int32(value)))),
            _ => None,
        },
        Expression::BinaryExpression(it) => {
            let (left, right) = (evaluated(&it.left, name, before)?, evaluated(&it.right, name, before)?);
            match (left, right) {
                (Number(left), Number(right)) => arithmetic(it.operator, left, right).map(Number),
                (Text(left), Text(right)) if it.operator == BinaryOperator::Addition => Some(Text(left + &right)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn arithmetic(operator: BinaryOperator, left: f64, right: f64) -> Option<f64> {
    let bits = (int32(left), int32(right));
    Some(match operator {
        BinaryOperator::Addition => left + right,
        BinaryOperator::Subtraction => left - right,
        BinaryOperator::Multiplication => left * right,
        BinaryOperator::Division => left / right,
        BinaryOperator::Remainder => left % right,
        BinaryOperator::Exponential => left.powf(right),
        BinaryOperator::BitwiseOR => f64::from(bits.0 | bits.1),
        BinaryOperator::BitwiseAnd => f64::from(bits.0 & bits.1),
        BinaryOperator::BitwiseXOR => f64::from(bits.0 ^ bits.1),
        BinaryOperator::ShiftLeft => f64::from(bits.0.wrapping_shl(bits.1 as u32)),
        BinaryOperator::ShiftRight => f64::from(bits.0.wrapping_shr(bits.1 as u32)),
        BinaryOperator::ShiftRightZeroFill => f64::from((bits.0 as u32).wrapping_shr(bits.1 as u32)),
        _ => return None,
    })
}

/// Number as the 32 bits that operators of bits take.
fn int32(value: f64) -> i32 {
    if !value.is_finite() {
        return 0;
    }
    // The remainder is within 64 bits.
    (value.trunc() % 4_294_967_296.0) as i64 as u32 as i32
}
