"""Typed sections of a configuration: their base class, and the types of their values."""

from replication.schema.sections import MISSING, Problem, Reading, Section, checked, problem, shown

__all__ = ["MISSING", "Problem", "Reading", "Section", "checked", "problem", "shown"]
