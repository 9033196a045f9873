"""A small Hub on 127.0.0.1 that answers as the real one does, or fails as it does when told to.

Answers follow what huggingface_hub 2.4.0 asks and reads: status, X-Error-Code, X-Error-Message, X-Repo-Commit, X-Linked-Size,
X-Linked-Etag, ETag, Range. Large files are redirected to a second server, as the real Hub redirects to its CDN; that server
must never be shown a token.
"""

import gzip
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from hub.model_content import git_sha1, is_lfs


@dataclass
class Repository:
    """One model repository with its commits."""

    name: str
    commits: dict[str, dict[str, bytes]]
    refs: dict[str, str]
    gated: str | bool = False
    private: bool = False
    accepted: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    claimed_bytes: dict[str, int] = field(default_factory=dict)

    def commit(self, revision: str) -> str | None:
        return self.refs.get(revision, revision if revision in self.commits else None)


@dataclass(frozen=True)
class Seen:
    """One request as the server saw it."""

    method: str
    path: str
    range: str | None
    authorization: str | None


@dataclass
class Fault:
    """Misbehave on requests whose method and path match, `times` times (None: always)."""

    path: str
    act: Callable[["Handler"], bool]
    method: str | None = None
    times: int | None = None

    def takes(self, handler: "Handler") -> bool:
        if self.times == 0 or self.path not in handler.path or self.method not in {None, handler.command}:
            return False
        if self.times is not None:
            self.times -= 1
        return True


class LocalHub:
    """The Hub and its CDN; use as a context manager."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.users: dict[str, str] = {}
        self.narrow_tokens: set[str] = set()
        self.faults: list[Fault] = []
        self.seen: list[Seen] = []
        self.sent_bytes: Counter[str] = Counter()
        self.compresses = False
        self.compressed: list[str] = []
        self.released = threading.Event()
        self.stalled = threading.Event()
        self._servers = [ThreadingHTTPServer(("127.0.0.1", 0), handler) for handler in (HubHandler, CdnHandler)]
        for server in self._servers:
            server.daemon_threads = True
            server.hub = self

    def __enter__(self) -> "LocalHub":
        for server in self._servers:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._servers[0].server_port}"

    @property
    def cdn(self) -> str:
        # Another host name, as the real one: some versions of the library tell hosts apart without their ports.
        return f"http://localhost:{self._servers[1].server_port}"

    def add(self, name: str, files: dict[str, bytes], **options: object) -> Repository:
        """Add a repository with one commit on main."""
        commit = hashlib.sha1(name.encode() + b"".join(sorted(files.values()))).hexdigest()
        self.repositories[name] = Repository(name, {commit: files}, {"main": commit}, **options)
        return self.repositories[name]

    def asked(self, path: str, method: str | None = None) -> list[Seen]:
        """Return the requests whose path holds a text."""
        return [seen for seen in self.seen if path in seen.path and method in {None, seen.method}]

    # Ways to misbehave

    def answer(self, path: str, status: int, times: int | None = None, method: str | None = None, **headers: str) -> None:
        """Answer with an error status; header names are written with _ for -."""

        def act(handler: "Handler") -> bool:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            handler.reply(status, b"<html>busy</html>", {"Content-Type": "text/html", **named})
            return True

        self.faults.append(Fault(path, act, method, times))

    def page(self, path: str, body: bytes, content_type: str = "text/html") -> None:
        """Answer 200 with something that is not the Hub's."""

        def act(handler: "Handler") -> bool:
            handler.reply(200, body, {"Content-Type": content_type})
            return True

        self.faults.append(Fault(path, act))

    def hang(self, path: str) -> None:
        """Never answer, until the test ends."""

        def act(handler: "Handler") -> bool:
            self.released.wait(20)
            handler.close_connection = True
            return True

        self.faults.append(Fault(path, act))

    def drip(self, path: str, every_s: float = 0.02) -> None:
        """Answer with a body that comes byte by byte and never ends, so that no wait for bytes is long."""

        def act(handler: "Handler") -> bool:
            handler.send_response(200)
            handler.send_header("Content-Length", "1000000")
            handler.end_headers()
            while not self.released.wait(every_s):
                handler.wfile.write(b" ")
                handler.wfile.flush()
            handler.close_connection = True
            return True

        self.faults.append(Fault(path, act))

    def reset(self, path: str, times: int | None = None) -> None:
        """Close the connection without an answer."""

        def act(handler: "Handler") -> bool:
            handler.close_connection = True
            return True

        self.faults.append(Fault(path, act, None, times))

    def shape_body(self, path: str, shape: Callable[[bytes], bytes], times: int | None = None) -> None:
        """Send another body of the same announced length: cut short, or with other bytes."""

        def act(handler: "Handler") -> bool:
            handler.shape = shape
            return False

        self.faults.append(Fault(path, act, "GET", times))

    def stall_after(self, path: str, sent_bytes: int, times: int | None = 1) -> None:
        """Send so many bytes of a body, tell the test through `stalled`, and go on when `released`."""

        def act(handler: "Handler") -> bool:
            handler.stall_after = sent_bytes
            return False

        self.faults.append(Fault(path, act, "GET", times))


class Handler(BaseHTTPRequestHandler):
    """What both servers share: log, misbehaviour, bodies with Range."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes; the second would wait 40 ms for an acknowledgement
    server: ThreadingHTTPServer

    def log_message(self, *_: object) -> None:
        pass

    @property
    def hub(self) -> LocalHub:
        return self.server.hub

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_GET(self) -> None:
        self.shape: Callable[[bytes], bytes] = bytes
        self.stall_after: int | None = None
        self.hub.seen.append(Seen(self.command, self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        for fault in self.hub.faults:
            if fault.takes(self) and fault.act(self):
                return
        self.respond()

    do_HEAD = do_GET  # noqa: N815

    def respond(self) -> None:
        raise NotImplementedError

    def reply(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def reply_json(self, value: object) -> None:
        self.reply(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def reply_error(self, status: int, code: str | None, message: str) -> None:
        headers = {"Content-Type": "application/json", "X-Error-Message": message, "X-Request-Id": "Root=1-local"}
        if code is not None:
            headers["X-Error-Code"] = code
        self.reply(status, json.dumps({"error": message}).encode(), headers)

    def reply_content(self, content: bytes, headers: dict[str, str]) -> None:
        if self.hub.compresses and "gzip" in self.headers.get("Accept-Encoding", ""):
            # As CDNs do: whole, compressed, whatever range was asked for.
            self.hub.compressed.append(self.path.split("?")[0].rpartition("/")[2])
            return self.reply(200, gzip.compress(content), headers | {"Content-Encoding": "gzip"})
        wanted = self.headers.get("Range")
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        body = content[start:]
        self.send_response(206 if wanted else 200)
        if wanted:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self._send_body(self.shape(body), len(body))
        return None

    def _send_body(self, body: bytes, announced: int) -> None:
        first = len(body) if self.stall_after is None else self.stall_after
        self.wfile.write(body[:first])
        self.hub.sent_bytes[self.path] += min(first, len(body))
        if self.stall_after is not None:
            self.wfile.flush()
            self.hub.stalled.set()
            self.hub.released.wait(20)
            self.wfile.write(body[first:])
        self.close_connection = self.close_connection or len(body) < announced


class HubHandler(Handler):
    """The Hub's own addresses."""

    @property
    def user(self) -> str | None:
        return self.hub.users.get((self.headers.get("Authorization") or "").removeprefix("Bearer "))

    def respond(self) -> None:
        path = unquote(urlsplit(self.path).path)
        if self.headers.get("Authorization") is not None and self.user is None:
            return self.reply_error(401, None, "Invalid credentials in Authorization header")
        if path == "/api/whoami-v2":
            return self._whoami()
        if path.startswith("/api/models/"):
            return self._api(path.removeprefix("/api/models/"))
        name, separator, rest = path[1:].partition("/resolve/")
        return self._resolve(name, rest) if separator else self.reply_error(404, None, "Not found")

    def _whoami(self) -> None:
        if self.user is None:
            return self.reply_error(401, None, "Invalid username or password.")
        return self.reply_json({"type": "user", "name": self.user, "auth": {"type": "access_token"}})

    def _api(self, rest: str) -> None:
        owner, name, *more = rest.split("/", 3)
        repository = self._visible(f"{owner}/{name}")
        if repository is None:
            return None
        verb, revision = (more[0], more[1]) if more else ("revision", "main")
        commit = repository.commit(revision)
        if commit is None:
            return self.reply_error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return self.reply_json(self._tree(repository, commit) if verb == "tree" else self._info(repository, commit))

    def _info(self, repository: Repository, commit: str) -> dict[str, object]:
        with_blobs = "blobs" in parse_qs(urlsplit(self.path).query)
        siblings = []
        for path, content in repository.commits[commit].items():
            entry: dict[str, object] = {"rfilename": path}
            if with_blobs:
                entry |= {"size": repository.claimed_bytes.get(path, len(content)), "blobId": git_sha1(content)}
                if is_lfs(content):
                    sha256 = hashlib.sha256(content).hexdigest()
                    entry["lfs"] = {"sha256": sha256, "size": entry["size"], "pointerSize": 134}
            siblings.append(entry)
        return {
            "_id": "0",
            "id": repository.name,
            "modelId": repository.name,
            "sha": commit,
            "private": repository.private,
            "gated": repository.gated,
            "disabled": False,
            "siblings": siblings,
            "tags": [],
        }

    def _tree(self, repository: Repository, commit: str) -> list[dict[str, object]]:
        entries = []
        for path, content in repository.commits[commit].items():
            entry: dict[str, object] = {"type": "file", "path": path, "size": len(content), "oid": git_sha1(content)}
            if is_lfs(content):
                entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
            entries.append(entry)
        return entries

    def _resolve(self, name: str, rest: str) -> None:
        repository = self._visible(name)
        if repository is None or not self._may_read(repository):
            return None
        revision, _, path = rest.partition("/")
        commit = repository.commit(revision)
        if commit is None:
            return self.reply_error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        content = repository.commits[commit].get(path)
        if content is None:
            return self.reply_error(404, "EntryNotFound", "Entry not found")
        headers = {"X-Repo-Commit": commit, "Accept-Ranges": "bytes", "ETag": f'"{git_sha1(content)}"'}
        if not is_lfs(content):
            return self.reply_content(content, headers)
        sha256 = hashlib.sha256(content).hexdigest()
        linked = {"X-Linked-Size": str(len(content)), "X-Linked-Etag": f'"{sha256}"'}
        location = f"{self.hub.cdn}/{name}/{sha256}/{path}?commit={commit}&signature=s"
        return self.reply(302, b"", headers | linked | {"Location": location})

    def _visible(self, name: str) -> Repository | None:
        repository = self.hub.repositories.get(name)
        if repository is not None and not (repository.private and self.user not in repository.accepted):
            return repository
        if self.user is None:
            self.reply_error(401, "RepoNotFound", "Invalid username or password.")
        else:
            self.reply_error(404, "RepoNotFound", "Repository not found")
        return None

    def _may_read(self, repository: Repository) -> bool:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        name = repository.name
        if not repository.gated:
            return True
        if self.user is None:
            message = f"Access to model {name} is restricted. You must have access to it and be authenticated to access it."
            self.reply_error(401, "GatedRepo", message)
        elif token in self.hub.narrow_tokens:
            message = "Please enable access to public gated repositories in your fine-grained token settings to view this one."
            self.reply_error(403, None, message)
        elif self.user in repository.pending:
            self.reply_error(403, "GatedRepo", f"Your request to access model {name} is awaiting a review from its authors.")
        elif self.user not in repository.accepted:
            message = f"Access to model {name} is restricted and you are not in the authorized list. Visit the page to ask."
            self.reply_error(403, "GatedRepo", message)
        else:
            return True
        return False


class CdnHandler(Handler):
    """The content of large files, behind signed addresses."""

    def respond(self) -> None:
        address = urlsplit(self.path)
        owner, name, _, path = address.path[1:].split("/", 3)
        commit = parse_qs(address.query)["commit"][0]
        content = self.hub.repositories[f"{owner}/{name}"].commits[commit][unquote(path)]
        self.reply_content(content, {"Content-Type": "application/octet-stream", "Accept-Ranges": "bytes"})
