"""Check, without downloading a weight, that a model of the Hub can be had: token, licence, revision, files, sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tao_runtime.environment import Environment
from tao_runtime.errors import Finding, Severity
from tao_runtime.hub import questions
from tao_runtime.hub.connection import Connection, HubTrouble, Limits, Trouble
from tao_runtime.hub.credential import find_token
from tao_runtime.hub.findings import Asking, files_missing, finding_of, licence_unchecked, offline_finding
from tao_runtime.hub.names import HubModel
from tao_runtime.hub.needed import INDEX, needed_files
from tao_runtime.hub.questions import Listing, ModelFile

# With one of these, further questions would meet the same and cost the time limit again.
_POINTLESS_TO_GO_ON = {Trouble.NAME_UNRESOLVED, Trouble.REFUSED, Trouble.SLOW, Trouble.UNREACHABLE}


@dataclass(frozen=True, slots=True)
class AccessReport:
    """Say what the Hub answered about one model.

    Attributes:
        model: what was asked for.
        endpoint: base address of the Hub that was asked, fit to be shown.
        commit: what the revision points to; None when unknown.
        gated: whether a licence must be accepted; None when unknown.
        account: user name that the token belongs to; None without a token, or when the Hub did not say.
        files: the files that loading needs.
        findings: what stands in the way; empty means that the files can be downloaded.
        troubles: the failed requests behind the findings, as classes.
    """

    model: HubModel
    endpoint: str
    commit: str | None = None
    gated: bool | None = None
    account: str | None = None
    files: tuple[ModelFile, ...] = ()
    findings: tuple[Finding, ...] = ()
    troubles: tuple[Trouble, ...] = ()

    @property
    def total_bytes(self) -> int:
        """Return the size of the needed files, as far as the Hub gives sizes."""
        return sum(file.size_bytes or 0 for file in self.files)

    @property
    def ok(self) -> bool:
        """Return whether access was checked and nothing stands in the way."""
        return not any(finding.severity in {Severity.ERROR, Severity.SKIPPED} for finding in self.findings)

    def without_weights(self) -> AccessReport:
        """Return the report about config and tokenizer alone."""
        small = needed_files([file.path for file in self.files], weights=False).present
        return replace(self, files=tuple(file for file in self.files if file.path in small))

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain JSON values; findings travel beside, in the command's own list."""
        return {
            "model": self.model.uri,
            "endpoint": self.endpoint,
            "commit": self.commit,
            "gated": self.gated,
            "account": self.account,
            "total_bytes": self.total_bytes,
            "files": [{"path": file.path, "size_bytes": file.size_bytes} for file in self.files],
        }


def check_access(
    model: HubModel,
    environment: Environment,
    *,
    weights: bool = True,
    limits: Limits | None = None,
    key: str | None = None,
) -> AccessReport:
    """Ask the Hub whether a model can be had.

    Bad access is a finding, never an exception. All requests together take at most `limits.time_limit_s`
    (tests/hub/test_access.py, the slow Hubs).

    Args:
        model: repository and revision.
        environment: endpoint, offline switch and token; the login file counts when HF_TOKEN is unset.
        weights: False when only config and tokenizer are needed.
        limits: bounds of the conversation; None takes the defaults.
        key: spec path that named the model, for findings.
    """
    asking = Asking(model, environment.hf_endpoint, None, key=key)
    if environment.hf_hub_offline:
        return AccessReport(model, asking.hub, findings=(offline_finding(asking),))
    token = find_token(environment)
    connection = Connection(asking.endpoint, token, limits or Limits())
    return _Check(replace(asking, token=token), connection, weights).run()


class _Check:
    """Hold one conversation and what it has found."""

    def __init__(self, asking: Asking, connection: Connection, weights: bool) -> None:
        self.asking = asking
        self.connection = connection
        self.weights = weights
        self.token_is_rejected = False
        self.report = AccessReport(asking.model, asking.hub)

    def run(self) -> AccessReport:
        """Ask everything in turn, and end where a fault makes the next question pointless."""
        self._ask_for_account()
        if not _POINTLESS_TO_GO_ON.intersection(self.report.troubles):
            listing = self.connection.ask(lambda: questions.list_files(self.connection, self.asking.model))
            if isinstance(listing, HubTrouble):
                self._record(listing)
            else:
                self._choose_files(listing)
        return self.report

    def _ask_for_account(self) -> None:
        """Ask whose the token is; a rejected one is put aside so that the repository can still be asked about."""
        token = self.connection.token
        if token is None:
            return
        if token.is_well_formed:
            answer = self.connection.ask(lambda: questions.whoami(self.connection))
        else:
            answer = HubTrouble(Trouble.CREDENTIAL_REJECTED, "it has characters that no token has")
        if not isinstance(answer, HubTrouble):
            self.asking = replace(self.asking, account=answer)
            self.report = replace(self.report, account=answer)
        elif answer.trouble is Trouble.CREDENTIAL_REJECTED:
            self._record(answer)
            self.token_is_rejected = True
            self.connection.token = None
            self.asking = replace(self.asking, token=None)
        elif answer.trouble in _POINTLESS_TO_GO_ON:
            self._record(answer)
        # Any other answer is a mirror without accounts, or whoami's own strict rate limit. It is no finding: the
        # requests that follow carry the token too, and a bad one fails there.

    def _choose_files(self, listing: Listing) -> None:
        self.report = replace(self.report, commit=listing.commit, gated=listing.gated)
        shards = self._shards(listing)
        needed = needed_files(listing.files, shards, weights=self.weights)
        self.report = replace(self.report, files=tuple(listing.files[name] for name in needed.present))
        if needed.missing:
            self._add(files_missing(self.asking, needed.missing, needed.remark))

    def _shards(self, listing: Listing) -> frozenset[str] | None:
        """Read the index, or touch one needed file: the listing is public even where the files are gated."""
        if self.token_is_rejected and listing.gated:
            self._add(licence_unchecked(self.asking))
            return None
        model, connection = self.asking.model, self.connection
        if self.weights and INDEX in listing.files:
            shards = connection.ask(lambda: questions.read_shards(connection, model, listing.commit))
            if not isinstance(shards, HubTrouble):
                return shards
            self._record(shards)
            return None
        candidates = needed_files(listing.files, weights=self.weights).present
        if candidates:
            largest = max(candidates, key=lambda name: listing.files[name].size_bytes or 0)
            touched = connection.ask(lambda: questions.touch(connection, model, listing.commit, largest))
            if isinstance(touched, HubTrouble):
                self._record(touched)
        return None

    def _record(self, trouble: HubTrouble) -> None:
        self._add(finding_of(trouble, self.asking))
        self.report = replace(self.report, troubles=(*self.report.troubles, trouble.trouble))

    def _add(self, finding: Finding) -> None:
        self.report = replace(self.report, findings=(*self.report.findings, finding))
