"""The rule language: a package of rules makes the fields of a passport out of facts.

    package = load_rules(source)          # raises RuleMistake
    result = package.evaluate(facts)      # raises RuleFailure
    report = package.run_tests()

A source becomes lexemes (`lexer`), a tree (`parser`, `syntax`), and functions (`checker`), which `evaluator` runs on a
`machine` with bounded fuel. No other exception leaves this package, whatever the source and the facts are.
docs/rules.md is the reference.
"""

from __future__ import annotations

from waybill_passport.rules.evaluator import Evaluation
from waybill_passport.rules.explanation import FieldExplanation, UnknownField, explain
from waybill_passport.rules.given_facts import GivenFacts
from waybill_passport.rules.machine import DerivationNode, FactSource, Fuel
from waybill_passport.rules.mistakes import RuleFailure, RuleMistake
from waybill_passport.rules.package import RuleField, RulePackage, load_rules
from waybill_passport.rules.package_tests import FailedTest, RuleTestReport

__all__ = [
    "DerivationNode",
    "Evaluation",
    "FactSource",
    "FailedTest",
    "FieldExplanation",
    "Fuel",
    "GivenFacts",
    "RuleFailure",
    "RuleField",
    "RuleMistake",
    "RulePackage",
    "RuleTestReport",
    "UnknownField",
    "explain",
    "load_rules",
]
