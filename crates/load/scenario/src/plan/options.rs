//! Options of a step: fixed rules, and what is computed before each execution.

use weir_base::Nanos;
use weir_hurl::{
    Expression, OptionCount, OptionDuration, OptionName, OptionValue, RequestOption, ScalarValue, Template,
    TemplatePart, Templated, TextPosition, VariableDefinition,
};

use super::piece::PieceCompiler;
use super::problem;
use super::render_error::RenderError;
use super::request_template::RenderSource;
use super::rules::StepRules;
use super::support::{OptionSupport, Unsupported};
use crate::evaluate::{CompiledTemplate, VariableSlot};
use crate::value::Value;

/// `[Options]` of a step, fixed or computed before each execution.
#[derive(Clone, Debug)]
pub(super) struct StepOptions {
    /// Rules with all values that never change.
    fixed: StepRules,
    /// Options computed before each execution, in order.
    actions: Vec<OptionAction>,
    /// Options of the request itself.
    pub(super) request: RequestOptions,
}

/// Options that change the bytes of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestOptions {
    pub(super) headers: Vec<Template>,
    pub(super) removed_headers: Vec<Template>,
    pub(super) user: Option<Template>,
    pub(super) compressed: bool,
    pub(super) digest: bool,
    pub(super) path_as_is: bool,
}

#[derive(Clone, Debug)]
enum OptionAction {
    Assign(VariableSlot, Value),
    AssignText(VariableSlot, CompiledTemplate, TextPosition),
    SetRule { name: OptionName, value: CompiledTemplate, position: TextPosition },
}

/// Value of an option that is a rule.
#[derive(Clone, Copy, Debug)]
enum RuleValue {
    Flag(bool),
    Count(u64),
    Duration(Nanos),
}

impl StepOptions {
    /// Compiles the options of a request; those without an effect are added to `warnings`.
    pub(super) fn compile(
        options: &[RequestOption],
        defaults: StepRules,
        compiler: &mut PieceCompiler<'_>,
        warnings: &mut Vec<(TextPosition, String)>,
    ) -> Self {
        let mut compiled = Self { fixed: defaults, actions: Vec::new(), request: RequestOptions::default() };
        for option in options {
            compiled.add(option, compiler, warnings);
        }
        compiled
    }

    /// Rules of an execution; variables are set.
    #[inline]
    pub(super) fn evaluate(
        &self,
        source: &mut RenderSource<'_, '_>,
        scratch: &mut Vec<u8>,
    ) -> Result<StepRules, RenderError> {
        let mut rules = self.fixed;
        for action in &self.actions {
            match action {
                OptionAction::Assign(slot, value) => source.set(*slot, value.clone()),
                OptionAction::AssignText(slot, template, position) => {
                    scratch.clear();
                    source.render(template, *position, scratch)?;
                    let text = String::from_utf8_lossy(scratch).into_owned();
                    source.set(*slot, Value::text(text));
                }
                OptionAction::SetRule { name, value, position } => {
                    scratch.clear();
                    source.render(value, *position, scratch)?;
                    let text = String::from_utf8_lossy(scratch);
                    let invalid = || RenderError::Option { name: *name, value: text.to_string(), position: *position };
                    let value = RuleValue::parse(*name, text.trim()).ok_or_else(invalid)?;
                    value.apply(*name, &mut rules);
                }
            }
        }
        Ok(rules)
    }

    fn add(
        &mut self,
        option: &RequestOption,
        compiler: &mut PieceCompiler<'_>,
        warnings: &mut Vec<(TextPosition, String)>,
    ) {
        match OptionSupport::of(option.name) {
            OptionSupport::Supported => {}
            OptionSupport::Unsupported(reason) => return reject(option, reason, compiler, warnings),
        }
        match &option.value {
            OptionValue::Variable(variable) => self.assign(variable, option.position, compiler),
            OptionValue::Text(text) => match option.name {
                OptionName::Header => self.request.headers.push(text.clone()),
                OptionName::NoHeader => self.request.removed_headers.push(text.clone()),
                OptionName::User => self.request.user = Some(text.clone()),
                _ => {}
            },
            OptionValue::Flag(Templated::Literal(flag)) => match option.name {
                OptionName::Compressed => self.request.compressed = *flag,
                OptionName::Digest => self.request.digest = *flag,
                OptionName::PathAsIs => self.request.path_as_is = *flag,
                name => self.fix(name, RuleValue::Flag(*flag)),
            },
            OptionValue::Count(Templated::Literal(count)) => {
                let count = match count {
                    OptionCount::Finite(count) => *count,
                    OptionCount::Infinite => u64::MAX,
                };
                self.fix(option.name, RuleValue::Count(count));
            }
            OptionValue::Duration(Templated::Literal(OptionDuration(duration))) => {
                self.fix(option.name, RuleValue::Duration(Nanos::from(*duration)));
            }
            OptionValue::Flag(Templated::Expression(expression))
            | OptionValue::Count(Templated::Expression(expression))
            | OptionValue::Duration(Templated::Expression(expression)) => {
                self.set_dynamic(option.name, expression, compiler);
            }
            OptionValue::Natural(_)
            | OptionValue::File(_)
            | OptionValue::Certificate { .. }
            | OptionValue::Verbosity(_) => {}
        }
    }

    fn assign(&mut self, variable: &VariableDefinition, position: TextPosition, compiler: &mut PieceCompiler<'_>) {
        let value = match &variable.value {
            ScalarValue::Null => Value::Null,
            ScalarValue::Bool(value) => Value::Bool(*value),
            ScalarValue::Number(number) => Value::from(number),
            ScalarValue::Text(template) => {
                let folded = compiler.folded(template);
                let Some(text) = folded.as_text() else {
                    let Some(template) = compiler.compile(&folded) else { return };
                    let slot = compiler.names.slot(&variable.name);
                    return self.actions.push(OptionAction::AssignText(slot, template, position));
                };
                Value::text(text.to_owned())
            }
        };
        self.actions.push(OptionAction::Assign(compiler.names.slot(&variable.name), value));
    }

    /// Sets a rule; an earlier expression for it has no effect any more.
    fn fix(&mut self, name: OptionName, value: RuleValue) {
        self.actions
            .retain(|action| !matches!(action, OptionAction::SetRule { name: earlier, .. } if *earlier == name));
        value.apply(name, &mut self.fixed);
    }

    fn set_dynamic(&mut self, name: OptionName, expression: &Expression, compiler: &mut PieceCompiler<'_>) {
        let position = expression.position;
        let template = Template { parts: vec![TemplatePart::Expression(expression.clone())], position };
        let folded = compiler.folded(&template);
        let expected = match name {
            OptionName::Delay | OptionName::RetryInterval | OptionName::MaxTime => "a duration in milliseconds",
            OptionName::MaxRedirs | OptionName::Repeat | OptionName::Retry => "an integer of at least -1",
            _ => "true or false",
        };
        if let Some(text) = folded.as_text() {
            match RuleValue::parse(name, text) {
                Some(RuleValue::Flag(flag)) if name == OptionName::Compressed => self.request.compressed = flag,
                Some(RuleValue::Flag(flag)) if name == OptionName::Digest => self.request.digest = flag,
                Some(RuleValue::Flag(flag)) if name == OptionName::PathAsIs => self.request.path_as_is = flag,
                Some(value) => self.fix(name, value),
                None => compiler.errors.push(problem(position, expected, format!("'{text}'"), "")),
            }
            return;
        }
        if matches!(name, OptionName::Compressed | OptionName::Digest | OptionName::PathAsIs) {
            let found = format!("'{expression}'");
            compiler.errors.push(problem(position, "true or false, which does not change in a load", found, ""));
            return;
        }
        if let Some(value) = compiler.compile(&folded) {
            self.actions.push(OptionAction::SetRule { name, value, position });
        }
    }
}

/// Adds a warning about an option without an effect, or an error if requests would not be what the file says.
fn reject(
    option: &RequestOption,
    reason: Unsupported,
    compiler: &mut PieceCompiler<'_>,
    warnings: &mut Vec<(TextPosition, String)>,
) {
    if matches!(option.value, OptionValue::Flag(Templated::Literal(false))) {
        return;
    }
    let name = option.name;
    match reason {
        Unsupported::Authentication => {
            let expected = "an option that a load supports";
            let hint = "authenticate with [BasicAuth], user or a header";
            compiler.errors.push(problem(option.position, expected, format!("'{name}'"), hint));
        }
        Unsupported::Log => warnings.push((option.position, format!("{name} has no effect in a load"))),
        Unsupported::Connection => {
            warnings.push((option.position, format!("{name} has no effect on a step; set it for the whole load")));
        }
        Unsupported::Version => {
            warnings.push((option.position, format!("{name} has no effect; requests are sent in HTTP/1.1")));
        }
    }
}

impl RuleValue {
    /// Parses the text of an expression's value.
    fn parse(name: OptionName, text: &str) -> Option<Self> {
        match name {
            OptionName::MaxRedirs | OptionName::Repeat | OptionName::Retry if text == "-1" => {
                Some(Self::Count(u64::MAX))
            }
            OptionName::MaxRedirs | OptionName::Repeat | OptionName::Retry => text.parse().ok().map(Self::Count),
            OptionName::Delay | OptionName::RetryInterval | OptionName::MaxTime => {
                let nanos = text.parse::<u64>().ok()?.checked_mul(Nanos::MILLI.0)?;
                Some(Self::Duration(Nanos(nanos)))
            }
            _ => text.parse().ok().map(Self::Flag),
        }
    }

    #[inline]
    fn apply(self, name: OptionName, rules: &mut StepRules) {
        match (name, self) {
            (OptionName::Skip, Self::Flag(skip)) => rules.skip = skip,
            (OptionName::Location, Self::Flag(follow)) => rules.follow_redirects = follow,
            (OptionName::LocationTrusted, Self::Flag(trust)) => {
                rules.follow_redirects = trust;
                rules.trust_redirects = trust;
            }
            (OptionName::Repeat, Self::Count(count)) => rules.repeat = count,
            (OptionName::Retry, Self::Count(count)) => rules.max_retries = count,
            (OptionName::MaxRedirs, Self::Count(count)) => rules.max_redirects = count,
            (OptionName::Delay, Self::Duration(duration)) => rules.delay = duration,
            (OptionName::RetryInterval, Self::Duration(duration)) => rules.retry_interval = duration,
            (OptionName::MaxTime, Self::Duration(duration)) => {
                rules.timeout = Some(duration).filter(|duration| *duration > Nanos::ZERO);
            }
            _ => {}
        }
    }
}
