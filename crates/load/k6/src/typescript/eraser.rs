//! Types of expressions, functions and classes.

use std::collections::HashSet;

use oxc_ast::ast::{
    ArrowFunctionExpression, BindingIdentifier, BindingPattern, Class, Decorator, ExportAllDeclaration,
    ExportDefaultDeclaration, ExportNamedDeclaration, Expression, Function, FunctionType, IdentifierReference,
    ImportDeclaration, MethodDefinition, Program, PropertyDefinition, TSAsExpression, TSClassImplements,
    TSEnumDeclaration, TSExportAssignment, TSImportEqualsDeclaration, TSIndexSignature, TSInterfaceDeclaration,
    TSModuleDeclaration, TSNamespaceExportDeclaration, TSNonNullExpression, TSSatisfiesExpression, TSThisParameter,
    TSTypeAliasDeclaration, TSTypeAnnotation, TSTypeAssertion, TSTypeParameterDeclaration,
    TSTypeParameterInstantiation, VariableDeclaration, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan as _, Span};
use oxc_syntax::scope::ScopeFlags;

use super::TypeScriptError;
use super::edits::Edits;

/// Eraser of the types of a file.
#[derive(Debug)]
pub(super) struct Eraser<'t> {
    pub(super) edits: Edits<'t>,
    /// Names that are used as values.
    pub(super) used: HashSet<String>,
    /// Names of types.
    pub(super) type_names: HashSet<String>,
    /// Names of values that the file declares.
    pub(super) value_names: HashSet<String>,
    /// First thing that is not supported.
    error: Option<TypeScriptError>,
}

impl<'t> Eraser<'t> {
    /// Eraser of a text.
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            edits: Edits::new(text),
            used: HashSet::new(),
            type_names: HashSet::new(),
            value_names: HashSet::new(),
            error: None,
        }
    }

    /// Text without the types.
    ///
    /// # Errors
    /// The first thing that is not supported.
    pub(super) fn run(mut self, program: &Program<'_>) -> Result<String, TypeScriptError> {
        self.visit_program(program);
        self.finish_modules(program);
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.edits.applied()),
        }
    }

    /// Rejects something, unless there was something before it.
    pub(super) fn reject(&mut self, span: Span, message: impl Into<String>) {
        self.error.get_or_insert(TypeScriptError { at: span.start, message: message.into() });
    }

    fn erase(&mut self, span: Span) {
        self.edits.blank(span.start, span.end);
    }

    /// Erases the mark between a name and its type.
    fn erase_mark(&mut self, it: &BindingPattern<'_>, mark: char) {
        // The span of the name has the mark and the type as well.
        match &it.type_annotation {
            Some(annotation) => self.edits.blank_sign_before(annotation.span.start, mark),
            None => {
                let end = it.kind.span().end;
                self.edits.blank_sign_before(end, mark);
                self.edits.blank_sign(end, mark);
            }
        }
    }

    /// Erases the type after an expression. Where a line follows that would continue the expression, it ends here.
    fn erase_after(&mut self, expression: &Expression<'_>, end: u32) {
        let start = expression.span().end;
        let next = self.edits.skip_trivia(end);
        let has_line = self.edits.part(end, next).contains('\n');
        let continues = self.edits.part(next, next + 1).starts_with(['(', '[', '`']);
        match has_line && continues {
            true => self.edits.blank_before(';', start, end),
            false => self.edits.blank(start, end),
        }
    }
}

impl<'a> Visit<'a> for Eraser<'_> {
    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        self.used.insert(it.name.to_string());
    }

    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.value_names.insert(it.name.to_string());
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.erase(it.span);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.erase(it.span);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.erase(it.span);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.erase_after(&it.expression, it.span.end);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.erase_after(&it.expression, it.span.end);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.edits.blank(it.expression.span().end, it.span.end);
        self.visit_expression(&it.expression);
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        let (start, end) = (it.span.start, it.expression.span().start);
        // As the body of an arrow function an object would be a block; after `return` a line would end it.
        let is_object = matches!(it.expression, Expression::ObjectExpression(_));
        if is_object || self.edits.part(start, end).contains('\n') {
            self.edits.blank_after('(', start, end);
            self.edits.replace(it.span.end, it.span.end, ")".to_owned());
        } else {
            self.edits.blank(start, end);
        }
        self.visit_expression(&it.expression);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.erase(it.span);
        self.edits.blank_sign(it.span.end, ',');
    }

    fn visit_binding_pattern(&mut self, it: &BindingPattern<'a>) {
        if it.optional {
            self.erase_mark(it, '?');
        }
        walk::walk_binding_pattern(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            self.erase_mark(&it.id, '!');
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_variable_declaration(&mut self, it: &VariableDeclaration<'a>) {
        match it.declare {
            true => self.edits.erase_whole(it.span),
            false => walk::walk_variable_declaration(self, it),
        }
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        match it.declare || it.r#type == FunctionType::TSDeclareFunction {
            true => self.edits.erase_whole(it.span),
            false => walk::walk_function(self, it, flags),
        }
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        // Brackets move, so that no line ends where none may end.
        if let Some(parameters) = &it.type_parameters
            && self.edits.part(parameters.span.start, parameters.span.end).contains('\n')
        {
            self.edits.blank_after('(', parameters.span.start, parameters.span.end);
            self.edits.blank(it.params.span.start, it.params.span.start + 1);
        }
        if let Some(result) = &it.return_type
            && self.edits.part(it.params.span.end, result.span.end).contains('\n')
        {
            self.edits.blank_before(')', it.params.span.end - 1, result.span.end);
        }
        walk::walk_arrow_function_expression(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        if it.declare {
            return self.edits.erase_whole(it.span);
        }
        self.erase_class_head(it);
        walk::walk_class(self, it);
    }

    fn visit_ts_class_implements_list(&mut self, _: &oxc_allocator::Vec<'a, TSClassImplements<'a>>) {}

    fn visit_property_definition(&mut self, it: &PropertyDefinition<'a>) {
        if self.erase_property(it) {
            walk::walk_property_definition(self, it);
        }
    }

    fn visit_accessor_property(&mut self, it: &oxc_ast::ast::AccessorProperty<'a>) {
        self.erase_modifiers(it.span.start, it.key.span().start);
        walk::walk_accessor_property(self, it);
    }

    fn visit_method_definition(&mut self, it: &MethodDefinition<'a>) {
        if self.erase_method(it) {
            walk::walk_method_definition(self, it);
        }
    }

    fn visit_ts_index_signature(&mut self, it: &TSIndexSignature<'a>) {
        self.edits.erase_whole(it.span);
    }

    fn visit_decorator(&mut self, it: &Decorator<'a>) {
        self.reject(it.span, "decorators are not supported; leave them out");
    }

    fn visit_ts_interface_declaration(&mut self, it: &TSInterfaceDeclaration<'a>) {
        self.type_names.insert(it.id.name.to_string());
        self.edits.erase_whole(it.span);
    }

    fn visit_ts_type_alias_declaration(&mut self, it: &TSTypeAliasDeclaration<'a>) {
        self.type_names.insert(it.id.name.to_string());
        self.edits.erase_whole(it.span);
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        self.replace_enum(it);
    }

    fn visit_ts_module_declaration(&mut self, it: &TSModuleDeclaration<'a>) {
        self.erase_namespace(it);
    }

    fn visit_ts_import_equals_declaration(&mut self, it: &TSImportEqualsDeclaration<'a>) {
        match it.import_kind.is_type() {
            true => self.edits.erase_whole(it.span),
            false => self.reject(it.span, "'import x = ...' is not supported; write import x from '...'"),
        }
    }

    fn visit_ts_export_assignment(&mut self, it: &TSExportAssignment<'a>) {
        self.reject(it.span, "'export =' is not supported; write export default");
    }

    fn visit_ts_namespace_export_declaration(&mut self, it: &TSNamespaceExportDeclaration<'a>) {
        self.edits.erase_whole(it.span);
    }

    // What becomes of an import depends on all names that the file uses.
    fn visit_import_declaration(&mut self, _: &ImportDeclaration<'a>) {}

    fn visit_export_named_declaration(&mut self, it: &ExportNamedDeclaration<'a>) {
        self.erase_export(it);
    }

    fn visit_export_default_declaration(&mut self, it: &ExportDefaultDeclaration<'a>) {
        self.erase_default_export(it);
    }

    fn visit_export_all_declaration(&mut self, it: &ExportAllDeclaration<'a>) {
        if it.export_kind.is_type() {
            self.edits.erase_whole(it.span);
        }
    }
}
