//! Statements that are types alone, imports and exports.

use oxc_ast::ast::{
    Declaration, ExportDefaultDeclaration, ExportDefaultDeclarationKind, ExportNamedDeclaration, ExportSpecifier,
    FunctionType, ImportDeclaration, ImportDeclarationSpecifier, Program, Statement, TSModuleDeclaration,
    TSModuleDeclarationBody,
};
use oxc_ast_visit::walk;
use oxc_span::{GetSpan as _, Span};

use super::eraser::Eraser;

impl Eraser<'_> {
    /// Erases imports and exports that are types alone, after all names are known.
    pub(super) fn finish_modules(&mut self, program: &Program<'_>) {
        for statement in &program.body {
            match statement {
                Statement::ImportDeclaration(import) => self.erase_import(import),
                Statement::ExportNamedDeclaration(export) if export.source.is_none() => {
                    for specifier in &export.specifiers {
                        let name = specifier.local.name();
                        let is_type = self.is_type_alone(&name);
                        if is_type || specifier.export_kind.is_type() {
                            self.erase_listed(specifier.span);
                        }
                    }
                }
                Statement::ExportDefaultDeclaration(export) => {
                    if let ExportDefaultDeclarationKind::Identifier(id) = &export.declaration
                        && self.is_type_alone(&id.name)
                    {
                        self.edits.erase_whole(export.span);
                    }
                }
                _ => {}
            }
        }
    }

    fn is_type_alone(&self, name: &str) -> bool {
        self.type_names.contains(name) && !self.value_names.contains(name)
    }

    /// Erases an element of a list with the comma after it.
    fn erase_listed(&mut self, span: Span) {
        self.edits.blank(span.start, span.end);
        self.edits.blank_sign(span.end, ',');
    }

    fn erase_import(&mut self, import: &ImportDeclaration<'_>) {
        if import.import_kind.is_type() {
            return self.edits.erase_whole(import.span);
        }
        let Some(specifiers) = import.specifiers.as_ref().filter(|list| !list.is_empty()) else { return };
        let is_used = |specifier: &ImportDeclarationSpecifier<'_>| {
            let is_type =
                matches!(specifier, ImportDeclarationSpecifier::ImportSpecifier(it) if it.import_kind.is_type());
            !is_type && self.used.contains(specifier.local().name.as_str())
        };
        let unused: Vec<&ImportDeclarationSpecifier<'_>> = specifiers.iter().filter(|one| !is_used(one)).collect();
        if unused.len() == specifiers.len() {
            return self.edits.erase_whole(import.span);
        }
        for specifier in unused {
            match specifier {
                ImportDeclarationSpecifier::ImportNamespaceSpecifier(it) => {
                    // It follows a default import that stays: the comma before it goes.
                    let default = specifiers.first().map_or(it.span.start, |first| first.span().end);
                    self.edits.blank(default, it.span.end);
                }
                other => self.erase_listed(other.span()),
            }
        }
    }

    /// Erases an export if it is a type alone, and what is type in it.
    pub(super) fn erase_export(&mut self, it: &ExportNamedDeclaration<'_>) {
        let is_type = match &it.declaration {
            Some(Declaration::TSInterfaceDeclaration(one)) => {
                self.type_names.insert(one.id.name.to_string());
                true
            }
            Some(Declaration::TSTypeAliasDeclaration(one)) => {
                self.type_names.insert(one.id.name.to_string());
                true
            }
            Some(Declaration::FunctionDeclaration(one)) => one.declare || one.r#type == FunctionType::TSDeclareFunction,
            Some(Declaration::ClassDeclaration(one)) => one.declare,
            Some(Declaration::VariableDeclaration(one)) => one.declare,
            Some(Declaration::TSEnumDeclaration(one)) => one.declare,
            Some(Declaration::TSModuleDeclaration(one)) => {
                let has_no_values = has_types_alone(one);
                if !has_no_values {
                    self.erase_namespace(one);
                }
                has_no_values
            }
            Some(Declaration::TSImportEqualsDeclaration(one)) => one.import_kind.is_type(),
            None => it.export_kind.is_type(),
        };
        if is_type || it.export_kind.is_type() {
            return self.edits.erase_whole(it.span);
        }
        if it.source.is_some() {
            let is_type = |specifier: &ExportSpecifier<'_>| specifier.export_kind.is_type();
            if !it.specifiers.is_empty() && it.specifiers.iter().all(is_type) {
                // The module may have no values at all.
                return self.edits.erase_whole(it.span);
            }
            for specifier in it.specifiers.iter().filter(|specifier| specifier.export_kind.is_type()) {
                self.erase_listed(specifier.span);
            }
        }
        walk::walk_export_named_declaration(self, it);
    }

    /// Erases a default export if it is a type alone, and what is type in it.
    pub(super) fn erase_default_export(&mut self, it: &ExportDefaultDeclaration<'_>) {
        let is_type = match &it.declaration {
            ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
            ExportDefaultDeclarationKind::FunctionDeclaration(one) => one.body.is_none(),
            _ => false,
        };
        match is_type {
            true => self.edits.erase_whole(it.span),
            false => walk::walk_export_default_declaration(self, it),
        }
    }

    /// Erases a namespace of types; one with values is rejected.
    pub(super) fn erase_namespace(&mut self, it: &TSModuleDeclaration<'_>) {
        match has_types_alone(it) {
            true => self.edits.erase_whole(it.span),
            false => self.reject(it.span, "a namespace with values is not supported; write a module or an object"),
        }
    }
}

/// Whether nothing of a namespace is there at run time.
fn has_types_alone(it: &TSModuleDeclaration<'_>) -> bool {
    let is_type = |declaration: &Declaration<'_>| match declaration {
        Declaration::TSInterfaceDeclaration(_) | Declaration::TSTypeAliasDeclaration(_) => true,
        Declaration::TSModuleDeclaration(inner) => has_types_alone(inner),
        other => other.declare(),
    };
    it.declare
        || match &it.body {
            None => true,
            Some(TSModuleDeclarationBody::TSModuleDeclaration(inner)) => has_types_alone(inner),
            Some(TSModuleDeclarationBody::TSModuleBlock(block)) => block.body.iter().all(|statement| match statement {
                Statement::ExportNamedDeclaration(export) => export.declaration.as_ref().is_some_and(is_type),
                other => other.as_declaration().is_some_and(is_type),
            }),
        }
}
