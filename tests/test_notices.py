"""Who is told, and of what: by a webhook and a mail server that really listen, on this machine."""

from __future__ import annotations

import json
import re
import socket
import socketserver
import ssl
import threading
import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, timedelta
from email import message_from_bytes, policy
from http.client import InvalidURL
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from workbench.runs import notifications
from workbench.runs.fact_diff import Terms
from workbench.runs.notification_state import News
from workbench.runs.notifications import Notify, notify_of, tell
from workbench.runs.regression_check import CheckedRun
from workbench.runs.run_config import Orders
from workbench.runs.running import Run

SECRET = "hook-7f3a"
TODAY = date(2026, 11, 22)


def news(folder: Path, outcome: str, known: str | None, *why: str, name: str = "nightly") -> News:
    """A run with this outcome, and that people know of another; None: they were told nothing."""
    run = Run("case/20_overview", "20_overview", "done")
    path = folder / f"{name}.yaml"
    path.with_name(f".{path.name}.told.json").unlink(missing_ok=True)
    if known:
        before = News(path, [CheckedRun(run, known, [])], Terms(), TODAY)
        for way in ("the webhook", "the mail server"):
            before.told(way)
        assert before.keep() == ""
    return News(path, [CheckedRun(run, outcome, why)], Terms(), TODAY)


def again(folder: Path, outcome: str) -> News:
    """The same run, looked at once more."""
    run = Run("case/20_overview", "20_overview", "done")
    return News(folder / "nightly.yaml", [CheckedRun(run, outcome, [])], Terms(), TODAY)


@contextmanager
def listening(server: socketserver.BaseServer) -> Iterator[int]:
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Hook(HTTPServer):
    """Keeps what is posted to it, and answers as told."""

    def __init__(self, code: int = 200) -> None:
        super().__init__(("127.0.0.1", 0), _Posted)
        self.code, self.got = code, list[tuple[str, dict[str, Any]]]()


class _Posted(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.got.append((self.path, body))
        self.send_response(self.server.code)
        if self.server.code == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/elsewhere")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


class Post(socketserver.TCPServer):
    """Takes mail as a mail server does; `refuse` is the command that it answers with an error."""

    allow_reuse_address = True

    def __init__(self, refuse: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Taking)
        self.refuse, self.got = refuse, list[tuple[list[str], bytes]]()


class _Taking(socketserver.StreamRequestHandler):
    server: Post

    def handle(self) -> None:
        said: list[str] = []
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            command = line.decode().strip()
            said.append(command)
            if self.server.refuse and command.upper().startswith(self.server.refuse):
                self.wfile.write(b"550 no\r\n")
            elif command.upper() == "DATA":
                self.wfile.write(b"354 go on\r\n")
                data = b""
                while not data.endswith(b"\r\n.\r\n"):
                    data += self.rfile.readline()
                self.server.got.append((said, data.removesuffix(b".\r\n")))
                self.wfile.write(b"250 taken\r\n")
            elif command.upper() == "QUIT":
                self.wfile.write(b"221 bye\r\n")
                return
            else:
                self.wfile.write(b"250 yes\r\n")


def told_by(folder: Path, **notify: Any) -> Notify:
    return notify_of(Orders(folder / "nightly.yaml", [], notify=notify))


def hook_file(folder: Path, port: int) -> str:
    (folder / "hook").write_text(f"http://127.0.0.1:{port}/{SECRET}\n")
    return "hook"


def test_only_what_changed_is_told_and_once(tmp_path: Path) -> None:
    server = Hook()
    with listening(server) as port:
        notify = told_by(tmp_path, webhook_file=hook_file(tmp_path, port))
        for outcome, was, silent in (
            ("clean", None, True),
            ("clean", "clean", True),
            ("findings", "findings", True),
            ("failed", "failed", True),
            ("findings", None, False),
            ("findings", "clean", False),
            ("inconclusive", "clean", False),
            ("failed", "findings", False),
            ("clean", "findings", False),
        ):
            server.got.clear()
            assert list(tell(notify, "nightly", news(tmp_path, outcome, was, "a reason"))) == []
            assert len(server.got) == (0 if silent else 1), (outcome, was)
            assert list(tell(notify, "nightly", again(tmp_path, outcome))) == []
            assert len(server.got) == (0 if silent else 1), "once"
        ((path, body),) = server.got
        assert path == f"/{SECRET}"
        assert body["text"].split("\n")[:3] == [
            "nightly: 1 of 1 runs are clean again",
            f"on {socket.gethostname()}, {tmp_path / 'nightly.yaml'}",
            "case/20_overview: clean (before: findings)",
        ]


def test_text_of_logs_calls_nobody_and_links_nowhere(tmp_path: Path) -> None:
    server = Hook()
    with listening(server) as port:
        notify = told_by(tmp_path, webhook_file=hook_file(tmp_path, port))
        hostile = ["<!channel> <http://evil.example|click>", "\x1b[31m\u202ered", "&lt;!here&gt;"]
        assert list(tell(notify, "nightly", news(tmp_path, "findings", "clean", *hostile))) == []
    text = server.got[0][1]["text"]
    assert not set("<>\x1b\u202e") & set(text)
    assert "&lt;!channel&gt;" in text
    assert "&amp;lt;!here" in text


def test_mail_reaches_those_who_are_named_and_no_other(tmp_path: Path) -> None:
    server = Post()
    with listening(server) as port:
        where = {"mail_server": f"127.0.0.1:{port}", "mail_tls": "none"}
        notify = told_by(
            tmp_path, **where, mail_from="workbench@example.com", mail_to=["a@example.com", "b@example.com"]
        )
        why = "reason\r\nBcc: evil@example.com\r\n.\r\nüber"
        assert list(tell(notify, "night\r\nBcc: x@example.com", news(tmp_path, "failed", "clean", why))) == []
    ((said, data),) = server.got
    assert [one.upper() for one in said if one.upper().startswith("RCPT")] == [
        "RCPT TO:<A@EXAMPLE.COM>",
        "RCPT TO:<B@EXAMPLE.COM>",
    ]
    mail = message_from_bytes(data, policy=policy.default)
    assert mail["Bcc"] is None
    assert "1 of 1 runs need attention" in mail["Subject"]
    assert (mail["From"], mail["Auto-Submitted"]) == ("workbench@example.com", "auto-generated")
    assert abs(datetime.now(UTC) - mail["Date"].datetime) < timedelta(minutes=2)
    assert re.fullmatch(r"<[^<>@\s]+@example\.com>", mail["Message-ID"])
    assert "über" in mail.get_content()


@pytest.mark.parametrize("code", [302, 400, 404, 500])
def test_a_webhook_that_refuses_is_told_without_its_address(code: int, tmp_path: Path) -> None:
    server = Hook(code)
    with listening(server) as port:
        notify = told_by(tmp_path, webhook_file=hook_file(tmp_path, port))
        (why,) = tell(notify, "nightly", news(tmp_path, "failed", "clean", "x"))
    assert f"the webhook: it answered {code}" in why
    assert SECRET not in why + repr(notify)
    assert len(server.got) == 1, "it is not followed elsewhere"


def test_nobody_there_is_told(tmp_path: Path) -> None:
    server = Hook()
    port = server.server_address[1]
    server.server_close()
    notify = told_by(
        tmp_path,
        webhook_file=hook_file(tmp_path, port),
        mail_server=f"127.0.0.1:{port}",
        mail_tls="none",
        mail_from="a@example.com",
        mail_to=["b@example.com"],
    )
    whys = list(tell(notify, "nightly", news(tmp_path, "failed", "clean", "x")))
    assert ["Connection refused" in why for why in whys] == [True, True]
    assert SECRET not in "".join(whys)


@pytest.mark.parametrize("refused", ["MAIL", "RCPT", "DATA", "EHLO"])
def test_a_mail_server_that_refuses_is_told(refused: str, tmp_path: Path) -> None:
    server = Post(refused)
    with listening(server) as port:
        where = {"mail_server": f"127.0.0.1:{port}", "mail_tls": "none"}
        notify = told_by(tmp_path, **where, mail_from="a@example.com", mail_to=["b@example.com"])
        whys = list(tell(notify, "nightly", news(tmp_path, "failed", "clean", "x")))
    assert [why.startswith("nobody was told by the mail server") for why in whys] == (
        [True] if refused != "EHLO" else []
    )
    assert len(server.got) == (refused == "EHLO"), "one that speaks the older HELO only is understood"


def test_a_password_never_goes_over_a_line_that_anybody_reads(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("hunter2\n")
    given = {"mail_server": "127.0.0.1", "mail_from": "a@example.com", "mail_to": ["b@example.com"]}
    login = {"mail_user": "me", "mail_password_file": "password"}
    open_line = told_by(tmp_path, **given, **login, mail_tls="none")
    assert open_line.mail is None
    assert "would be sent as it is" in open_line.wrong[0]
    notify = told_by(tmp_path, **given, **login)
    assert notify.mail is not None
    assert (notify.mail.tls, notify.mail.port) == ("starttls", 587)
    assert "hunter2" not in repr(notify)
    server = Post("STARTTLS")  # one that cannot do it
    with listening(server) as port:
        notify = told_by(tmp_path, **{**given, "mail_server": f"127.0.0.1:{port}"}, **login)
        (why,) = tell(notify, "nightly", news(tmp_path, "failed", "clean", "x"))
    assert not server.got
    assert "hunter2" not in why


NO_ADDRESSES = ("ops@[", "a@[[", "a@(b)", "(x)a@b", "a[@b", "=?utf-8?q?x?=@y", "a@bü")
"""Python cannot write them, or takes them for others."""


@pytest.mark.parametrize(
    ("notify", "words"),
    [
        ({"webhook": "http://x"}, "did you mean webhook_file"),
        ({"password": "x"}, "a secret is never a parameter"),
        ({"webhook_file": "gone"}, "cannot read it"),
        ({"webhook_file": "empty"}, "no address of a webhook"),
        ({"webhook_file": "file"}, "no address of a webhook"),
        ({"webhook_file": "/dev/zero"}, "no plain file"),
        ({"webhook_file": "spoken"}, "no address of a webhook"),
        ({"webhook_file": ["a"]}, "not text"),
        ({"mail_server": "h"}, "mail_from is lacking"),
        ({"mail_server": "h", "mail_from": "a@b"}, "mail_to is lacking"),
        ({"mail_server": "h", "mail_from": "a@b", "mail_to": "c@d"}, "not a list"),
        ({"mail_server": "h", "mail_from": "a", "mail_to": ["c@d"]}, "no mail address"),
        ({"mail_server": "h", "mail_from": "a@b", "mail_to": ["c@d, e@f"]}, "no mail address"),
        *(({"mail_server": "h", "mail_from": "a@b", "mail_to": [one]}, "no mail address") for one in NO_ADDRESSES),
        ({"mail_server": "h", "mail_from": "ops@[", "mail_to": ["c@d"]}, "no mail address"),
        ({"mail_server": "h:x", "mail_from": "a@b", "mail_to": ["c@d"]}, "no mail server"),
        ({"mail_server": "h", "mail_from": "a@b", "mail_to": ["c@d"], "mail_tls": "ssl"}, "no mail server"),
        ({"mail_server": "h", "mail_from": "a@b", "mail_to": ["c@d"], "mail_user": "x"}, "go together"),
    ],
)
def test_a_way_that_cannot_be_used_is_told_before_anything_is_run(
    notify: dict[str, Any], words: str, tmp_path: Path
) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "file").write_text("file:///etc/passwd\n")
    (tmp_path / "spoken").write_text("http://example.com/hü\n")
    found = told_by(tmp_path, **notify)
    assert (found.webhook, found.mail) == ("", None)
    assert words in "; ".join(found.wrong)


def test_one_way_that_fails_is_tried_again_and_the_other_is_not(tmp_path: Path) -> None:
    hook, post = Hook(500), Post()
    with listening(hook) as port, listening(post) as mail_port:
        where = {"mail_server": f"127.0.0.1:{mail_port}", "mail_tls": "none", "mail_from": "a@example.com"}
        notify = told_by(tmp_path, webhook_file=hook_file(tmp_path, port), mail_to=["b@example.com"], **where)
        (why,) = tell(notify, "nightly", news(tmp_path, "failed", "clean", "x"))
        assert why.startswith("nobody was told by the webhook")
        hook.code = 200
        for _ in range(2):
            assert list(tell(notify, "nightly", again(tmp_path, "failed"))) == []
    assert (len(hook.got), len(post.got)) == (2, 1)


def test_an_error_of_one_way_that_nobody_expected_keeps_nobody_from_being_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise AttributeError("hunter2")

    hook, post = Hook(), Post()
    with listening(hook) as port, listening(post) as mail_port:
        where = {"mail_server": f"127.0.0.1:{mail_port}", "mail_tls": "none", "mail_from": "a@example.com"}
        notify = told_by(tmp_path, webhook_file=hook_file(tmp_path, port), mail_to=["b@[127.0.0.1]"], **where)
        for way, other in (("_mail", "the mail server"), ("_post", "the webhook")):
            with monkeypatch.context() as patched:
                patched.setattr(notifications, way, broken)
                (why,) = tell(notify, "nightly", news(tmp_path, "failed", "clean", "x"))
                assert why == f"nobody was told by {other}: AttributeError"
                (why,) = tell(notify, "nightly", again(tmp_path, "failed"))
    assert (len(hook.got), len(post.got)) == (1, 1), "what was told is remembered"


def test_one_address_of_two_that_is_refused_is_told(tmp_path: Path) -> None:
    server = Post("RCPT TO:<GONE")
    with listening(server) as port:
        where = {"mail_server": f"127.0.0.1:{port}", "mail_tls": "none", "mail_from": "a@example.com"}
        notify = told_by(tmp_path, **where, mail_to=["b@example.com", "gone@example.com"])
        (why,) = tell(notify, "nightly", news(tmp_path, "failed", "clean", "x"))
        assert why == "not all were told by the mail server: 1 of 2 addresses were refused (550)"
        notify = told_by(tmp_path, **where, mail_to=["gone@example.com"])
        (why,) = tell(notify, "nightly", news(tmp_path, "failed", "clean", "x"))
        assert why == "nobody was told by the mail server: it refused all addresses"
    assert len(server.got) == 1


class _Dripping(socketserver.StreamRequestHandler):
    """Answers a byte now and then, for ever; each comes in time."""

    def handle(self) -> None:
        with suppress(OSError):
            while True:
                self.wfile.write(b"2")
                time.sleep(0.05)


class _Silent(socketserver.StreamRequestHandler):
    """Ends at once, whatever is said."""

    def handle(self) -> None:
        self.rfile.read(1)


@pytest.mark.parametrize("way", ["webhook", "mail"])
def test_who_answers_for_ever_is_not_waited_for(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifications, "SECONDS", 0.5)
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Dripping)
    server.daemon_threads = True
    with listening(server) as port:
        given: dict[str, Any] = {"webhook_file": hook_file(tmp_path, port)}
        if way == "mail":
            given = {"mail_server": f"127.0.0.1:{port}", "mail_tls": "none", "mail_from": "a@b", "mail_to": ["c@d"]}
        began = time.monotonic()
        (why,) = tell(told_by(tmp_path, **given), "nightly", news(tmp_path, "failed", "clean", "x"))
        assert time.monotonic() - began < 5
    assert "it took longer than" in why


def test_a_line_that_is_not_safe_is_told_in_words(tmp_path: Path) -> None:
    with listening(socketserver.TCPServer(("127.0.0.1", 0), _Silent)) as port:
        where = {"mail_server": f"127.0.0.1:{port}", "mail_tls": "tls", "mail_from": "a@b", "mail_to": ["c@d"]}
        (why,) = tell(told_by(tmp_path, **where), "nightly", news(tmp_path, "failed", "clean", "x"))
    assert "str" not in why.split()
    assert why.startswith("nobody was told by the mail server: ")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED]"), "its certificate is not trusted"),
        (urllib.error.URLError(ssl.SSLCertVerificationError(1, "x")), "its certificate is not trusted"),
        (ssl.SSLError(1, f"[SSL: WRONG_VERSION_NUMBER] {SECRET}"), "no safe line to it could be made"),
        (UnicodeEncodeError("ascii", f"/{SECRET}ü", 10, 11, "ordinal not in range"), "its address cannot be used"),
        (InvalidURL(f"nonnumeric port: {SECRET}"), "its address cannot be used"),
        (TimeoutError("timed out"), "it took longer than 30 s"),
        (urllib.error.URLError(TimeoutError("timed out")), "it took longer than 30 s"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (urllib.error.URLError("no host given"), "URLError"),
    ],
)
def test_why_somebody_was_not_told_is_said_in_words_without_the_address(
    error: Exception, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> str:
        raise error

    monkeypatch.setattr(notifications, "_post", failing)
    (why,) = tell(Notify(f"http://127.0.0.1/{SECRET}"), "nightly", news(tmp_path, "failed", "clean", "x"))
    assert why == f"nobody was told by the webhook: {words}"
