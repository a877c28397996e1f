"""A trained translator: loading it, and beam search with it."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from fairseq import tasks, utils
from fairseq.data import Dictionary, FairseqDataset
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks.translation import TranslationTask
from omegaconf import DictConfig

from replication.files.storage import read_header
from replication.translation.fairseq.transformer import SparseTransformer
from replication.translation.saving import KIND, check_vocabulary, configuration, read_state
from replication.translation.search import GraphOfEachCopy, Searched
from sparselib.control import AttentionControl, Graph

#: A hypothesis has at most twice as many pieces as its source, and ten more: longer ones are endless repetitions.
LONGEST_RATIO, LONGEST_EXTRA = 2.0, 10
PAPERS_BEAM = 5
#: Tokens of a batch that is translated or scored, padding included.
BATCH_TOKENS = 4000


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

    def translate(
        self, split: str, sentences: int, beam: int, batch_tokens: float = math.inf, batch_sentences: float = math.inf
    ) -> list[str]:
        """The best hypothesis for each of the first sentences of a split, in pieces, in the order of the file."""
        (found,) = self._translate(Searched(self.model, 1), split, sentences, beam, batch_tokens, batch_sentences)
        return found

    def translate_along(
        self, graphs: Sequence[Graph], split: str, sentences: int, beam: int, batch_tokens: float
    ) -> list[list[str]]:
        """:meth:`translate` once for each graph of the decoder's self-attention, all in one search.

        A step of the search costs nearly the same for more sentences, if these are few.
        """
        searched = Searched(self.model, len(graphs))
        with self.decoder.restricted_to(GraphOfEachCopy(graphs, searched)):
            return self._translate(searched, split, sentences, beam, batch_tokens / len(graphs), math.inf)

    @torch.no_grad()
    def _translate(
        self,
        searched: Searched,
        split: str,
        sentences: int,
        beam: int,
        batch_tokens: float,
        batch_sentences: float,
    ) -> list[list[str]]:
        dataset = self.dataset(split)
        generator = SequenceGenerator(searched, self.dictionary, beam, max_len_a=LONGEST_RATIO, max_len_b=LONGEST_EXTRA)
        found: list[dict[int, str]] = [{} for _ in range(searched.copies)]
        indices = list(range(min(sentences, len(dataset))))
        for sample in self.batches(dataset, indices, batch_tokens, batch_sentences):
            ids, source = sample["id"].tolist(), sample["net_input"]
            copied = {
                name: source[name].repeat(searched.copies, *[1] * (source[name].ndim - 1))
                for name in ("src_tokens", "src_lengths")
            }
            for place, hypotheses in enumerate(generator.generate([self.model], {"net_input": copied})):
                copy, row = divmod(place, len(ids))
                found[copy][ids[row]] = self.dictionary.string(hypotheses[0]["tokens"])
        return [[of_copy[index] for index in range(len(of_copy))] for of_copy in found]


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
