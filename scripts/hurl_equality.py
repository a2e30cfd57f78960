#!/usr/bin/env python3
"""Plays .hurl files with hurl and with weir against the same recording service, and compares what both do.

    scripts/hurl_equality.py HURL WEIR FOLDER [--golden FILE] [--url URL]

HURL and WEIR are the two programs. Each file of FOLDER is played by both against a fresh service of this script, which
records all requests; with --url, through a relay to a service that runs already. Compared are the requests (method,
target, headers, body), the captures, the verdict, and which checks have failed. Not compared are the User-Agent, the
order of headers and of cookies, a Content-Length of 0, the values of random functions, and how the two reports write
dates, bytes (Base64 or hexadecimal digits) and integers of more than 64 bits. The exit code is 1 if a file differs.

--golden FILE saves what hurl did, with the responses: the tests of weir play them back without hurl.
"""

import argparse
import base64
import gzip
import json
import pathlib
import re
import socket
import subprocess
import sys
import threading
import zlib

VARIABLES = {
    "id": "42", "name": "Ada", "flag": "true", "half": "0.5", "digits": '"123"', "spaced": "two words",
    "quoted": 'say "hi"', "tries": "3", "interval": "10", "no": "false", "token": "abc123",
}
DOCUMENT = """{
  "token": "abc123", "count": 7, "price": 1.5, "ok": true, "none": null, "big": 123456789012345678901234567890,
  "items": [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}, {"id": 3, "name": "three"}],
  "empty_list": [], "empty_text": "", "empty_object": {}, "text_number": "12", "spaced_number": " 12 ",
  "text_float": "1.25", "csv": "a,b,c", "uuid": "123e4567-e89b-42d3-a456-426614174000", "v4": "10.0.0.1",
  "v6": "2001:db8::1", "date": "2026-01-31T12:00:00Z", "day": "2026-01-31", "far": "2999-12-31",
  "rfc2822": "Sat, 31 Jan 2026 12:00:00 GMT", "html": "&lt;b&gt;&amp;&eacute;&#32;&nbsp;", "markup": "<a href=\\"x\\">'&",
  "link": "http://h/p?q=a b", "encoded": "a%20b+c%2F%C3%BC", "b64": "SGVsbG8=", "b64url": "-_8",
  "json_text": "{\\"inner\\": [1, 2]}", "page": "<p>some <b>bold</b></p>"
}
"""
HTML = """<!DOCTYPE html>
<html><head><title>Shop &amp; Co</title><meta name="csrf" content="t-1"><link rel=x href=y></head>
<body><h1>Shop</h1><p>  a
 b </p><ul><li class=a>one<li>two<li>three</ul>
<a class="big buy" href="/buy?id=1&amp;n=2">buy</a><form action=/x><input name=q disabled><br></form></body></html>
"""
XML = """<?xml version="1.0" encoding="utf-8"?>
<shop xmlns:x="urn:x"><item id="1"><name>one</name><price>1.5</price></item>
<item id="2"><name>two</name><price>2</price></item><x:note>n</x:note><text><![CDATA[a<b]]> &amp; c</text></shop>
"""
# "hello brotli\n" in a brotli stream of one uncompressed block.
BROTLI = bytes([0x0B, 0x06, 0x80]) + b"hello brotli\n" + bytes([0x03])


class RecordingService:
    """HTTP/1.1 service on the loopback interface; it keeps all requests and responses in order."""

    def __init__(self, upstream=None):
        self.exchanges = []
        self.counts = {}
        self.upstream = upstream
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            while request := read_message(stream):
                head, body = request
                line, *fields = head.decode("latin-1").split("\r\n")
                method, target, _ = line.split(" ", 2)
                fields = [tuple(part.strip() for part in field.split(":", 1)) for field in fields if field]
                # A request is recorded even if its client does not wait for the response.
                exchange = [(method, target, fields, body), b""]
                self.exchanges.append(exchange)
                if self.upstream:
                    response = self._relay(head, body)
                else:
                    response = self.respond(method, target, dict((n.lower(), v) for n, v in fields), fields, body)
                exchange[1] = response
                try:
                    connection.sendall(response)
                except OSError:
                    return
                if b"connection: close" in response.split(b"\r\n\r\n", 1)[0].lower():
                    return

    def _relay(self, head, body):
        with socket.create_connection(self.upstream) as upstream, upstream.makefile("rb") as stream:
            lines = head.split(b"\r\n")
            kept = [line for line in lines if not line.lower().startswith((b"connection:", b"host:"))]
            host = f"Host: {self.upstream[0]}:{self.upstream[1]}".encode()
            upstream.sendall(b"\r\n".join([kept[0], host, *kept[1:], b"Connection: close"]) + b"\r\n\r\n" + body)
            return stream.read()

    def close(self):
        self.listener.close()

    def count(self, key):
        self.counts[key] = self.counts.get(key, 0) + 1
        return self.counts[key]

    def respond(self, method, target, headers, fields, body):
        path = target.split("?")[0].split("#")[0]
        parts = path.strip("/").split("/")
        route = parts[0]
        status, content, more = 200, b"", []
        kind = "text/plain; charset=utf-8"
        if route in ("text", ""):
            content = b"hello weir\n"
        elif route == "echo":
            content, kind = body, headers.get("content-type", "application/octet-stream")
        elif route == "json":
            content, kind = DOCUMENT.encode(), "application/json"
            more = [("X-Id", "one"), ("X-Many", "a"), ("X-Many", "b")]
        elif route == "html":
            content, kind = HTML.encode(), "text/html; charset=utf-8"
        elif route == "xml":
            content, kind = XML.encode(), "application/xml"
        elif route == "bytes":
            content, kind = bytes([0, 255, 254, 1]), "application/octet-stream"
        elif route == "latin1":
            content, kind = "café".encode("latin-1"), "text/plain; charset=iso-8859-1"
        elif route == "utf16":
            content, kind = '{"a": "é"}'.encode("utf-16-le"), "application/json; charset=utf-16le"
        elif route == "gzip":
            content, more = gzip.compress(b"hello gzip\n", mtime=0), [("Content-Encoding", "gzip")]
        elif route == "deflate":
            content, more = zlib.compress(b"hello deflate\n"), [("Content-Encoding", "deflate")]
        elif route == "br":
            content, more = BROTLI, [("Content-Encoding", "br")]
        elif route == "unknown-encoding":
            content, more = b"x", [("Content-Encoding", "x-new")]
        elif route == "cookies" and parts[-1] == "set":
            more = [("Set-Cookie", value) for value in (
                "sid=abc; Path=/; HttpOnly; SameSite=Lax", "deep=1; Path=/cookies/sub; Max-Age=3600",
                "gone=1; Max-Age=0", "old=1; Expires=Wed, 01 Jan 2020 00:00:00 GMT", "elsewhere=1; Domain=example.org",
                "safe=1; Secure; Path=/")]
        elif route == "cookies":
            content = headers.get("cookie", "").encode()
        elif route == "redirect" and parts[-1] != "0":
            status, more = 302, [("Location", f"/redirect/{int(parts[1]) - 1}")]
        elif route == "redirect":
            content = b"here"
        elif route == "redirect-to":
            status, more = int(parts[1]), [("Location", "/echo")]
        elif route == "basic":
            right = base64.b64encode(b"bob:secret pw").decode()
            if headers.get("authorization") != f"Basic {right}":
                status, more = 401, [("WWW-Authenticate", 'Basic realm="r"')]
        elif route == "digest":
            if headers.get("authorization", "").startswith("Digest"):
                content = b"welcome bob"
            else:
                status, more = 401, [("WWW-Authenticate", 'Digest realm="r", nonce="n1", qop="auth", algorithm=MD5')]
        elif route == "flaky":
            count = self.count(path)
            status, content = (500, b"not yet") if count < int(parts[2]) else (200, f"ok after {count}".encode())
        elif route == "counter":
            content, kind = json.dumps({"count": self.count(path)}).encode(), "application/json"
        elif route == "slow":
            threading.Event().wait(int(parts[1]) / 1000)
            content = b"ok"
        elif route == "status":
            status, content = int(parts[1]), b"status"
        else:
            status, content = 404, b"not found"
        lines = [f"HTTP/1.1 {status} X", f"Content-Type: {kind}", f"Content-Length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in more]
        head = "\r\n".join(lines).encode() + b"\r\n\r\n"
        return head if method == "HEAD" else head + content


def read_message(stream):
    """Head and body of a request; None at the end of the connection."""
    lines = []
    while True:
        try:
            line = stream.readline()
        except OSError:
            return None
        if not line:
            return None
        if line in (b"\r\n", b"\n"):
            break
        lines.append(line.rstrip(b"\r\n"))
    length = next((int(line.split(b":")[1]) for line in lines if line.lower().startswith(b"content-length:")), 0)
    return b"\r\n".join(lines), stream.read(length)


def without_port(text, port):
    """Text without the port of the service."""
    return text.replace(f"127.0.0.1:{port}", "127.0.0.1:PORT").replace(f"localhost:{port}", "localhost:PORT")


def normal_text(text, port):
    """Text without what differs between two plays: ports, random values, boundaries, nonces of clients."""
    text = without_port(text, port)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", "UUID", text)
    text = re.sub(r"20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)", "DATE", text)
    return re.sub(r'(cnonce|response)="[^"]*"', r'\1="*"', text)


def normal_request(request, port):
    """Request as it is compared."""
    method, target, fields, body = request
    content_type = next((value for name, value in fields if name.lower() == "content-type"), "")
    text = body.decode("latin-1")
    boundary = re.search(r"boundary=\"?([^\";]+)", content_type)
    if boundary:
        text = text.replace(boundary[1], "BOUNDARY")
    headers = []
    for name, value in fields:
        name = name.lower()
        if name == "user-agent" and not value.startswith(("hurl/", "weir/")):
            headers.append([name, value])
        elif name == "content-length" and (value == "0" or boundary or "DATE" in normal_text(text, port)):
            continue
        elif name == "cookie":
            headers.append([name, "; ".join(sorted(value.split("; ")))])
        elif name != "user-agent":
            value = re.sub(r"boundary=.*", "boundary=BOUNDARY", value)
            headers.append([name, normal_text(value, port)])
    return [method, normal_text(target, port), sorted(headers), normal_text(text, port)]


def variables(port):
    return {"host": f"http://127.0.0.1:{port}", "address": f"127.0.0.1:{port}", **VARIABLES}


def play(program, file, upstream, arguments):
    """Plays a file against a fresh service; returns it and the JSON that the program printed."""
    service = RecordingService(upstream)
    given = [part for name, value in variables(service.port).items() for part in ("--variable", f"{name}={value}")]
    done = subprocess.run([*program, *arguments, *given, str(file.name)], cwd=file.parent, capture_output=True, timeout=60)
    service.close()
    try:
        report = json.loads(done.stdout)
    except ValueError:
        report = None
    return service, done, report


def failed_positions(checks):
    """Positions of failed checks, counted from the last one: hurl has implicit checks before the first one."""
    return [len(checks) - at for at, is_ok in enumerate(checks) if not is_ok]


def play_hurl(program, file, upstream=None):
    service, done, report = play([program], file, upstream, ["--json", "--no-color"])
    requests = [normal_request(request, service.port) for request, _ in service.exchanges]
    if report is None:
        return {"verdict": "invalid", "requests": requests, "exchanges": service}, done
    entries = report["entries"]
    captures = [[c["name"], plain(c["value"], service.port)] for entry in entries for c in entry["captures"]]
    failed = [failed_positions([check["success"] for check in entry["asserts"]]) for entry in entries]
    return {
        "verdict": "ok" if report["success"] else "failed",
        "requests": requests, "captures": captures, "failed": [f for f in failed if f], "exchanges": service,
    }, done


def play_weir(program, file, upstream=None):
    service, done, report = play([program, "run", "--json", "--show-secrets"], file, upstream, [])
    requests = [normal_request(request, service.port) for request, _ in service.exchanges]
    if report is None:
        return {"verdict": "invalid", "requests": requests}, done
    steps = report["steps"]
    captures = [[c["name"], plain(c["value"], service.port)] for step in steps for c in step["captures"]]
    failed = [failed_positions([check["ok"] for check in step["checks"]]) for step in steps]
    return {
        "verdict": "ok" if report["ok"] else "failed",
        "requests": requests, "captures": captures, "failed": [f for f in failed if f],
    }, done


def plain(value, port):
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return str(value)
    return normal_text(value, port) if isinstance(value, str) else value


def is_same_value(hurl, weir):
    """Whether two values are the same; hurl writes bytes in Base64 and weir as hexadecimal digits."""
    if hurl == weir:
        return True
    try:
        return base64.b64decode(hurl, validate=True).hex() == weir
    except (TypeError, ValueError):
        return False


def differences(hurl, weir):
    """What differs between two plays, for a person."""
    found = []
    for key in ("verdict", "requests", "captures", "failed"):
        a, b = hurl.get(key), weir.get(key)
        if key == "requests" and a != b:
            for at in range(max(len(a), len(b))):
                left, right = (a[at] if at < len(a) else None), (b[at] if at < len(b) else None)
                if left != right:
                    found.append(f"request {at + 1}:\n      hurl {left}\n      weir {right}")
        elif key == "captures" and a != b:
            left, right = dict(a or []), dict(b or [])
            for name in left.keys() | right.keys():
                if not is_same_value(left.get(name), right.get(name)):
                    found.append(f"capture {name}:\n      hurl {left.get(name)}\n      weir {right.get(name)}")
        elif a != b:
            found.append(f"{key}: hurl {a}, weir {b}")
    return found


def golden_of(hurl):
    """What hurl did, with the responses, for tests without hurl."""
    service = hurl["exchanges"]
    responses = []
    for _, response in service.exchanges:
        responses.append(without_port(response.decode("latin-1"), service.port))
    return {key: hurl.get(key) for key in ("verdict", "requests", "captures", "failed")} | {"responses": responses}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("hurl")
    parser.add_argument("weir")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--golden", type=pathlib.Path)
    parser.add_argument("--url", help="HOST:PORT of a service that runs already")
    parser.add_argument("--only", default="", help="part of the names of files")
    args = parser.parse_args()
    upstream = None
    if args.url:
        host, port = args.url.rsplit(":", 1)
        upstream = (host, int(port))
    weir = str(pathlib.Path(args.weir).resolve())
    files = sorted(file for file in args.folder.rglob("*.hurl") if args.only in file.name)
    golden, different = {}, 0
    for file in files:
        left, hurl_done = play_hurl(args.hurl, file, upstream)
        right, weir_done = play_weir(weir, file, upstream)
        golden[file.stem] = golden_of(left)
        found = differences(left, right)
        if found:
            different += 1
            print(f"{file.name} differs")
            for line in found:
                print(f"    {line}")
            for done in (hurl_done, weir_done):
                said = done.stderr.decode(errors="replace").strip()
                if said:
                    print("    | " + said[:700].replace("\n", "\n    | "))
    print(f"{len(files) - different} of {len(files)} files are equal ({100 * (1 - different / max(len(files), 1)):.1f}%)")
    if args.golden:
        lines = [f"{json.dumps(name)}: {json.dumps(case)}" for name, case in golden.items()]
        args.golden.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
