"""Attention forms: the nine of Extremely Sparse Transformer at a budget of k positions, and factorised patterns."""

from sparselib.forms.budgeted import FORMS, Positions, form
from sparselib.forms.factorised import FACTORISED, factorised

__all__ = ["FACTORISED", "FORMS", "Positions", "factorised", "form"]
