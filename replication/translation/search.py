"""fairseq's beam search: without what nobody needs, and with a graph of its own for every copy of the sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from fairseq.sequence_generator import EnsembleModel
from torch import Tensor

from replication.translation.fairseq.transformer import SparseTransformer
from sparselib.control import Graph, LayerCall


class Searched(EnsembleModel):
    """The model in fairseq's search, without the copies that it makes at every step and nobody needs.

    Of all that is cached, so that hypotheses can change places: with a beam of one they hardly ever do. And of the attention of
    every step so far to the source, which would be given out with the hypotheses. Of the time of documents, the one took
    an eighth, and the other a sixth of the rest.

    Attributes
    ----------
    copies : how often the sentences stand in a batch, one copy after the other
    """

    def __init__(self, model: SparseTransformer, copies: int):
        super().__init__([model])
        self.copies = copies
        self._sentences = 0  # in the batch
        self._sentence_of: Tensor | None = None  # of every hypothesis; None before the search

    def hypotheses(self) -> list[int]:
        """How many hypotheses of each copy are looked at: those of one follow those of the one before."""
        of_copy = self._sentence_of // (self._sentences // self.copies)
        return of_copy.bincount(minlength=self.copies).tolist()

    def forward_encoder(self, net_input: dict[str, Tensor]) -> list[dict]:
        self._sentences, self._sentence_of = len(net_input["src_tokens"]), None
        return super().forward_encoder(net_input)

    def forward_decoder(self, *arguments: object, **options: object) -> tuple[Tensor, None]:
        return super().forward_decoder(*arguments, **options)[0], None

    def reorder_incremental_state(self, incremental_states: list[dict], new_order: Tensor) -> None:
        if not self._stay(new_order):
            super().reorder_incremental_state(incremental_states, new_order)

    def reorder_encoder_out(self, encoder_outs: list[dict], new_order: Tensor) -> list[dict]:
        """fairseq calls it once before it searches, and at every step after the other."""
        stay = self._stay(new_order)
        self._sentence_of = new_order if self._sentence_of is None else self._sentence_of[new_order]
        return encoder_outs if stay else super().reorder_encoder_out(encoder_outs, new_order)

    def _stay(self, new_order: Tensor) -> bool:
        before = 0 if self._sentence_of is None else len(self._sentence_of)
        return torch.equal(new_order, torch.arange(before, device=new_order.device))


@dataclass(frozen=True)
class GraphOfEachCopy:
    """In the decoder's self-attention, every copy of the sentences attends along its own graph."""

    graphs: Sequence[Graph]
    searched: Searched

    @property
    def needs_prefix(self) -> bool:
        return any(getattr(graph, "needs_prefix", False) for graph in self.graphs)

    def __call__(self, call: LayerCall) -> Tensor:
        calls = call.split(self.searched.hypotheses())
        masks = [graph(of_copy) for graph, of_copy in zip(self.graphs, calls, strict=True) if len(of_copy.q)]
        return torch.cat(masks)
