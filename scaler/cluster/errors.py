"""What can go wrong with the API server, each in one line for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson

from scaler import quoting
from scaler.cluster.resources import Resource

FORBIDDEN = 403
NOT_FOUND = 404
CONFLICT = 409
EXPIRED = 410
INVALID = 422

_LONGEST = 500
"""Characters of the API server's own words: they name objects and fields, and long ones."""


class ConfigurationError(Exception):
    """There is no way to a cluster; the message says what was tried."""


class ApiError(Exception):
    """A request failed.

    `status` is the HTTP status, 0 when the API server did not answer; `retry_after_s` is how long it asked to wait.
    """

    def __init__(self, message: str, status: int = 0, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.status = status
        self.retry_after_s = retry_after_s


class WatchSilent(ApiError):
    """A watch said nothing for longer than a healthy one can: what it showed is as old as its last word."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is asked of which resource: for the path of a request and for the words of its error."""

    verb: str
    """As RBAC calls it: get, list, watch, create, update, patch, delete."""
    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def path(self) -> str:
        """The path of the request."""
        return self.resource.path(self.namespace, self.name, self.subresource)

    def __str__(self) -> str:
        what = f"{self.resource}/{self.subresource}" if self.subresource else str(self.resource)
        name = f" {self.name}" if self.name else ""
        return f"{self.verb} {what}{name} in {f'namespace {self.namespace}' if self.namespace else 'all namespaces'}"


def refusal(subject: Subject | str, status: int, body: bytes, headers: Mapping[str, str]) -> ApiError:
    """Turn an answer that is no success into an error; one about rights names the rule that is missing."""
    message = message_of(body)
    if status == FORBIDDEN and isinstance(subject, Subject):
        user = match[1] if (match := re.search(r'User "([^"]+)"', message)) else "this user"
        role = "Role or ClusterRole" if subject.namespace else "ClusterRole"
        if match := re.search(r"cannot (\w+) resource", message):  # applying what is not there is creating it
            subject = replace(subject, verb=match[1])
        rule = subject.resource.rule(subject.verb, subject.subresource)
        return ApiError(f"{user} may not {subject}: a {role} with the rule {rule} is missing", status)
    retry_after = headers.get("Retry-After", "")
    return ApiError(f"cannot {subject}: {status} {message}", status, float(retry_after) if retry_after.isdigit() else 0)


def message_of(body: bytes) -> str:
    """Return the text of a Status object, or whatever stands there instead, in one line."""
    try:
        text = str(orjson.loads(body)["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        text = body.decode(errors="replace")
    return quoting.one_line(text, _LONGEST)


def one_line(error: BaseException) -> str:
    """Return an error's text in one line, its type where it has none."""
    return quoting.one_line(str(error), _LONGEST) or type(error).__name__
