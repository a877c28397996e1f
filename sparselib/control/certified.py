"""Which attention rows of a model over blocks provably equal full attention."""

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class CertifiedRows:
    """Certified rows of each attention call inside a ``with`` block, in order.

    Attributes
    ----------
    calls : list of tuple of int and Bool Tensor ``[B, H, Q]``
        The layer of each call, and its rows whose weights provably equal those of full attention
        (:class:`~sparselib.kernels.Certificate`). False does not prove the contrary.

    Examples
    --------
    >>> certain, open_row = torch.ones(1, 2, 1, dtype=torch.bool), torch.tensor([[[True], [False]]])
    >>> found = CertifiedRows([(0, certain), (1, certain), (0, certain), (1, open_row)])
    >>> found.passes
    [tensor([True]), tensor([False])]
    """

    calls: list[tuple[int, Tensor]] = field(default_factory=list)

    @property
    def passes(self) -> list[Tensor]:
        """For each forward pass, the sequences ``Bool [B]`` whose rows are certified in all layers and heads.

        In generation, each new token is a pass. A sequence equals that of full attention up to its first pass that is not
        certified, because later passes attend to the keys of earlier ones.
        """
        passes: list[Tensor] = []
        last = -1
        for layer, rows in self.calls:
            whole = rows.flatten(1).all(1)
            if layer <= last or not passes:
                passes.append(whole)
            else:
                passes[-1] = passes[-1] & whole
            last = layer
        return passes


def uncertified(q: Tensor) -> Tensor:
    """Return that no row ``[B, H, Q]`` of queries ``[B, H, Q, D]`` is certified."""
    return torch.zeros(q.shape[:3], dtype=torch.bool, device=q.device)
