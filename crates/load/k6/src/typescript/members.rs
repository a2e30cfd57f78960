//! Heads and members of classes.

use oxc_ast::ast::{
    BindingPatternKind, Class, Expression, FormalParameters, Function, MethodDefinition, MethodDefinitionKind,
    MethodDefinitionType, PropertyDefinition, PropertyDefinitionType, Statement,
};
use oxc_span::{GetSpan as _, Span};

use super::eraser::Eraser;

/// Words before members that say nothing at run time.
const MODIFIERS: [&str; 7] = ["abstract", "declare", "override", "private", "protected", "public", "readonly"];

impl Eraser<'_> {
    /// Erases `abstract` and the interfaces.
    pub(super) fn erase_class_head(&mut self, class: &Class<'_>) {
        if class.r#abstract {
            let words = self.edits.words(class.span.start, class.body.span.start);
            let first = words.into_iter().find(|(start, end)| self.edits.part(*start, *end) == "abstract");
            first.into_iter().for_each(|(start, end)| self.edits.blank(start, end));
        }
        let Some(last) = class.implements.last() else { return };
        let before = [
            class.super_type_arguments.as_ref().map(|list| list.span),
            class.super_class.as_ref().map(oxc_span::GetSpan::span),
            class.type_parameters.as_ref().map(|list| list.span),
            class.id.as_ref().map(|id| id.span),
        ];
        // A class without all of these: the word after `class`.
        let from = before.into_iter().flatten().map(|span| span.end).max().unwrap_or(class.span.start);
        let words = self.edits.words(from, last.span.start);
        let keyword = words.into_iter().find(|(start, end)| self.edits.part(*start, *end) == "implements");
        keyword.into_iter().for_each(|(start, _)| self.edits.blank(start, last.span.end));
    }

    /// Erases words before a member or a parameter. A member whose first word goes is kept apart from the one before it.
    pub(super) fn erase_modifiers(&mut self, start: u32, key: u32) {
        self.erase_words(start, key, true);
    }

    fn erase_words(&mut self, start: u32, key: u32, is_member: bool) {
        for (from, to) in self.edits.words(start, key) {
            if !MODIFIERS.contains(&self.edits.part(from, to)) {
                continue;
            }
            match is_member && from == start {
                true => self.edits.blank_after(';', from, to),
                false => self.edits.blank(from, to),
            }
        }
    }

    /// Place after the key of a member.
    fn after_key(&self, key: Span, is_computed: bool) -> u32 {
        match self.edits.next_sign(key.end, ']').filter(|_| is_computed) {
            Some(at) => at + 1,
            None => key.end,
        }
    }

    /// Erases what is type of a property; whether it is there at run time.
    pub(super) fn erase_property(&mut self, it: &PropertyDefinition<'_>) -> bool {
        if it.declare || it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition {
            self.edits.erase_whole(it.span);
            return false;
        }
        let key = it.key.span();
        self.erase_modifiers(it.span.start, key.start);
        let after = self.after_key(key, it.computed);
        if it.optional {
            self.edits.blank_sign(after, '?');
        }
        if it.definite {
            self.edits.blank_sign(after, '!');
        }
        // Without its type, a name could be taken as a word before the next member.
        if let (Some(annotation), None) = (&it.type_annotation, &it.value) {
            self.edits.blank_before(';', annotation.span.start, annotation.span.end);
        }
        true
    }

    /// Erases what is type of a method; whether it is there at run time.
    pub(super) fn erase_method(&mut self, it: &MethodDefinition<'_>) -> bool {
        if it.r#type == MethodDefinitionType::TSAbstractMethodDefinition || it.value.body.is_none() {
            self.edits.erase_whole(it.span);
            return false;
        }
        let key = it.key.span();
        self.erase_modifiers(it.span.start, key.start);
        if it.optional {
            let after = self.after_key(key, it.computed);
            self.edits.blank_sign(after, '?');
        }
        if it.kind == MethodDefinitionKind::Constructor {
            self.assign_parameters(&it.value);
        }
        true
    }

    /// Makes properties of the parameters of a constructor that have a modifier.
    fn assign_parameters(&mut self, constructor: &Function<'_>) {
        let names = self.parameter_properties(&constructor.params);
        let Some(body) = constructor.body.as_ref().filter(|_| !names.is_empty()) else { return };
        let call = body.statements.iter().find(|statement| is_super_call(statement));
        let directive = body.directives.last().map(|directive| directive.span.end);
        let at = call.map(|call| call.span().end).or(directive).unwrap_or(body.span.start + 1);
        // The call may have no semicolon.
        let lead = if call.is_some() || directive.is_some() { "; " } else { " " };
        let text: Vec<String> = names.iter().map(|name| format!("this.{name} = {name};")).collect();
        self.edits.replace(at, at, format!("{lead}{}", text.join(" ")));
    }

    fn parameter_properties(&mut self, parameters: &FormalParameters<'_>) -> Vec<String> {
        let mut names = Vec::new();
        for parameter in &parameters.items {
            if parameter.accessibility.is_none() && !parameter.readonly && !parameter.r#override {
                continue;
            }
            let pattern = parameter.pattern.kind.span();
            self.erase_words(parameter.span.start, pattern.start, false);
            let kind = match &parameter.pattern.kind {
                BindingPatternKind::AssignmentPattern(pattern) => &pattern.left.kind,
                kind => kind,
            };
            match kind {
                BindingPatternKind::BindingIdentifier(id) => names.push(id.name.to_string()),
                _ => self.reject(parameter.span, "a parameter that is a property needs a name"),
            }
        }
        names
    }
}

fn is_super_call(statement: &Statement<'_>) -> bool {
    let Statement::ExpressionStatement(statement) = statement else { return false };
    matches!(&statement.expression, Expression::CallExpression(call) if matches!(call.callee, Expression::Super(_)))
}
