//! k6/encoding, k6/timers, k6/experimental/fs and csv, and where files are.

use serde_json::json;

use crate::tests::{failure, run, run_files};

#[test]
fn base64_has_the_variants_of_k6() {
    let made = run("import encoding, { b64encode } from 'k6/encoding';
        export default () => [b64encode('häll0??>'), b64encode('häll0??>', 'rawstd'), b64encode('häll0??>', 'url'), b64encode('häll0??>', 'rawurl'),
          b64encode(new Uint8Array([1, 2]).buffer), encoding.b64decode('aMOkbGwwPz8-', 'rawurl', 's'), new Uint8Array(encoding.b64decode('AQI=')).length,
          encoding.b64decode('YWJj\\nZGU=', 'std', 's')];");
    let expected =
        json!(["aMOkbGwwPz8+", "aMOkbGwwPz8+", "aMOkbGwwPz8-", "aMOkbGwwPz8-", "AQI=", "häll0??>", 2, "abcde"]);
    assert_eq!(made, expected);
    let rejected = |call: &str| failure(&format!("import e from 'k6/encoding';\nexport default () => {call};"));
    assert!(rejected("e.b64encode('a', 'hex')").contains("invalid encoding 'hex'; choose std"));
    assert!(rejected("e.b64decode('*')").starts_with("main.js:2: TypeError: no base64"));
}

#[test]
fn timers_have_two_names() {
    let made = run("import { setTimeout as later, clearTimeout } from 'k6/timers';
        import timers from 'k6/experimental/timers';
        export default () => [later === setTimeout, typeof clearTimeout, typeof timers.setInterval];");
    assert_eq!(made, json!([true, "function", "function"]));
}

#[test]
fn files_are_read_in_parts() {
    let script = "import { open, SeekMode } from 'k6/experimental/fs';
        const file = await open('./a.txt');
        export default async () => {
          const part = new Uint8Array(4), out = [];
          for (let read; (read = await file.read(part)) !== null; ) out.push(String.fromCharCode(...part.slice(0, read)));
          out.push(await file.seek(-2, SeekMode.End), await file.read(part), part[0], (await file.stat()).size, (await file.stat()).name);
          try { await file.seek(-1, SeekMode.Start); } catch (error) { out.push(error.message); }
          return out;
        };";
    let made = run_files(&[("main.js", script), ("a.txt", "abcdefghij")]);
    assert_eq!(made, Ok(json!(["abcd", "efgh", "ij", 8, 2, 105, 10, "a.txt", "the file './a.txt' has no byte -1"])));
    let late = "import { open } from 'k6/experimental/fs';\nexport default async () => open('./a.txt');";
    assert!(failure(late).contains("is for the init context"));
    assert!(failure("import { open } from 'k6/experimental/fs';\nawait open('none.txt');").contains("cannot open"));
}

#[test]
fn rows_of_csv_are_shared() {
    let script = "import { open } from 'k6/experimental/fs';
        import csv, { Parser } from 'k6/experimental/csv';
        const file = await open('a.csv');
        const rows = await csv.parse(file, { asObjects: true, delimiter: ';' });
        const parser = new Parser(file, { delimiter: ';', skipFirstLine: true });
        export default async () => [rows.length, rows[1].name, await parser.next(), await parser.next(), await parser.next(),
          (() => { try { rows[0] = 1; } catch (error) { return error.message; } })()];";
    let made = run_files(&[("main.js", script), ("a.csv", "id;name\n1;x\n2;\"y z\"\n")]);
    let expected = json!([
        2, "y z", { "done": false, "value": ["1", "x"] }, { "done": false, "value": ["2", "y z"] }, { "done": true, "value": [] },
        "a SharedArray cannot be changed"
    ]);
    assert_eq!(made, Ok(expected));
}

#[test]
fn a_module_resolves_its_neighbours() {
    let script = "const text = open(import.meta.resolve('./sub/a.txt'));\nexport default () => [text, import.meta.resolve('k6/http'), import.meta.resolve('./sub/a.txt').startsWith('file:///')];";
    let folder = run_files(&[("main.js", script)]);
    assert!(folder.is_err_and(|why| why.contains("no module './sub/a.txt'")));
    let script = script.replace("sub/", "");
    assert_eq!(run_files(&[("main.js", &script), ("a.txt", "x")]), Ok(json!(["x", "k6/http", true])));
}

#[test]
fn modules_that_are_not_there_are_rejected_by_name() {
    for (name, why) in [
        ("k6/experimental/redis", "does not load Redis"),
        ("k6/x/sql", "extensions of k6"),
        ("k6/browser", "does not drive a browser"),
    ] {
        let why_not = failure(&format!("import * as a from '{name}';\nexport default () => a;"));
        assert!(why_not.contains(&format!("'{name}' is not supported")) && why_not.contains(why), "{why_not}");
    }
}
