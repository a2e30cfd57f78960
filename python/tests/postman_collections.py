"""Collections of Postman that newman and weir play against one service, each about a part of `pm`."""

# ruff: noqa: E501  scripts of collections stand as they are

from __future__ import annotations

from typing import Any, TypeAlias

SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
Json: TypeAlias = dict[str, Any]
HOST = "http://127.0.0.1:PORT"


def event(listen: str, code: str) -> Json:
    """Script of a collection, a folder or a request."""
    return {"listen": listen, "script": {"type": "text/javascript", "exec": code.strip().splitlines()}}


def request(name: str, method: str = "GET", url: str | Json = "/json", **more: Any) -> Json:
    """Request with its scripts `pre` and `test`."""
    before, after = more.pop("pre", None), more.pop("test", None)
    behavior = more.pop("behavior", None)
    headers = [{"key": key, "value": value} for key, value in more.pop("headers", {}).items()]
    address = f"{{{{host}}}}{url}" if isinstance(url, str) and url.startswith("/") else url
    item: Json = {"name": name, "request": {"method": method, "url": address, "header": headers} | more, "event": []}
    if before:
        item["event"].append(event("prerequest", before))
    if after:
        item["event"].append(event("test", after))
    return item | ({"protocolProfileBehavior": behavior} if behavior else {})


def folder(name: str, *items: Json, pre: str = "", test: str = "", **more: Any) -> Json:
    """Folder with its scripts."""
    events = [event(listen, code) for listen, code in (("prerequest", pre), ("test", test)) if code]
    return {"name": name, "item": list(items), "event": events} | more


def collection(*items: Json, pre: str = "", test: str = "", variables: Json | None = None, **more: Any) -> Json:
    """Collection; the variable `host` is the service."""
    listed = [{"key": key, "value": value} for key, value in ({"host": HOST} | (variables or {})).items()]
    info = {"name": "c", "schema": SCHEMA}
    return folder("", *items, pre=pre, test=test, **more) | {"info": info, "variable": listed}


def raw(text: str, language: str = "json") -> Json:
    """Body of a text."""
    return {"mode": "raw", "raw": text, "options": {"raw": {"language": language}}}


SCOPES = collection(
    folder(
        "scopes",
        request(
            "sets",
            "POST",
            "/echo?a={{a}}&b={{b}}&c={{missing}}&d={{nested}}",
            body=raw('{"v": "{{local}}", "n": {{number}}, "same": "{{both}}"}'),
            headers={"X-Word": "{{word}}"},
            pre="""
            pm.environment.set('a', 'from environment');
            pm.globals.set('b', 'from globals');
            pm.variables.set('local', 'from variables');
            pm.collectionVariables.set('number', 7);
            pm.globals.set('both', 'global');
            pm.environment.set('both', 'environment');
            pm.collectionVariables.set('nested', '{{a}}/{{b}}');
            """,
            test="""
            pm.test('values', () => {
              pm.expect(pm.environment.get('a')).to.equal('from environment');
              pm.expect(pm.variables.get('number')).to.eql(7);
              pm.expect(pm.variables.get('both')).to.eql('environment');
              pm.expect(pm.globals.has('b')).to.be.true;
              pm.expect(pm.globals.has('nope')).to.be.false;
              pm.expect(pm.variables.has('word')).to.be.true;
              pm.expect(pm.environment.get('nope')).to.be.undefined;
              pm.expect(pm.collectionVariables.replaceIn('{{number}}-{{word}}-{{nope}}')).to.eql('7-tea-{{nope}}');
              pm.expect(pm.variables.replaceIn('{{a}} {{nested}}')).to.eql(
                'from environment from environment/from globals');
            });
            pm.test('sent', () => pm.expect(pm.response.json()).to.deep.equal(
              { v: 'from variables', n: 7, same: 'environment' }));
            pm.environment.unset('both');
            pm.globals.unset('b');
            """,
        ),
        request(
            "keeps",
            "GET",
            "/echo?both={{both}}&b={{b}}&local={{local}}",
            test="""
            pm.test('unset', () => pm.expect(pm.variables.get('both')).to.equal('global'));
            pm.test('objects', () => {
              pm.environment.set('o', { a: [1] });
              pm.expect(pm.environment.toObject()).to.include.keys('a', 'o');
              pm.environment.clear();
              pm.expect(pm.environment.has('a')).to.be.false;
            });
            """,
        ),
    ),
    variables={"word": "tea"},
)

RESPONSES = collection(
    request(
        "json",
        test="""
        pm.test('status', () => { pm.response.to.have.status(200); pm.response.to.have.status('X'); });
        pm.test('code', () => pm.expect(pm.response.code).to.be.oneOf([200, 201]));
        pm.test('ok', () => pm.response.to.be.ok);
        pm.test('not an error', () => { pm.response.to.not.be.error; pm.response.to.be.success; });
        pm.test('header', () => { pm.response.to.have.header('X-Id'); pm.response.to.have.header('x-id', 'one'); });
        pm.test('no header', () => pm.response.to.not.have.header('X-None'));
        pm.test('wrong header', () => pm.response.to.have.header('X-Id', 'two'));
        pm.test('json', () => { pm.response.to.be.json; pm.response.to.have.jsonBody('token', 'abc123'); });
        pm.test('path', () => pm.response.to.have.jsonBody('items[1].name', 'two'));
        pm.test('wrong path', () => pm.response.to.have.jsonBody('items[1].name', 'one'));
        pm.test('time', () => pm.expect(pm.response.responseTime).to.be.below(60000).and.to.be.at.least(0));
        pm.test('size', () => pm.expect(pm.response.responseSize).to.be.above(100));
        pm.test('text', () => pm.expect(pm.response.text()).to.include('"token": "abc123"'));
        pm.test('headers', () => pm.expect(pm.response.headers.get('Content-Type')).to.match(/^application.json/));
        pm.test('type', () => pm.expect(pm.response.headers.has('content-type')).to.equal(true));
        pm.test('body', () => pm.response.to.have.body(/abc123/));
        pm.test('schema', () => pm.response.to.have.jsonSchema({ type: 'object', required: ['token', 'items'],
          properties: { count: { type: 'integer', minimum: 7 }, items: { type: 'array', items: { type: 'object' } } } }));
        pm.test('wrong schema', () => pm.response.to.have.jsonSchema({ properties: { count: { type: 'string' } } }));
        """,
    ),
    request(
        "missing",
        url="/status/404",
        test="""
        pm.test('not found', () => { pm.response.to.be.notFound; pm.response.to.be.clientError; });
        pm.test('error', () => pm.response.to.be.error);
        pm.test('is wrong', () => pm.response.to.have.status(200));
        pm.test('not json', () => pm.response.to.be.json);
        pm.test('throws', () => pm.response.json());
        """,
    ),
    request("failed", url="/status/503", test="pm.test('server', () => pm.response.to.be.serverError);"),
    request("limited", url="/status/429", test="pm.test('limited', () => pm.response.to.be.rateLimited);"),
    request("unauthorized", url="/status/401", test="pm.test('who', () => pm.response.to.be.unauthorized);"),
    request("accepted", url="/status/202", test="pm.test('later', () => pm.response.to.be.accepted);"),
    request("text", url="/text", test="pm.test('body', () => pm.response.to.have.body('hello weir\\n'));"),
)

EXPECTATIONS = [
    "expect(1).to.equal(1)",
    "expect(1).to.equal('1')",
    "expect({a: 1}).to.equal({a: 1})",
    "expect({a: {b: [1]}}).to.eql({a: {b: [1]}})",
    "expect({a: 1}).to.deep.equal({a: 2})",
    "expect([1, 2, 3]).to.include(2)",
    "expect([{a: 1}]).to.include({a: 1})",
    "expect([{a: 1}]).to.deep.include({a: 1})",
    "expect('tea cup').to.include('cup').and.not.include('pot')",
    "expect({a: 1, b: 2}).to.include({a: 1})",
    "expect({a: 1}).to.have.property('a')",
    "expect({a: 1}).to.have.property('a', 2)",
    "expect({a: {b: 1}}).to.have.nested.property('a.b', 1)",
    "expect({a: 1}).to.not.have.property('b')",
    "expect({a: 1}).to.have.property('a').that.is.a('number').and.above(0)",
    "expect([]).to.be.an('array').that.is.empty",
    "expect('x').to.be.a('string')",
    "expect(null).to.be.a('null')",
    "expect(undefined).to.be.an('undefined')",
    "expect(/x/).to.be.a('regexp')",
    "expect(5).to.be.a('string')",
    "expect(5).to.be.above(4).and.below(6)",
    "expect(5).to.be.at.least(5).and.at.most(5)",
    "expect(5).to.be.within(6, 7)",
    "expect(5).to.be.gt(4).and.gte(5).and.lt(6).and.lte(5)",
    "expect('5').to.be.above(4)",
    "expect([1, 2]).to.have.lengthOf(2)",
    "expect([1, 2]).to.have.length(3)",
    "expect('abc').to.have.lengthOf.above(2)",
    "expect([1, 2, 3]).to.have.length.of.at.most(2)",
    "expect('tea').to.match(/^t/)",
    "expect('tea').to.not.match(/^t/)",
    "expect(2).to.be.oneOf([1, 2])",
    "expect(3).to.be.oneOf([1, 2])",
    "expect(0).to.exist",
    "expect(null).to.exist",
    "expect(undefined).to.not.exist",
    "expect(true).to.be.true",
    "expect(1).to.be.true",
    "expect(false).to.be.false",
    "expect(null).to.be.null",
    "expect(undefined).to.be.undefined",
    "expect('').to.be.empty",
    "expect({}).to.be.empty",
    "expect([0]).to.be.empty",
    "expect(1).to.be.ok",
    "expect('').to.be.ok",
    "expect(NaN).to.be.NaN",
    "expect({a: 1, b: 2}).to.have.keys('a', 'b')",
    "expect({a: 1, b: 2}).to.have.all.keys(['a'])",
    "expect({a: 1, b: 2}).to.have.any.keys('a', 'c')",
    "expect({a: 1, b: 2}).to.include.keys('a')",
    "expect({a: 1, b: 2}).to.contain.all.keys('a', 'c')",
    "expect([1, 2, 3]).to.have.members([3, 2, 1])",
    "expect([1, 2, 3]).to.include.members([2])",
    "expect([1, 2, 3]).to.have.members([1, 2])",
    "expect([{a: 1}]).to.have.deep.members([{a: 1}])",
    "expect([1, 2]).to.have.ordered.members([2, 1])",
    "expect('tea').to.be.a('string').with.lengthOf(3)",
    "expect('teapot').to.have.string('pot')",
    "expect(() => { throw new TypeError('bad tea'); }).to.throw(TypeError, 'bad')",
    "expect(() => {}).to.throw()",
    "expect([]).to.be.an.instanceof(Array)",
    "expect(1.5).to.be.closeTo(1.4, 0.2)",
    "expect(3).to.satisfy((n) => n % 2 === 0)",
    "expect(1).to.not.equal(1)",
    "expect({a: [1, {b: 2}]}).to.eql({a: [1, {b: 3}]})",
    "expect(new Date(0)).to.eql(new Date(0))",
    "expect(1, 'a message').to.equal(2)",
    "expect(5).to.be.nonsense",
    "expect({a: 1}).to.own.include({a: 1})",
    "expect(undefinedName).to.be.true",
    "expect(null).to.have.property('a')",
    "expect([1, [2]]).to.deep.include([2])",
    "expect(10).to.be.finite",
    "expect.fail('on purpose')",
]

EXPECT = collection(
    request(
        "expectations",
        test="\n".join(f"pm.test({text!r}, () => {{ pm.{text}; }});" for text in EXPECTATIONS),
    )
)


def _append(name: str, word: str) -> str:
    return f"pm.variables.set('{name}', `${{pm.variables.get('{name}') || ''}}.{word}`);"


ORDER = collection(
    folder(
        "outer",
        folder(
            "inner",
            request("one", pre=_append("log", "request"), test=_append("seen", "request")),
            pre=_append("log", "inner"),
            test=_append("seen", "inner"),
        ),
        request("two", "GET", "/echo?seen={{seen}}", test=_append("seen", "two")),
        pre=_append("log", "outer"),
        test=_append("seen", "outer"),
    ),
    request("three", "GET", "/echo?log={{log}}&seen={{seen}}", test="pm.test('end', () => {});"),
    pre=_append("log", "c"),
    test=_append("seen", "c"),
)

NEXT = collection(
    request(
        "first",
        pre="pm.variables.set('n', (pm.variables.get('n') || 0) + 1);",
        url="/echo?first={{n}}",
        test="if (pm.variables.get('n') < 3) { pm.execution.setNextRequest('first'); } else { postman.setNextRequest('last'); }",
    ),
    request("jumped over", url="/echo?never"),
    request("last", url="/echo?last", test="pm.test('is last', () => {}); pm.execution.setNextRequest(null);"),
    request("after the end", url="/echo?never-2"),
)

SKIPPED = collection(
    request(
        "skipped",
        url="/echo?never",
        pre="pm.execution.skipRequest(); pm.test('not reached', () => {});",
        test="pm.test('no tests either', () => {});",
    ),
    request("unknown next", url="/echo?1", test="pm.execution.setNextRequest('unknown');"),
    request("not reached", url="/echo?2"),
)

ERRORS = collection(
    request("throws before", url="/echo?1", pre="undefinedBefore();", test="pm.test('goes on', () => {});"),
    request(
        "throws after", url="/echo?2", test="pm.test('before it', () => {}); null.x; pm.test('behind it', () => {});"
    ),
    request("syntax", url="/echo?3", test="pm.test('x', () => {}"),
    request(
        "no service",
        url="http://127.0.0.1:1/x",
        test="pm.test('nothing there', () => pm.expect(pm.response).to.be.undefined);",
    ),
    request(
        "implicit",
        url="/echo?4",
        test="answer = 42; var other = 1; pm.test('set', () => pm.expect(answer).to.equal(42));",
    ),
    request(
        "forgotten", url="/echo?5", test="pm.test('not seen', () => pm.expect(typeof answer).to.equal('undefined'));"
    ),
    request(
        "skips",
        url="/echo?6",
        test="pm.test.skip('later', () => { throw 1; }); pm.test('index', () => pm.expect(pm.test.index()).to.equal(2));",
    ),
)

SENDING = collection(
    request(
        "asks",
        url="/echo?token={{token}}",
        pre="""
        pm.sendRequest({ url: pm.variables.get('host') + '/echo', method: 'POST', header: { 'Content-Type': 'application/json', 'X-Own': '1' },
          body: { mode: 'raw', raw: JSON.stringify({ name: 'ada' }) } }, function (err, res) {
          pm.environment.set('token', err ? 'failed' : res.json().name);
        });
        """,
        test="""
        pm.sendRequest(pm.variables.get('host') + '/counter/x', (err, res) => {
          pm.test('inside', () => { pm.expect(err).to.equal(null); pm.expect(res.code).to.equal(200); pm.expect(res.json().count).to.equal(1); });
          pm.sendRequest({ url: pm.variables.get('host') + '/echo?then', method: 'POST', body: { mode: 'urlencoded', urlencoded: [{ key: 'a', value: 'b c' }] } },
            (error, second) => pm.test('then', () => pm.expect(second.text()).to.equal('a=b%20c')));
        });
        pm.test('is sent with it', () => pm.expect(pm.request.url.toString()).to.match(/token=ada$/));
        """,
    ),
    request(
        "timers",
        url="/echo?wait={{waited}}",
        pre="setTimeout(() => pm.variables.set('waited', 'yes'), 20);",
        test="""
        pm.test('with done', (done) => setTimeout(() => { pm.expect(1).to.equal(1); done(); }, 10));
        pm.test('done with an error', (done) => done(new Error('no')));
        let rounds = 0;
        const timer = setInterval(() => { rounds += 1; if (rounds === 2) { clearInterval(timer); pm.test('interval', () => {}); } }, 5);
        """,
    ),
    request(
        "no service there",
        url="/echo?end",
        test="pm.sendRequest('http://127.0.0.1:1/', (err) => pm.test('err', () => pm.expect(err).to.be.an('error')));",
    ),
)
