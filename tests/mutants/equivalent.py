"""Mutants that change nothing that a row could see, each with the reason. All others have to be killed."""

EQUIVALENT: dict[str, str] = {}
