"""The small closed language of computed values and checks, in decimal arithmetic.

    round(quantity * price * (1 - discount / 100), 2) == amount ± 0.01

Text becomes tokens (`tokens`), a tree (`parser`, `nodes`) and a function (`compiler`), once, when a mapping is loaded.
Evaluating it takes a `Scope`, never fails and is bounded in time and size. What a mapping can get wrong beyond the
grammar is found by `names`, which needs the whole mapping and is therefore not imported here.
"""

from __future__ import annotations

from waybill_documents.expressions.expression import Comparison, Expression
from waybill_documents.expressions.functions import FUNCTIONS, Function
from waybill_documents.expressions.scope import Miss, Scope
from waybill_documents.expressions.tokens import ExpressionError

__all__ = ["FUNCTIONS", "Comparison", "Expression", "ExpressionError", "Function", "Miss", "Scope"]
