"""Error for files that are not what they should be."""


class FormatError(ValueError):
    """Error for a file that is truncated, damaged, or of another kind than expected."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows of the error: one line."""
        return [str(self)]
