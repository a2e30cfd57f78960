"""Collections of Postman about requests that scripts read and change, bodies, authentication and older names."""

# ruff: noqa: E501  scripts of collections stand as they are

from __future__ import annotations

from typing import Any

from postman_collections import collection, folder, raw, request

CHANGED = collection(
    request(
        "changed",
        "POST",
        "/echo?a=1",
        body=raw("{}"),
        headers={"X-Old": "1", "X-Kept": "k"},
        pre="""
        pm.request.headers.add({ key: 'X-New', value: 'n {{word}}' });
        pm.request.headers.upsert({ key: 'X-Kept', value: 'changed' });
        pm.request.headers.remove('X-Old');
        pm.request.url.query.add({ key: 'b', value: '2 3' });
        pm.request.addQueryParams('c=4');
        pm.request.body.raw = JSON.stringify({ made: true });
        pm.test('reads', () => {
          pm.expect(pm.request.method).to.equal('POST');
          pm.expect(pm.request.url.getHost()).to.equal('{{host}}');
          pm.expect(pm.request.headers.get('x-kept')).to.equal('changed');
          pm.expect(pm.request.url.query.get('a')).to.equal('1');
          pm.expect(pm.request.headers.has('X-Old')).to.be.false;
        });
        """,
        test="""
        pm.test('sent', () => {
          pm.expect(pm.request.headers.get('X-New')).to.equal('n tea');
          pm.expect(pm.request.url.toString()).to.match(/a=1&b=2%203&c=4$/);
          pm.expect(pm.request.url.getPath()).to.equal('/echo');
          pm.expect(pm.request.body.raw).to.equal('{"made":true}');
          pm.expect(pm.request.url.getQueryString()).to.include('b=');
        });
        """,
    ),
    request(
        "replaced",
        "POST",
        "/text",
        body=raw("{}"),
        pre="pm.request.method = 'PUT'; pm.request.url = '{{host}}/echo/other?x=1'; pm.request.body = { mode: 'urlencoded', urlencoded: [{ key: 'k', value: '{{word}}' }] };",
        test="pm.test('method', () => pm.expect(pm.request.method).to.equal('PUT'));",
    ),
    request(
        "info",
        test="""
        pm.test('info', () => {
          pm.expect(pm.info.requestName).to.equal('info');
          pm.expect(pm.info.eventName).to.equal('test');
          pm.expect(pm.info.iteration).to.equal(0);
        });
        """,
    ),
    variables={"word": "tea"},
)

BODIES = collection(
    request(
        "raw",
        "POST",
        "/echo",
        body=raw("plain {{word}}", "text"),
        test="pm.test('raw', () => pm.response.to.have.body('plain tea'));",
    ),
    request("json", "POST", "/echo", body=raw('{\n// one\n"a": "{{word}}" /* two */\n}')),
    request("xml", "POST", "/echo", body=raw("<a/>", "xml")),
    request(
        "form",
        "POST",
        "/echo",
        body={
            "mode": "urlencoded",
            "urlencoded": [
                {"key": "a", "value": "b c&d"},
                {"key": "off", "value": "1", "disabled": True},
                {"key": "é", "value": "{{word}}!*'()"},
            ],
        },
    ),
    request(
        "parts",
        "POST",
        "/echo",
        body={
            "mode": "formdata",
            "formdata": [
                {"key": "a", "value": "b;c", "type": "text"},
                {"key": "m", "value": "{}", "type": "text", "contentType": "application/json"},
            ],
        },
    ),
    request(
        "file",
        "POST",
        "/echo",
        body={"mode": "formdata", "formdata": [{"key": "f", "type": "file", "src": "note.txt"}]},
    ),
    request("binary", "POST", "/echo", body={"mode": "file", "file": {"src": "note.txt"}}),
    request(
        "graphql",
        "POST",
        "/echo",
        body={"mode": "graphql", "graphql": {"query": "{ a(b: $b) }", "variables": '{"b": "{{word}}"}'}},
    ),
    request("pruned", "GET", "/echo", body=raw("never")),
    request("kept", "GET", "/echo", body=raw("sent", "text"), behavior={"disableBodyPruning": True}),
    request("delete", "DELETE", "/echo", body=raw("[1]")),
    request("own type", "POST", "/echo", body=raw("a,b", "text"), headers={"Content-Type": "text/csv"}),
    request("empty", "POST", "/echo", body=raw("")),
    variables={"word": "tea"},
)

URLS = collection(
    request(
        "spaces",
        url="/echo?q=a b&r=%20&s={{word}}",
        test="pm.test('url', () => pm.expect(pm.request.url.getPath()).to.equal('/echo'));",
    ),
    request("signs", url="/echo?x[]=1&y=a|b&z='<>\"&é=ü"),
    request("path", url="/echo/a b/ü/{{word}}/%2F"),
    request(
        "variables",
        url={
            "raw": "x",
            "host": ["{{host}}"],
            "path": ["echo", ":id", "end"],
            "query": [
                {"key": "a", "value": "{{word}}"},
                {"key": "b", "value": "1", "disabled": True},
                {"key": "c", "value": None},
            ],
            "variable": [{"key": "id", "value": "n {{word}}"}],
        },
    ),
    request("unknown", url="/echo/{{nope}}?a={{nope}}"),
    request("fragment", url="/echo?a=1#part"),
    request("question", url="/echo?"),
    request("redirected", url="/redirect/2", test="pm.test('here', () => pm.response.to.have.body('here'));"),
    request(
        "not followed",
        url="/redirect/1",
        behavior={"followRedirects": False},
        test="pm.test('302', () => pm.response.to.have.status(302));",
    ),
    request("posted", "POST", "/redirect-to/302", body=raw("{}")),
    variables={"word": "tea"},
)


def _auth(kind: str, **values: str) -> dict[str, Any]:
    return {"auth": {"type": kind, kind: [{"key": key, "value": value} for key, value in values.items()]}}


AUTH = collection(
    request("inherited"),
    request("none", **_auth("noauth")),
    request(
        "basic",
        url="/basic",
        **_auth("basic", username="bob", password="{{password}}"),
        test="pm.test('in', () => pm.response.to.have.status(200));",
    ),
    request("key", **_auth("apikey", key="X-Key", value="{{word}}", **{"in": "header"})),
    request("query", url="/json?a=1", **_auth("apikey", key="k", value="v w", **{"in": "query"})),
    request("oauth", **_auth("oauth2", accessToken="t-1", addTokenTo="header")),
    folder(
        "folder",
        request("of the folder"),
        request("own", **_auth("bearer", token="own")),
        **_auth("bearer", token="folder"),
    ),
    test="pm.test('any', () => {});",
    variables={"word": "tea", "password": "secret pw"},
    **_auth("bearer", token="{{word}}"),
)

COOKIES = collection(
    request(
        "set",
        url="/cookies/set",
        test="""
    pm.test('has', () => { pm.expect(pm.cookies.has('sid')).to.be.true; pm.expect(pm.cookies.get('sid')).to.equal('abc'); });
    pm.test('has not', () => pm.expect(pm.cookies.has('gone')).to.be.false);
    pm.test('older', () => pm.expect(postman.getResponseCookie('sid').value).to.equal('abc'));
    """,
    ),
    request(
        "sent", url="/cookies/see", test="pm.test('sent', () => pm.expect(pm.response.text()).to.include('sid=abc'));"
    ),
    request(
        "deep",
        url="/cookies/sub/see",
        test="pm.test('deep', () => pm.expect(pm.response.text()).to.include('deep=1'));",
    ),
)

LEGACY = collection(
    request(
        "older names",
        "POST",
        "/echo",
        body=raw('{"a": 1}'),
        pre="postman.setEnvironmentVariable('e', 'x'); postman.setGlobalVariable('g', 5);",
        test="""
        var data = JSON.parse(responseBody);
        tests['status is 200'] = responseCode.code === 200;
        tests['a is 1'] = data.a === 1;
        tests['a is 2'] = data.a === 2;
        tests['type'] = postman.getResponseHeader('Content-Type').indexOf('json') > 0;
        tests['headers'] = responseHeaders['Content-Type'] !== undefined;
        tests['time'] = responseTime < 60000;
        tests['environment'] = environment.e === 'x' && environment['nope'] === undefined;
        tests['globals'] = globals.g === '5';
        tests['request'] = request.method === 'POST' && request.name === 'older names';
        tests[`iteration ${iteration}`] = iteration === 0;
        tests['get'] = postman.getEnvironmentVariable('e') === 'x';
        postman.clearEnvironmentVariable('e');
        tests['cleared'] = pm.environment.get('e') === undefined;
        """,
    ),
)

CRYPTO = collection(
    request(
        "signed",
        url="/echo?md5={{md5}}&sha1={{sha1}}&sha256={{sha256}}&sha512={{sha512}}&hmac={{hmac}}&basic={{basic}}",
        headers={"X-Signature": "{{hmac}}"},
        pre="""
        const crypto = require('crypto-js');
        pm.variables.set('md5', CryptoJS.MD5('tea').toString());
        pm.variables.set('sha1', crypto.SHA1('tea').toString(CryptoJS.enc.Hex));
        pm.variables.set('sha256', CryptoJS.SHA256('ü tea').toString());
        pm.variables.set('sha512', CryptoJS.SHA512('tea').toString(CryptoJS.enc.Hex).slice(0, 20));
        pm.variables.set('hmac', CryptoJS.HmacSHA256('message', 'key').toString(CryptoJS.enc.Hex));
        pm.variables.set('basic', CryptoJS.enc.Base64.stringify(CryptoJS.enc.Utf8.parse('a:ü')));
        """,
        test="""
        pm.test('hmac', () => {
          pm.expect(CryptoJS.HmacSHA1('m', 'k').toString(CryptoJS.enc.Base64)).to.equal('dytxyKKZfnaL4B2XEeSk80ok7zM=');
        });
        pm.test('encodings', () => {
          pm.expect(CryptoJS.enc.Utf8.stringify(CryptoJS.enc.Base64.parse('dGVh'))).to.equal('tea');
          pm.expect(CryptoJS.enc.Base64.parse('dGVh').toString(CryptoJS.enc.Utf8)).to.equal('tea');
          pm.expect(btoa('tea')).to.equal('dGVh');
          pm.expect(atob('dGVh')).to.equal('tea');
          pm.expect(CryptoJS.HmacSHA512('a', CryptoJS.enc.Hex.parse('6b')).toString()).to.equal(CryptoJS.HmacSHA512('a', 'k').toString());
          pm.expect(CryptoJS.SHA256('a').words.length).to.equal(8);
        });
        """,
    ),
)

DYNAMIC = collection(
    request(
        "made up",
        "POST",
        "/text",
        body=raw(
            '{"id": "{{$guid}}", "n": {{$randomInt}}, "t": {{$timestamp}}, "when": "{{$isoTimestamp}}", "mail": "{{$randomEmail}}"}'
        ),
        test="""
        const sent = JSON.parse(pm.request.body.raw);
        pm.test('guid', () => pm.expect(sent.id).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/));
        pm.test('number', () => pm.expect(sent.n).to.be.within(0, 1000));
        pm.test('time', () => pm.expect(sent.t).to.be.above(1600000000));
        pm.test('iso', () => pm.expect(new Date(sent.when).getTime()).to.be.above(0));
        pm.test('mail', () => pm.expect(sent.mail).to.include('@'));
        pm.test('in scripts', () => pm.expect(pm.variables.replaceIn('{{$guid}}')).to.have.lengthOf(36));
        pm.test('others', () => ['$randomFirstName', '$randomWord', '$randomUUID', '$randomBoolean', '$randomPassword', '$randomCity',
          '$randomColor', '$randomIP', '$randomUrl', '$randomPrice', '$randomPhoneNumber', '$randomLoremSentence']
          .forEach((name) => pm.expect(pm.variables.replaceIn(`{{${name}}}`), name).to.not.include('{{')));
        pm.test('unknown', () => pm.expect(pm.variables.replaceIn('{{$nonsense}}')).to.equal('{{$nonsense}}'));
        """,
    ),
)

ROWS = collection(
    request(
        "row",
        url="/echo?name={{name}}&n={{n}}",
        test="""
        pm.test(`row ${pm.iterationData.get('name')}`, () => {
          pm.expect(pm.iterationData.has('n')).to.be.true;
          pm.expect(pm.variables.get('name')).to.equal(data.name);
          pm.expect(pm.iterationData.toObject()).to.have.keys('name', 'n', 'quoted');
        });
        pm.test('numbers', () => pm.expect(pm.iterationData.get('n')).to.be.a('number'));
        pm.test('quoted', () => pm.expect(pm.iterationData.get('quoted')).to.be.a('string'));
        pm.test(`iteration ${pm.info.iteration}`, () => pm.expect(pm.info.iteration).to.be.below(3));
        pm.environment.set('count', (pm.environment.get('count') || 0) + 1);
        """,
    ),
)
