"""Decisions of the native module, for attempts that Python makes."""

from weir._weir import BudgetHandle, CallDecisionHandle, CallRulesHandle, RetryCallHandle, RetryRulesHandle, now_ns

__all__ = ["BudgetHandle", "CallDecisionHandle", "CallRulesHandle", "RetryCallHandle", "RetryRulesHandle", "now_ns"]
