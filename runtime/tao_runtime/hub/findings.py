"""Turn what the Hub answered into findings with a fix that works when followed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tao_runtime.errors import Finding, FixKind, Severity, Where
from tao_runtime.hub.connection import HubTrouble, Trouble
from tao_runtime.hub.credential import Token
from tao_runtime.hub.names import HubModel

RULE = "H3"
DEFAULT_ENDPOINT = "https://huggingface.co"

_USER_INFO = re.compile(r"//[^/@]*@")


@dataclass(frozen=True, slots=True)
class Asking:
    """Say who asked which Hub for what.

    Attributes:
        model: the repository and revision.
        endpoint: base address of the Hub.
        token: what was sent, None when anonymous.
        account: user name that the token belongs to, None when unknown.
        key: spec path that named the model.
    """

    model: HubModel
    endpoint: str
    token: Token | None
    account: str | None = None
    key: str | None = None

    @property
    def hub(self) -> str:
        """Return the Hub's address fit to be shown: without the name and password that an address can carry."""
        return _USER_INFO.sub("//", self.endpoint)

    @property
    def page(self) -> str:
        """Return the address of the repository's page."""
        return f"{self.hub}/{self.model.repo_id}"

    @property
    def where(self) -> Where:
        """Return the place of a fault of this request."""
        return Where(key=self.key, host=self.page)

    @property
    def log_in(self) -> str:
        """Return how to give a token without writing it anywhere."""
        endpoint = "" if self.hub == DEFAULT_ENDPOINT else f"HF_ENDPOINT={self.hub} "
        return (
            f"Make a token with read access at {self.hub}/settings/tokens, then run `{endpoint}hf auth login`, "
            "or in a job set the environment variable HF_TOKEN from your secret store."
        )

    def finding(self, code: str, what: str, fix: str, severity: Severity = Severity.ERROR) -> Finding:
        """Return a finding about this request."""
        return Finding(code, what, self.where, fix, severity, FixKind.MANUAL, RULE)


def offline_finding(asking: Asking) -> Finding:
    """Return the finding that nothing was asked; it is no pass."""
    return asking.finding(
        "ACCESS_HF_OFFLINE",
        f"HF_HUB_OFFLINE is set, so access to {asking.model} was not checked",
        "Run the check again without HF_HUB_OFFLINE on a machine that reaches the Hub.",
        Severity.SKIPPED,
    )


def licence_unchecked(asking: Asking) -> Finding:
    """Return the finding that a rejected token leaves the licence an open question."""
    return asking.finding(
        "ACCESS_HF_GATED",
        f"{asking.model.repo_id} is gated; whether its licence is accepted can't be told with a token that the Hub rejects",
        f"Mend the token first, then accept the licence at {asking.page} if this check asks for it.",
        Severity.SKIPPED,
    )


def files_missing(asking: Asking, missing: tuple[str, ...], remark: str) -> Finding:
    """Return the finding that a repository lacks files that loading needs."""
    more = f"; {remark}" if remark else ""
    return asking.finding(
        "ACCESS_HF_FILES_MISSING",
        f"{asking.model} has no {', '.join(missing)}{more}",
        f"Name a repository or revision whose files at {asking.page}/tree/{asking.model.revision} include them.",
    )


def finding_of(trouble: HubTrouble, asking: Asking) -> Finding:
    """Return the finding for a request that failed."""
    code, describe = _BY_TROUBLE[trouble.trouble]
    if trouble.trouble is Trouble.GATED and asking.token is None:
        code, describe = "ACCESS_HF_TOKEN_MISSING", _token_missing
    what, fix = describe(asking, trouble)
    return asking.finding(code, f"{what} ({trouble.detail})" if trouble.detail else what, fix)


Description = Callable[[Asking, HubTrouble], tuple[str, str]]


def _token_missing(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    return (
        f"{asking.model.repo_id} is gated and there is no token: HF_TOKEN is not set and nobody is logged in",
        f"Accept the licence at {asking.page}. {asking.log_in}",
    )


def _rejected(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    if asking.token is None:
        return f"{asking.hub} answers nobody without a token", asking.log_in
    more = " HF_TOKEN goes before a login: unset it to use the login." if asking.token.source == "HF_TOKEN" else ""
    return f"The Hub rejects the token of {asking.token.source}: it is mistyped, expired or revoked", asking.log_in + more


def _narrow(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    return (
        "The token is fine-grained and may not read public gated repositories",
        f"At {asking.hub}/settings/tokens edit the token and tick "
        "`Read access to contents of all public gated repos you can access`.",
    )


def _gated(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    account = f" as {asking.account}" if asking.account else " with the account of the token"
    return (
        f"The licence of {asking.model.repo_id} is not accepted by the token's account",
        f"Open {asking.page}, log in{account}, and accept the licence there.",
    )


def _pending(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    return (
        f"The request for access to {asking.model.repo_id} has not been granted yet",
        f"Wait for the answer at {asking.hub}/settings/gated-repos, or ask the owner at {asking.page}/discussions.",
    )


def _forbidden(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    return (
        f"The Hub forbids access to {asking.model.repo_id}",
        f"Open {asking.page} with the token's account; it gives the reason.",
    )


def _no_repository(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    name = asking.model.repo_id
    if asking.token is None:
        return (
            f"{name} does not exist, or is private and there is no valid token",
            f"Check the name at {asking.page}. {asking.log_in}",
        )
    return (
        f"{name} does not exist, or is private and closed to the token's account",
        f"Check the name at {asking.page}, logged in with the token's account.",
    )


def _no_revision(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    return (
        f"{asking.model.repo_id} has no revision {asking.model.revision!r}",
        f"Choose a branch, tag or commit of {asking.page}/commits/main, or leave out @{asking.model.revision} for main.",
    )


def _no_file(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    return f"{asking.model} lists a file that it does not serve", f"Report it to the owner at {asking.page}/discussions."


def _rate_limited(asking: Asking, trouble: HubTrouble) -> tuple[str, str]:
    wait = f"{trouble.wait_s:.0f} s" if trouble.wait_s is not None else "some minutes"
    more = "" if asking.token is not None else f" A token raises the limit. {asking.log_in}"
    return "The Hub limits the rate of requests; that is its state, not your input", f"Run this again after {wait}.{more}"


def _server_error(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    status = "https://status.huggingface.co" if asking.hub == DEFAULT_ENDPOINT else asking.hub
    return "The Hub fails; that is its state, not your input", f"Look at {status} and run this again later."


def _slow(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    return f"{asking.hub} is too slow", f"Try `curl -sSI {asking.hub}` here; run this again when it answers quickly."


def _unresolved(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    return (
        f"The host name of {asking.hub} can't be resolved",
        "Check HF_ENDPOINT and this machine's DNS. Without a way out, stage the model elsewhere and set HF_HUB_OFFLINE=1.",
    )


def _refused(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    return f"Nothing listens at {asking.hub}", "Check HF_ENDPOINT, and HTTPS_PROXY if this machine needs a proxy."


def _unreachable(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    return (
        f"The connection to {asking.hub} fails",
        f"Try `curl -sSI {asking.hub}` here; check HF_ENDPOINT, HTTPS_PROXY, firewall and certificates.",
    )


def _not_a_hub(asking: Asking, _: HubTrouble) -> tuple[str, str]:
    return (
        f"What {asking.hub} answers is not what a Hub answers",
        "Check HF_ENDPOINT; a proxy's login page gives this answer too.",
    )


_BY_TROUBLE: dict[Trouble, tuple[str, Description]] = {
    Trouble.CREDENTIAL_REJECTED: ("ACCESS_HF_TOKEN_INVALID", _rejected),
    Trouble.CREDENTIAL_NARROW: ("ACCESS_HF_TOKEN_SCOPE", _narrow),
    Trouble.GATED: ("ACCESS_HF_GATED", _gated),
    Trouble.REQUEST_PENDING: ("ACCESS_HF_REQUEST_PENDING", _pending),
    Trouble.FORBIDDEN: ("ACCESS_HF_FORBIDDEN", _forbidden),
    Trouble.REPO_NOT_FOUND: ("ACCESS_HF_REPO_NOT_FOUND", _no_repository),
    Trouble.REVISION_NOT_FOUND: ("ACCESS_HF_REVISION_NOT_FOUND", _no_revision),
    Trouble.FILE_NOT_FOUND: ("ACCESS_HF_FILES_MISSING", _no_file),
    Trouble.RATE_LIMITED: ("ACCESS_HF_RATE_LIMITED", _rate_limited),
    Trouble.SERVER_ERROR: ("ACCESS_HF_SERVER_ERROR", _server_error),
    Trouble.SLOW: ("ACCESS_HF_SLOW", _slow),
    Trouble.NAME_UNRESOLVED: ("ACCESS_HF_NAME_UNRESOLVED", _unresolved),
    Trouble.REFUSED: ("ACCESS_HF_REFUSED", _refused),
    Trouble.UNREACHABLE: ("ACCESS_HF_UNREACHABLE", _unreachable),
    Trouble.NOT_A_HUB: ("ACCESS_HF_NOT_A_HUB", _not_a_hub),
}
