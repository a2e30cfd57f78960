//! Files with types, and what runs of them.
#![allow(clippy::expect_used, clippy::panic, reason = "a failed precondition fails the test")]

use proptest::prelude::*;
use serde_json::json;

use super::without_types;
use crate::tests::run_files;

fn erased(text: &str) -> String {
    without_types("a.ts", text).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

fn rejected(text: &str) -> String {
    without_types("a.ts", text).expect_err(text)
}

/// Files, and the value of their default function.
fn value(text: &str) -> serde_json::Value {
    run_files(&[("main.ts", text)]).unwrap_or_else(|why| panic!("{why}\n{text}\n{}", erased(text)))
}

#[test]
fn types_become_spaces() {
    let samples = [
        ("const a: number = 1;", "const a         = 1;"),
        ("let a!: string;", "let a         ;"),
        ("function f<T>(a?: T, ...b: T[]): a is T {}", "function f   (a    , ...b     )           {}"),
        ("function f(this: Window, a) {}", "function f(              a) {}"),
        ("const x = y as any;", "const x = y       ;"),
        ("const x = y satisfies Z<1>;", "const x = y               ;"),
        ("a!.b![0]!();", "a .b [0] ();"),
        ("f<A, B>(1); new Map<string, number>();", "f      (1); new Map                ();"),
        ("interface A { b: string }", ";                        "),
        ("type A = { b: string };", ";                      "),
        ("export type A = 1;\nexport interface B {}", ";                 \n;                    "),
        ("declare const a: number;", ";                       "),
        ("declare global { interface X {} }", ";                                "),
        ("import type { A } from 'a';", ";                          "),
        ("import { type A, b } from 'a'; b();", "import {         b } from 'a'; b();"),
        ("import { A } from 'k6/options'; const o: A = {};", ";                              const o    = {};"),
        ("import D, { A } from 'a'; D();", "import D, {   } from 'a'; D();"),
        ("import D, * as n from 'a'; D();", "import D          from 'a'; D();"),
        ("import D, { a } from 'a'; a();", "import    { a } from 'a'; a();"),
        ("import 'a';", "import 'a';"),
        ("export { type A } from './a';", ";"),
        ("export { type A, b } from './a';", "export { b } from './a';"),
        ("export type * from './a';", ";"),
        (
            "interface A {}; const b = 1; export { A, b, type C };",
            ";             ; const b = 1; export {    b,        };",
        ),
        (
            "abstract class A<T> extends B<T> implements C, D<T> {}",
            "         class A    extends B                       {}",
        ),
        (
            "class A { private readonly a: number = 1; static b?: string; declare c: any; [k: string]: any; }",
            "class A { ;                a         = 1; static b         ;; ;              ;                 }",
        ),
        (
            "class A { f(a: string): void; f(a) {} abstract g(): void; protected async h?(): Promise<void> {} }",
            "class A { ;                   f(a) {} ;                   ;         async h ()                {} }",
        ),
        ("function f(a: string): void;\nfunction f(a) {}", ";                           \nfunction f(a) {}"),
        ("try {} catch (e: unknown) {}", "try {} catch (e         ) {}"),
        ("for (const a of b as any[]) {}", "for (const a of b         ) {}"),
        ("const f = async <T,>(a: T): Promise<T> => a;", "const f = async     (a   )             => a;"),
        ("const g = () => <A>{ b: 1 };", "const g = () => (  { b: 1 });"),
        ("const a = <any>b;", "const a =      b;"),
        ("const { a, b }: { a: 1, b: 2 } = c;", "const { a, b }                   = c;"),
    ];
    for (text, expected) in samples {
        // Each character that goes is a space.
        let made = erased(text);
        assert_eq!(squeezed(&made), squeezed(expected), "{text}");
        let added = usize::from(text.contains("<A>{"));
        assert_eq!(made.chars().count(), text.chars().count() + added, "{text}\n{made}");
    }
}

fn squeezed(text: &str) -> String {
    text.split([' ', '\n']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

#[test]
fn statements_stay_apart_where_a_type_has_kept_them_apart() {
    assert_eq!(erased("const a = b as any\n(c)"), "const a = b      ;\n(c)");
    assert_eq!(erased("a()\ntype B = 1\n(c)"), "a()\n;         \n(c)");
    assert_eq!(erased("const f = (a\n): {\n} => a"), "const f = (a\n    \n) => a");
    assert_eq!(erased("const f = <\nT>(a) => a"), "const f = (\n   a) => a");
    assert_eq!(erased("class A { a = 1\nprivate ['b'] = 2 }"), "class A { a = 1\n;       ['b'] = 2 }");
    assert_eq!(erased("class A { get: number\nb() {} }"), "class A { get       ;\nb() {} }");
}

#[test]
fn enums_are_objects() {
    let text = "enum A { X, Y = 5, Z, S = 's', B = X | Y, N = -1, C = 's'.length, 'q r' = 7, P = A['q r'], Q }\nconst enum D { E = 2 }\nexport enum F { G }\n\
        export default () => [A.X, A.Y, A.Z, A.S, A.B, A.N, A.C, A['q r'], A[5], A[0], D.E, F.G, A.Q, Object.keys(A).length];";
    assert_eq!(value(text), json!([0, 5, 6, "s", 5, -1, 1, 7, "B", "X", 2, 0, 8, 17]));
    assert_eq!(erased("enum A {\n  X,\n  Y = 'y',\n}").matches('\n').count(), 3);
    assert!(rejected("enum A { X = f(), Y }").contains("the member 'Y' of the enum 'A' needs a value"));
}

#[test]
fn parameters_of_constructors_are_properties() {
    let text = "class A { constructor(private a: number, public readonly b = 2, c?: number) { } sum() { return this.a + this.b; } }\n\
        class B extends A { constructor(readonly d: string) { super(3)\n } }\n\
        export default () => [new A(1).sum(), Object.keys(new A(1)), new B('x').d, new B('x').sum()];";
    assert_eq!(value(text), json!([3, ["a", "b"], "x", 5]));
}

#[test]
fn what_is_not_supported_is_rejected_with_its_place() {
    assert_eq!(
        rejected("const a = 1;\n  namespace N { export const a = 1; }"),
        "a.ts:2:3: a namespace with values is not supported; write a module or an object"
    );
    assert_eq!(erased("namespace N { export interface A {} }"), ";                                    ");
    assert!(rejected("@x class A {}").starts_with("a.ts:1:1: decorators"));
    assert!(rejected("import a = require('a');").contains("import x from"));
    assert!(rejected("export = 1;").contains("export default"));
    assert!(rejected("const a: = 1;").starts_with("a.ts:1:10: "), "{}", rejected("const a: = 1;"));
    assert!(rejected(&"(".repeat(5000)).contains("brackets"));
}

#[test]
fn errors_have_the_lines_and_columns_of_the_file() {
    let text = "interface A {\n  b: string;\n}\ntype C = A;\nexport default function (): void {\n  const c: C = null as any; throw new Error('x');\n}\n";
    assert_eq!(run_files(&[("main.ts", text)]), Err("main.ts:6: Error: x".to_owned()));
}

#[test]
fn files_import_each_other_with_types() {
    let main = "import { twice, Kind } from './lib';\nimport { Options } from 'k6/options';\n\
        export const options: Options = {};\nconst a: Kind = 4;\nexport default () => twice<number>(a);";
    let lib = "export type Kind = number;\nexport const twice = <T extends number>(a: T): number => a * 2;";
    assert_eq!(run_files(&[("main.ts", main), ("lib.ts", lib)]), Ok(json!(8)));
}

/// Parts of JavaScript without types.
const PARTS: [&str; 16] = [
    "const a = 1;\n",
    "function f(a, { b }, ...c) { return a ? b : c; }\n",
    "class A extends B { static #x = 1; get y() { return this.#x; } async *z() {} }\n",
    "let g = async (a) => { await a; };\n",
    "for (const a of [1, 2]) { a < 3 && a > (1); }\n",
    "`a${1}b`;\n",
    "/a(b)<c>/g.test('x');\n",
    "label: for (;;) { break label; }\n",
    "export const d = { type: 1, as: 2, enum: 3, declare() {} };\n",
    "// type A = 1\n",
    "/* interface */ a?.b?.[0] ?? 1;\n",
    "try { f(); } catch { } finally { }\n",
    "const type = 1, as = 2, of = 3, declare = type;\n",
    "x = (y < z) > u;\n",
    "const ä = '\u{1F600}';\n",
    "import * as n from 'n'; n.a();\n",
];

proptest! {
    #[test]
    fn a_file_without_types_stays_as_it_is(parts in proptest::collection::vec(0..PARTS.len(), 0..6)) {
        let text: String = parts.iter().map(|part| format!("{{ {} }}\n", PARTS[*part])).collect();
        let text = if text.contains("export") || text.contains("import") {
            parts.iter().collect::<std::collections::BTreeSet<_>>().into_iter().map(|part| PARTS[*part]).collect()
        } else {
            text
        };
        if let Ok(same) = without_types("a.ts", &text) {
            prop_assert_eq!(same, text);
        }
    }

    #[test]
    fn lines_keep_their_numbers_and_any_text_ends(parts in proptest::collection::vec(0..SIGNS.len(), 0..24)) {
        let text: String = parts.iter().map(|part| SIGNS[*part]).collect();
        if let Ok(made) = without_types("a.ts", &text) {
            prop_assert_eq!(made.matches('\n').count(), text.matches('\n').count(), "{} -> {}", text, made);
        }
    }
}

/// Parts of TypeScript, whole or not.
const SIGNS: [&str; 30] = [
    "const ",
    "a",
    ": ",
    "number",
    " = ",
    "1",
    ";\n",
    "class A ",
    "{ ",
    "}\n",
    "(",
    ")",
    " as ",
    "any",
    "<T>",
    "!",
    "?",
    "enum E ",
    ", ",
    "interface B ",
    "type C = ",
    "function f",
    "private ",
    "constructor",
    "abstract ",
    "export ",
    "declare ",
    "=> ",
    "\n",
    "'s'",
];
