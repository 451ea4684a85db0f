"""Who is told when a checked run is no longer as they know it: a webhook (Slack's form), people by mail.

    notify:
      webhook_file: /etc/workbench/webhook     # its first line is the address: who knows it can write there
      mail_server: mail.example.com:587
      mail_tls: starttls                       # or tls, or none
      mail_from: workbench@example.com
      mail_to: [operators@example.com]
      mail_user: workbench
      mail_password_file: /etc/workbench/mail

A way that cannot be used does not silence the other, and who is told by that learns of it. Told is what became better or worse,
once, by each way; a check that finds what people know is silent (`notification_state.py`). What could not be told is told
the next time.
"""

from __future__ import annotations

import json
import re
import smtplib
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid
from http.client import InvalidURL
from pathlib import Path
from typing import Any

from workbench.model import Problem
from workbench.runs.baseline_check import CLEAN
from workbench.runs.check_output import printable_lines
from workbench.runs.config_values import check_names, list_of, text_in, text_of
from workbench.runs.notification_state import News, Owed
from workbench.runs.run_config import Orders, home_of
from workbench.safety import printable

SECONDS = 30
"""After so long nobody waits any more: for an answer, or for all of them."""
_KEYS = ("webhook_file", "mail_server", "mail_tls", "mail_from", "mail_to", "mail_user", "mail_password_file")
_TLS = ("starttls", "tls", "none")
_SHOWN = 20


@dataclass(frozen=True)
class Mail:
    """A mail server, and who is written to."""

    host: str
    port: int
    tls: str
    sender: str
    to: tuple[str, ...]
    user: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True)
class Notify:
    """The section `notify:` of a parameters file.

    wrong  what cannot be used of it, a sentence each: whoever is told by the rest of it learns of that
    """

    webhook: str = field(default="", repr=False)
    mail: Mail | None = None
    wrong: Sequence[str] = ()


def notify_of(orders: Orders) -> Notify:
    """Whom the file wants told. Each way is used on its own: a file that is lacking for one does not silence the other."""
    said, where = orders.notify, f"{orders.path}: notify"
    folder, wrong = orders.path.parent, list[str]()
    webhook, mail = "", None
    try:
        check_names(said, _KEYS, where, secret=True)
    except Problem as problem:
        wrong.append(str(problem))
    try:
        webhook = _webhook(said, folder, where)
    except Problem as problem:
        wrong.append(str(problem))
    try:
        mail = _mail_of(said, folder, where)
    except Problem as problem:
        wrong.append(str(problem))
    return Notify(webhook, mail, wrong)


def _webhook(said: Mapping[str, Any], folder: Path, where: str) -> str:
    webhook = _first_line(said, "webhook_file", folder, where)
    if "webhook_file" in said and not re.fullmatch(r"https?://[!-.0-~]+(?:/[!-~]*)?", webhook):
        raise Problem("its first line is no address of a webhook", f"{where}: webhook_file", "it begins with https://")
    return webhook


def _mail_of(said: Mapping[str, Any], folder: Path, where: str) -> Mail | None:
    if not any(key.startswith("mail_") for key in said):
        return None
    for key in ("mail_server", "mail_from", "mail_to"):
        if not said.get(key):
            raise Problem(f"{key} is lacking", where, "mail needs mail_server, mail_from and mail_to")
    server = re.fullmatch(r"([A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::([0-9]{1,5}))?", text_of(said["mail_server"], where))
    tls = text_of(said.get("mail_tls", "starttls"), f"{where}: mail_tls")
    if server is None or tls not in _TLS:
        raise Problem("no mail server is named like that", where, f"HOST:PORT, and mail_tls one of {', '.join(_TLS)}")
    password = _first_line(said, "mail_password_file", folder, where)
    user = text_of(said.get("mail_user", ""), f"{where}: mail_user")
    if bool(user) != bool(password):
        raise Problem("mail_user and mail_password_file go together", where, "give both, or neither")
    if user and tls == "none":
        raise Problem("a password would be sent as it is", f"{where}: mail_tls", "use starttls or tls")
    people = [_address(one, f"{where}: mail_to") for one in list_of(said["mail_to"], f"{where}: mail_to")]
    sender = _address(said["mail_from"], f"{where}: mail_from")
    port = int(server[2] or {"starttls": 587, "tls": 465, "none": 25}[tls])
    return Mail(server[1].strip("[]"), port, tls, sender, tuple(people), user, password)


def _first_line(said: Mapping[str, Any], key: str, folder: Path, where: str) -> str:
    if key not in said:
        return ""
    path = folder / text_of(said[key], f"{where}: {key}")
    return text_in(path, "give a file with one line").partition("\n")[0].strip()


def _address(given: Any, where: str) -> str:
    text = text_of(given, where)
    try:  # what cannot be written into a message would be found only when somebody has to be told
        message = _message(Mail("", 0, "none", text, (text,)), "", "")
        named = [one.addr_spec for one in message["To"].addresses] if message.as_bytes() else []
    except Exception:  # `ops@[` is an AttributeError of Python's
        named = []
    if named != [text] or not re.fullmatch(r"[^\s@<>,;:\"]+@[^\s@<>,;:\"]+", text):
        raise Problem(f"{printable(text)[:80]} is no mail address", where, "write it as name@example.com")
    return text


def files_of(orders: Orders) -> list[Path]:
    """The files that the section names: no output may replace them."""
    keys = ("webhook_file", "mail_password_file")
    return [orders.path.parent / str(orders.notify[key]) for key in keys if key in orders.notify]


def tell(notify: Notify, name: str, news: News) -> Iterator[str]:
    """Tell of what people do not know yet; gives a sentence for each way that did not work."""
    ways: dict[str, Callable[[str, str], str]] = {}
    if notify.webhook:
        ways["the webhook"] = lambda subject, text: _post(notify.webhook, subject, text)
    if mail := notify.mail:
        ways["the mail server"] = lambda subject, text: _mail(mail, subject, text)
    for way, send in ways.items():
        if owed := news.owed(way):
            try:
                not_all = _in_time(send, *_words(name, news, owed))
            except (
                Exception
            ) as error:  # whatever a library comes to: the other way is to be told, and what was told kept
                yield f"nobody was told by {way}: {_why(error)}"
                continue
            if not_all:
                yield f"not all were told by {way}: {not_all}"
        news.told(way)
    if ways and (why := news.keep()):
        yield why


def _in_time(send: Callable[[str, str], str], subject: str, text: str) -> str:
    """Send it, or give up: a server that answers a byte now and then would hold a check for ever."""
    done: list[str] = []
    failed: list[Exception] = []

    def work() -> None:
        try:
            done.append(send(subject, text))
        except Exception as error:
            failed.append(error)

    sending = threading.Thread(target=work, daemon=True)
    sending.start()
    sending.join(SECONDS)
    if failed:
        raise failed[0]
    if not done:
        raise TimeoutError
    return done[0]


def _why(error: Exception) -> str:
    """What went wrong, in words that do not hold the address of a webhook or a password: a library may repeat them."""
    code = getattr(error, "code", None) or getattr(error, "smtp_code", None)
    if code:
        return f"it answered {code}"
    reason = getattr(error, "reason", None)
    inner = reason if isinstance(reason, Exception) else error
    for kind, words in _WORDS.items():
        if isinstance(inner, kind):
            return words
    return getattr(inner, "strerror", None) or type(inner).__name__


_WORDS: Mapping[type[Exception], str] = {
    smtplib.SMTPRecipientsRefused: "it refused all addresses",
    ssl.SSLCertVerificationError: "its certificate is not trusted",
    ssl.SSLError: "no safe line to it could be made",
    TimeoutError: f"it took longer than {SECONDS} s",
    InvalidURL: "its address cannot be used",
    ValueError: "its address cannot be used",
}
"""What a library calls by a name of its own; the first that fits."""


def _words(name: str, news: News, owed: Sequence[Owed]) -> tuple[str, str]:
    """The subject; and the text, which says first where to look: a long one is cut."""
    checked = news.checked
    bad = [one for one in owed if one.checked.outcome != CLEAN]
    what = (
        f"{len(bad)} of {len(checked)} runs need attention"
        if bad
        else f"{len(owed)} of {len(checked)} runs are clean again"
    )
    lines = [f"on {socket.gethostname()}, {home_of(news.path)}"]
    for one in owed:
        mine = one.checked
        lines.append(f"{mine.run.name}: {mine.outcome} (before: {one.before or 'nothing was told'})")
        lines += [f"  in {mine.run.folder}"] * bool(mine.run.folder)
        whys = list(dict.fromkeys([*one.worse, *mine.why]))
        lines += [f"  {each}" for each in whys[:_SHOWN]]
        lines += [f"  and {len(whys) - _SHOWN:,} more"] * (len(whys) > _SHOWN)
    return " ".join(printable(f"{name}: {what}").split()), printable_lines("\n".join(lines))


def _post(url: str, subject: str, text: str) -> str:
    said = f"{subject}\n{text}"
    for sign, instead in (
        ("&", "&amp;"),
        ("<", "&lt;"),
        (">", "&gt;"),
    ):  # Slack takes `<!channel>` and `<url>` for its own
        said = said.replace(sign, instead)
    body = json.dumps({"text": said[:30_000]}).encode()
    header = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, body, header)  # noqa: S310 - `notify_of` lets pass http and https only
    with urllib.request.build_opener(_Stay).open(request, timeout=SECONDS):
        return ""


class _Stay(urllib.request.HTTPRedirectHandler):
    """What is told goes to the address that was given, and to no other."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _message(mail: Mail, subject: str, text: str) -> EmailMessage:
    message = EmailMessage()
    message["Subject"], message["From"], message["To"] = subject[:200], mail.sender, ", ".join(mail.to)
    message["Date"] = format_datetime(datetime.now(UTC))
    message["Message-ID"] = make_msgid(domain=mail.sender.rpartition("@")[2])  # by itself it would ask the network
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(text)
    return message


def _mail(mail: Mail, subject: str, text: str) -> str:
    """Send it; gives a sentence about those who were refused, if others were not."""
    message = _message(mail, subject, text)
    secure = ssl.create_default_context()
    if mail.tls == "tls":
        server: smtplib.SMTP = smtplib.SMTP_SSL(mail.host, mail.port, timeout=SECONDS, context=secure)
    else:
        server = smtplib.SMTP(mail.host, mail.port, timeout=SECONDS)
    with server:
        if mail.tls == "starttls":
            server.starttls(context=secure)
        if mail.user:
            server.login(mail.user, mail.password)
        refused = server.send_message(message)
    codes = ", ".join(sorted({str(code) for code, _ in refused.values()}))
    return f"{len(refused)} of {len(mail.to)} addresses were refused ({codes})" if refused else ""
