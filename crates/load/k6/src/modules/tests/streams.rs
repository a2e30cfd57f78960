//! k6/experimental/streams, beside the streams of Node, and k6/secrets.

use std::process::Command;

use serde_json::{Value, json};

use crate::tests::{failure, run};

/// What a program with streams has seen. `closed` promises, errors of reads, sizes and pulls are among it.
const SEEN: &str = r"
const seen = [];
const told = (name) => (error) => seen.push([name, error?.message ?? error]);
const rest = async (reader) => {
  const all = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return all;
    all.push(value);
  }
};

// Pulled one by one, up to the mark.
let number = 0;
const pulled = new ReadableStream({
  pull(controller) {
    seen.push(['pull', controller.desiredSize]);
    number += 1;
    if (number > 4) controller.close();
    else controller.enqueue(number);
  },
}, new CountQueuingStrategy({ highWaterMark: 2 }));
await null;
await null;
seen.push(['before a read', number]);
const one = pulled.getReader();
seen.push(['locked', pulled.locked]);
seen.push(['all', await rest(one)]);
seen.push(['after the end', await one.read()]);
await one.closed;
await one.cancel('late');

// Sent from its start, with several reads at a time and sizes of its own.
let control;
const pushed = new ReadableStream({
  start(controller) { control = controller; },
  cancel(reason) { seen.push(['cancelled', reason]); },
}, { highWaterMark: 5, size: (chunk) => chunk.length });
const two = pushed.getReader();
const reads = [two.read(), two.read()];
control.enqueue('first');
control.enqueue('second');
seen.push(['reads', (await Promise.all(reads)).map((one) => one.value)]);
control.enqueue('third');
seen.push(['room', control.desiredSize]);
control.enqueue('more');
seen.push(['no room', control.desiredSize]);
await two.cancel('enough');
await two.closed.catch(told('closed'));
seen.push(['of a closed one', control.desiredSize]);
try { control.enqueue('x'); } catch (error) { seen.push(['enqueue', error.name]); }

// An error reaches what waits, and all reads after it.
const broken = new ReadableStream({ start(controller) { control = controller; } });
const three = broken.getReader();
const waiting = three.read().catch(told('waiting'));
control.error(new Error('gone'));
await waiting;
await three.read().catch(told('later'));
await three.closed.catch(told('closed'));
await three.cancel().catch(told('cancel'));
seen.push(['size of a broken one', control.desiredSize]);

// A lock is for one reader, and can be given back.
const shared = new ReadableStream({ start(controller) { controller.enqueue('a'); controller.enqueue('b'); controller.close(); } });
const four = shared.getReader();
try { shared.getReader(); } catch (error) { seen.push(['second lock', error.name]); }
await shared.cancel().catch((error) => seen.push(['cancel of a locked one', error.name]));
seen.push(['a', (await four.read()).value]);
four.releaseLock();
await four.read().catch((error) => seen.push(['read without a lock', error.name]));
const five = new ReadableStreamDefaultReader(shared);
seen.push(['b', await rest(five)]);
const silent = new ReadableStream().getReader();
const open = silent.read().catch((error) => seen.push(['released while it waits', error.name]));
silent.releaseLock();
await open;
await silent.closed.catch((error) => seen.push(['closed of a released one', error.name]));

// Mistakes of a source.
await new ReadableStream({ pull() { throw new Error('in pull'); } }).getReader().read().catch(told('pull'));
await new ReadableStream({ async start() { throw new Error('in start'); } }).getReader().read().catch(told('start'));
await new ReadableStream({ cancel() { throw new Error('in cancel'); } }).cancel().catch(told('cancel'));
try { new ReadableStream({ start() { throw new Error('at once'); } }); } catch (error) { told('start')(error); }
for (const options of [{ highWaterMark: -1 }, { highWaterMark: 'x' }, { size: 1 }]) {
  try { new ReadableStream({}, options); } catch (error) { seen.push(['options', error.name]); }
}
const sized = new ReadableStream({ start(controller) { control = controller; } }, { size: () => -1 });
try { control.enqueue('x'); } catch (error) { seen.push(['size', error.name]); }
await sized.getReader().read().catch((error) => seen.push(['size of a chunk', error.name]));
";

/// What Node has seen; `None` without Node.
fn of_node() -> Option<Value> {
    let program = format!("{SEEN}\nconsole.log(JSON.stringify(seen));");
    let output = Command::new("node").args(["--input-type=module", "-e", &program]).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("JSON"))
}

#[test]
fn streams_are_those_of_the_standard() {
    let own = run(&format!(
        "import {{ ReadableStream, ReadableStreamDefaultReader, CountQueuingStrategy }} from 'k6/experimental/streams';
        export default async () => {{ {SEEN} return seen; }};"
    ));
    assert_eq!(own[0], json!(["pull", 2]));
    assert_eq!(own.as_array().map(Vec::len), Some(36), "{own:#}");
    match of_node() {
        Some(others) => assert_eq!(own, others),
        None => println!("skipped: no node"),
    }
}

#[test]
fn streams_have_the_defaults_and_the_limits_of_k6() {
    let made = run("import streams, { CountQueuingStrategy } from 'k6/experimental/streams';
        export default () => [new CountQueuingStrategy().highWaterMark, new CountQueuingStrategy().size('abc'), Object.keys(streams)];");
    let names = ["ReadableStream", "ReadableStreamDefaultReader", "CountQueuingStrategy"];
    assert_eq!(made, json!([1, 1, names]));
    let why = failure(
        "import { ReadableStream } from 'k6/experimental/streams';
        export default () => { new ReadableStream({ type: 'bytes' }); };",
    );
    assert!(why.contains("a stream of type 'bytes' is not supported"), "{why}");
}

#[test]
fn a_secret_without_a_source_says_how_to_name_one() {
    let why = failure("import secrets from 'k6/secrets';\nexport default async () => secrets.get('a');");
    assert!(why.contains("no secret source; name one by -e K6_SECRET_SOURCE=file=FILE"), "{why}");
    let why = failure("import secrets from 'k6/secrets';\nexport default async () => secrets.source('a').get('b');");
    assert!(why.contains("no secret source 'a'"), "{why}");
}
