"""What is reached from the login node: the hub, package indexes, the site's proxies; and the clock."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import hpctrain_job.reach
from hpctrain.doctor.question import Answer, Finding, Question, Verdict
from hpctrain.doctor.site import Site
from hpctrain.model.step import Need

AREA = "network"
HUB = "https://huggingface.co"
INDEX = "https://pypi.org/simple/"
SECONDS = 10
DRIFT = 60
"""Seconds that a clock may be off: tokens and certificates are judged by it."""


def questions(site: Site) -> Iterator[Question]:
    """The hub and the indexes as this shell reaches them, and every proxy that the facts name."""
    login = site.here
    for fact, url in _addresses(site):
        yield web(
            fact, url, login.source if login else "", is_open=login is None or Need.NETWORK in login.provides
        )
    for url, (fact, source) in _proxies(site).items():
        yield from _proxy(url, fact, source)


def _addresses(site: Site) -> Iterator[tuple[str, str]]:
    yield "the hub", site.environ.get("HF_ENDPOINT") or HUB
    yield "the package index", site.environ.get("PIP_INDEX_URL") or INDEX
    environment = site.cluster.defaults.get("environment", {})
    tables = environment.values() if isinstance(environment, dict) else ()
    indexes = [
        table["first_index"] for table in tables if isinstance(table, dict) and table.get("first_index")
    ]
    for url in dict.fromkeys(map(str, indexes)):
        yield "the index of torch", url


def web(fact: str, url: str, source: str, *, is_open: bool) -> Question:
    """Whether a page answers here; where there is no network, it is right that it does not."""

    def judge(answer: Answer) -> Iterator[Finding]:
        reply = _reply(answer)
        if not reply:
            return
        fault = str(reply.get("fault", ""))
        if fault:
            verdict = Verdict.DIFFERS if is_open else Verdict.OK
            yield question.finding(verdict, fault, _mend(fault) if is_open else "")
        else:
            status = reply["status"]
            is_fine = isinstance(status, int) and status < 500
            yield question.finding(
                Verdict.OK if is_fine else Verdict.DIFFERS,
                f"answers with {status}",
                "" if is_fine else "try again later: the server, or a proxy before it, is in trouble",
            )
        if fact == "the hub":
            yield _clock(reply)

    address_text = _without_password(url)
    question = Question(
        name=fact,
        area=AREA,
        fact=f"{fact}, {address_text}",
        argv=(sys.executable, "-I", hpctrain_job.reach.__file__, "web"),
        judge=judge,
        expected="answers" if is_open else "no answer: this place has no network",
        source=source,
        seconds=SECONDS,
        given=url,
        hangs=address_text,
        inherit=True,
        todo="http_proxy, https_proxy and the name service of this shell",
    )
    return question


def _clock(reply: dict[str, Any]) -> Finding:
    ahead = reply.get("ahead")
    if not isinstance(ahead, int):
        verdict, drift, todo = Verdict.SILENT, "nothing here tells the time", ""
    elif abs(ahead) <= DRIFT:
        verdict, drift, todo = Verdict.OK, f"{ahead:+} s", ""
    else:
        verdict, drift = Verdict.DIFFERS, f"{ahead:+} s"
        todo = "tell the site: certificates and tokens are judged by this clock"
    expected = f"within {DRIFT} s of the hub's"
    return Finding(area=AREA, fact="the clock", verdict=verdict, expected=expected, found=drift, todo=todo)


def _proxies(site: Site) -> dict[str, tuple[str, str]]:
    """Address -> what it is for, and who says so."""
    tables = [(f"the proxy of place {p.name}", p.env, p.source) for p in site.cluster.place]
    free = site.cluster.facts.get("proxy")
    if isinstance(free, dict):
        tables.append(("the site's proxy", free, str(free.get("source", ""))))
    return {
        url: (fact, source)
        for fact, table, source in tables
        for key, url in table.items()
        if key.lower() in ("http_proxy", "https_proxy") and isinstance(url, str)
    }


def _proxy(url: str, fact: str, source: str) -> Iterator[Question]:
    address = urlsplit(url)

    def judge(answer: Answer) -> Iterator[Finding]:
        reply = _reply(answer)
        if not reply:
            return
        if "fault" not in reply:
            yield question.finding(Verdict.OK, "somebody listens")
        elif reply.get("refused"):
            yield question.finding(Verdict.DIFFERS, str(reply["fault"]), "ask the site: its proxy is off")
        else:
            todo = f"compute nodes alone may reach it; in a job: curl -sI -x {_without_password(url)} {INDEX}"
            yield question.finding(Verdict.UNKNOWN, str(reply["fault"]), todo)

    question = Question(
        name=f"proxy {address.hostname}:{address.port}",
        area=AREA,
        fact=f"{fact}, {address.hostname}:{address.port}",
        argv=(sys.executable, "-I", hpctrain_job.reach.__file__, "port"),
        given=f"{address.hostname} {address.port or 80}",
        judge=judge,
        expected="somebody listens",
        source=source,
        seconds=SECONDS,
        hangs=url,
        silence=Verdict.UNKNOWN,
    )
    if address.hostname:
        yield question


def _reply(answer: Answer) -> dict[str, Any]:
    try:
        reply = json.loads(answer.out)
    except ValueError:
        return {}
    return reply if isinstance(reply, dict) and ({"fault", "status"} & set(reply)) else {}


def _mend(fault: str) -> str:
    if "certificate" in fault.lower():
        return "SSL_CERT_FILE=/path/of/the/site's/certificates; or the clock is wrong"
    if "proxy" in fault.lower() or "tunnel" in fault.lower():
        return "look at http_proxy and https_proxy of this shell"
    return "the name service, http_proxy and https_proxy of this shell"


def _without_password(url: str) -> str:
    address = urlsplit(url)
    return url.replace(f"{address.netloc.rpartition('@')[0]}@", "", 1) if "@" in address.netloc else url
