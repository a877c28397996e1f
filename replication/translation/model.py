"""A trained translator: loading it, and beam search with it."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq import tasks, utils
from fairseq.data import Dictionary, FairseqDataset
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from fairseq.tasks.translation import TranslationTask
from omegaconf import DictConfig
from torch import Tensor

from replication.storage import read_header
from replication.translation.saving import KIND, check_vocabulary, configuration, read_state
from sparselib.integrations.control import AttentionControl
from sparselib.integrations.fairseq.transformer import SparseTransformer

#: A hypothesis has at most twice as many pieces as its source, and ten more: longer ones are endless repetitions.
LONGEST_RATIO, LONGEST_EXTRA = 2.0, 10
PAPERS_BEAM = 5


@dataclass
class Translator:
    """A model, its task (dictionaries and binary data), fairseq's configuration of both, and the device that it is on."""

    model: SparseTransformer
    task: TranslationTask
    configuration: DictConfig
    device: torch.device

    @property
    def decoder(self) -> AttentionControl:
        """What the decoder's self-attention does."""
        return self.model.attention_controls["decoder"]

    @property
    def dictionary(self) -> Dictionary:
        """The words of the target, which are those of the source too."""
        return self.task.target_dictionary

    def dataset(self, split: str) -> FairseqDataset:
        """Pairs of one split: ``[i]`` has ``source`` and ``target``, integer tensors that end in ``</s>``."""
        if split not in self.task.datasets:
            self.task.load_dataset(split)
        return self.task.dataset(split)

    def batches(
        self, dataset: FairseqDataset, indices: list[int], tokens: float = math.inf, sentences: float = math.inf
    ) -> Iterator[dict]:
        """Collated pairs, similar lengths together, at most so many tokens and sentences a batch.

        ``sample["id"]`` says which they are.
        """
        by_length = sorted(indices, key=lambda i: (dataset.num_tokens(i), i))
        batch: list[int] = []
        for index in by_length:
            if batch and (len(batch) == sentences or dataset.num_tokens(index) * (len(batch) + 1) > tokens):
                yield self._collate(dataset, batch)
                batch = []
            batch.append(index)
        if batch:
            yield self._collate(dataset, batch)

    def _collate(self, dataset: FairseqDataset, batch: list[int]) -> dict:
        sample = dataset.collater([dataset[i] for i in batch])
        return utils.move_to_cuda(sample, self.device) if self.device.type == "cuda" else sample

    @torch.no_grad()
    def translate(
        self, split: str, sentences: int, beam: int, batch_tokens: float = math.inf, batch_sentences: float = math.inf
    ) -> list[str]:
        """The best hypothesis for each of the first sentences of a split, in pieces, in the order of the file."""
        dataset = self.dataset(split)
        generator = SequenceGenerator(
            _Searched(self.model), self.dictionary, beam, max_len_a=LONGEST_RATIO, max_len_b=LONGEST_EXTRA
        )
        found: dict[int, str] = {}
        indices = list(range(min(sentences, len(dataset))))
        for sample in self.batches(dataset, indices, batch_tokens, batch_sentences):
            for index, hypotheses in zip(sample["id"].tolist(), generator.generate([self.model], sample), strict=True):
                found[index] = self.dictionary.string(hypotheses[0]["tokens"])
        return [found[index] for index in range(len(found))]


class _Searched(EnsembleModel):
    """The model in fairseq's search, without the copies that it makes at every step and nobody needs.

    Of all that is cached, so that hypotheses can change places: with a beam of one they hardly ever do. And of the attention of
    every step so far to the source, which would be given out with the hypotheses. Of the time of documents, the one took
    an eighth, and the other a sixth of the rest.
    """

    def __init__(self, model: SparseTransformer):
        super().__init__([model])
        self.hypotheses = 0

    def forward_decoder(self, *arguments: object, **options: object) -> tuple[Tensor, None]:
        return super().forward_decoder(*arguments, **options)[0], None

    def reorder_incremental_state(self, incremental_states: list[dict], new_order: Tensor) -> None:
        if not self._stay(new_order):
            super().reorder_incremental_state(incremental_states, new_order)

    def reorder_encoder_out(self, encoder_outs: list[dict], new_order: Tensor) -> list[dict]:
        """fairseq calls it once before it searches, and at every step after the other."""
        stay, self.hypotheses = self._stay(new_order), len(new_order)
        return encoder_outs if stay else super().reorder_encoder_out(encoder_outs, new_order)

    def _stay(self, new_order: Tensor) -> bool:
        return torch.equal(new_order, torch.arange(self.hypotheses, device=new_order.device))


def load_translator(model: Path, data: Path) -> Translator:
    """Load ``model.safetensors`` of the training stage with the binary data that it belongs to, on the best device.

    Raises
    ------
    FileNotFoundError
        If there is no such model or data.
    FormatError
        If the file is none of the training stage's.
    ValueError
        If the vocabulary of the data is not the model's.
    """
    check_vocabulary(model, data)
    header = read_header(model, kind=KIND)
    settings = configuration(data, header["source"], header["target"], header["settings"])
    task = tasks.setup_task(settings.task)
    network = task.build_model(settings.model)
    network.load_state_dict(read_state(model))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return Translator(network.eval().to(device), task, settings, device)
