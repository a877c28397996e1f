"""Trained translators: loading and beam search."""

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

from replication.corpora.spacing import Spacing
from replication.files.contents import load_weights
from replication.translation.data import read_spacing
from replication.translation.fairseq.transformer import SparseTransformer
from replication.translation.saving import check_vocabulary, configuration, read_settings, read_state
from replication.translation.search import GraphOfEachCopy, Searched
from sparselib.control import AttentionControl, Graph

#: A hypothesis has at most 2 n + 10 pieces for n source pieces, because longer ones are endless repetitions.
LONGEST_RATIO, LONGEST_EXTRA = 2.0, 10
PAPERS_BEAM = 5
#: Tokens per translated or scored batch, including padding.
BATCH_TOKENS = 4000


@dataclass
class Translator:
    """A model, its task (dictionaries and binary data), fairseq's configuration of both, and the model's device."""

    model: SparseTransformer
    task: TranslationTask
    configuration: DictConfig
    device: torch.device
    #: Spaces between tokens of the target language, see :mod:`replication.corpora.spacing`.
    spacing: Spacing | None

    @property
    def decoder(self) -> AttentionControl:
        """Return the control of the decoder's self-attention."""
        return self.model.attention_controls["decoder"]

    @property
    def dictionary(self) -> Dictionary:
        """Return the dictionary, which source and target share."""
        return self.task.target_dictionary

    def dataset(self, split: str) -> FairseqDataset:
        """Return the pairs of one split; item ``[i]`` has integer tensors ``source`` and ``target``, ending in ``</s>``."""
        if split not in self.task.datasets:
            self.task.load_dataset(split)
        return self.task.dataset(split)

    def batches(
        self, dataset: FairseqDataset, indices: list[int], tokens: float = math.inf, sentences: float = math.inf
    ) -> Iterator[dict]:
        """Yield collated batches of pairs, sorted by length.

        Parameters
        ----------
        dataset : FairseqDataset
            Pairs, as from :meth:`dataset`.
        indices : list of int
            Pairs to collate; ``sample["id"]`` of a batch contains its indices.
        tokens, sentences : float
            Most tokens, including padding, and sentences per batch.
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
        """Return the best hypothesis, in pieces, for each of the first ``sentences`` of a split, in file order."""
        (hypotheses,) = self._translate(Searched(self.model, 1), split, sentences, beam, batch_tokens, batch_sentences)
        return hypotheses

    def translate_along(
        self, graphs: Sequence[Graph], split: str, sentences: int, beam: int, batch_tokens: float
    ) -> list[list[str]]:
        """Translate once for each graph of the decoder's self-attention, all in one search.

        Sharing the search is faster, because a search step on few sentences costs almost the same for more sentences.

        Returns
        -------
        list of list of str
            For each graph, the hypotheses as from :meth:`translate`.
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
        best: list[dict[int, str]] = [{} for _ in range(searched.copies)]
        indices = list(range(min(sentences, len(dataset))))
        for sample in self.batches(dataset, indices, batch_tokens, batch_sentences):
            ids, source = sample["id"].tolist(), sample["net_input"]
            copied = {
                name: source[name].repeat(searched.copies, *[1] * (source[name].ndim - 1))
                for name in ("src_tokens", "src_lengths")
            }
            for position, hypotheses in enumerate(generator.generate([self.model], {"net_input": copied})):
                copy, row = divmod(position, len(ids))
                best[copy][ids[row]] = self.dictionary.string(hypotheses[0]["tokens"])
        return [[copy[index] for index in range(len(copy))] for copy in best]


def load_translator(model: Path, data: Path) -> Translator:
    """Load a trained translator with its binary data, on the GPU if there is one.

    Parameters
    ----------
    model : Path
        ``model.safetensors`` of the training stage.
    data : Path
        Folder of :func:`replication.translation.data.binarize`.

    Raises
    ------
    FileNotFoundError
        If the model or the data are missing.
    FormatError
        If the file was not written by the training stage, or has options of no configuration.
    ValueError
        If model and data have different vocabularies.
    """
    source, target, options = read_settings(model)
    check_vocabulary(model, data)
    settings = configuration(data, source, target, options)
    task = tasks.setup_task(settings.task)
    network = task.build_model(settings.model)
    load_weights(network, model, read_state(model))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return Translator(network.eval().to(device), task, settings, device, read_spacing(data)[target])
