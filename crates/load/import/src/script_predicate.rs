//! Expectations of chai, as scripts of Postman and Bruno write them, as predicates of hurl.

/// Expectations of a number, with their operators.
const COMPARISONS: [(&str, &str); 14] = [
    ("be.above(", ">"),
    ("be.greaterThan(", ">"),
    ("be.gt(", ">"),
    ("be.at.least(", ">="),
    ("be.gte(", ">="),
    ("be.greaterThanOrEqual(", ">="),
    ("be.below(", "<"),
    ("be.lessThan(", "<"),
    ("be.lt(", "<"),
    ("be.at.most(", "<="),
    ("be.lte(", "<="),
    ("be.lessThanOrEqual(", "<="),
    ("have.lengthOf(", "count =="),
    ("have.length(", "count =="),
];

const EQUALITIES: [&str; 7] = ["equal(", "eql(", "eq(", "deep.equal(", "be.equal(", "be.eql(", "be.eq("];

/// Expressions of a variable, before its name.
const GETTERS: [&str; 7] = [
    "pm.environment.get(",
    "pm.collectionVariables.get(",
    "pm.globals.get(",
    "pm.variables.get(",
    "client.global.get(",
    "bru.getVar(",
    "bru.getEnvVar(",
];

/// Predicate of what follows `.to.`; `value` is the operand of a variable. None for any other text.
pub(super) fn predicate(rest: &str, value: &mut dyn FnMut(&str) -> String) -> Option<String> {
    let rest = rest.trim();
    if let Some(argument) = argument(rest, EQUALITIES) {
        return Some(format!("== {}", operand(argument, value)?));
    }
    if let Some((argument, operator)) =
        COMPARISONS.iter().find_map(|(start, operator)| Some((argument(rest, [*start])?, operator)))
    {
        let number = argument.parse::<f64>().is_ok_and(f64::is_finite).then(|| argument.to_owned());
        return Some(format!("{operator} {}", number.or_else(|| variable(argument).map(value))?));
    }
    let ends = ["not.be.undefined", "exist", "not.be.null", "be.ok"];
    if ends.iter().any(|end| rest.starts_with(end)) {
        return Some("exists".to_owned());
    }
    let is = match rest {
        "be.true" => "== true",
        "be.false" => "== false",
        "be.null" => "== null",
        "be.an('array')" | "be.an(\"array\")" | "be.a('array')" | "be.a(\"array\")" => "isList",
        "be.a('string')" | "be.a(\"string\")" => "isString",
        "be.a('number')" | "be.a(\"number\")" => "isNumber",
        "be.a('boolean')" | "be.a(\"boolean\")" => "isBoolean",
        _ => return None,
    };
    Some(is.to_owned())
}

/// Argument of the only call of a text that begins with one of these.
fn argument<'a, 's>(rest: &'a str, starts: impl IntoIterator<Item = &'s str>) -> Option<&'a str> {
    let inner = starts.into_iter().find_map(|start| rest.strip_prefix(start))?.strip_suffix(')')?;
    Some(inner.trim())
}

fn operand(text: &str, value: &mut dyn FnMut(&str) -> String) -> Option<String> {
    if let Some(text) = string(text) {
        return Some(serde_json::Value::from(text).to_string());
    }
    let is_literal = text.parse::<f64>().is_ok_and(f64::is_finite) || matches!(text, "true" | "false" | "null");
    if is_literal { Some(text.to_owned()) } else { variable(text).map(value) }
}

/// Name of the variable that an expression reads.
fn variable(text: &str) -> Option<&str> {
    argument(text, GETTERS).and_then(string).filter(|name| !name.is_empty())
}

/// Content of a string in quotes without escape sequences.
pub(super) fn string(text: &str) -> Option<&str> {
    let text = text.trim();
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains(['"', '\'', '`', '\\', '\n'])).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expectations_are_predicates() {
        let of = |text: &str| predicate(text, &mut |name| format!("\"{{{{{name}}}}}\""));
        for (text, expected) in [
            ("eql(\"a\")", Some("== \"a\"")),
            ("be.above(5)", Some("> 5")),
            ("be.at.least( 5 )", Some(">= 5")),
            ("be.lessThan(0.5)", Some("< 0.5")),
            ("have.lengthOf(3)", Some("count == 3")),
            ("eql(pm.environment.get('user'))", Some("== \"{{user}}\"")),
            ("equal(bru.getVar(\"x\"))", Some("== \"{{x}}\"")),
            ("be.true", Some("== true")),
            ("be.a('boolean')", Some("isBoolean")),
            ("be.above(five)", None),
            ("be.above(NaN)", None),
            ("eql(user)", None),
            ("eql(pm.environment.get(user))", None),
            ("be.oneOf([1, 2])", None),
        ] {
            assert_eq!(of(text).as_deref(), expected, "{text}");
        }
    }
}
