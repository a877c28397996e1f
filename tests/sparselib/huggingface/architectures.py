"""A tiny model of every architecture of transformers that its config can be made small for, and what becomes of it.

``python tests/sparselib/huggingface/architectures.py`` writes the table that is published.
"""

import csv
import hashlib
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import torch
import transformers
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, MODEL_MAPPING, PreTrainedConfig, PreTrainedModel

from sparselib.huggingface import use_attention
from sparselib.huggingface.example_inputs import guess_inputs
from workflow.closure import LOCK, files

ROOT = Path(__file__).parents[3]
TABLE = ROOT / "docs" / "architectures.csv"
#: Hash of the code that the table was written with.
JUDGED_BY = Path(__file__).with_suffix(".sha256")
EXACT, REFUSED, SILENT, NOT_BUILT = "exact", "refused", "silently wrong", "not built"
#: A model with more parameters is not tiny: its config has sizes of other names.
MOST_PARAMETERS = 20_000_000

_WIDTH = "hidden_size d_model n_embd dim embed_dim emb_dim word_embed_proj_dim embedding_size hidden_dim width projection_dim"
_LAYERS = (
    "num_hidden_layers num_layers n_layer n_layers encoder_layers decoder_layers num_encoder_layers num_decoder_layers"
    " num_decoder_hidden_layers depth"
)
_HEADS = (
    "num_attention_heads n_head n_heads num_heads encoder_attention_heads decoder_attention_heads num_key_value_heads"
    " attention_heads num_experts num_local_experts n_routed_experts moe_num_experts"
)
_INNER = "intermediate_size d_ff n_inner encoder_ffn_dim decoder_ffn_dim ffn_dim d_inner mlp_dim"
_HEAD = "d_kv head_dim d_head qk_nope_head_dim qk_rope_head_dim v_head_dim rotary_dim patch_size"
_POSITIONS = "max_position_embeddings n_positions n_ctx max_source_positions max_target_positions vocab_size"
SMALL = (
    dict.fromkeys(_WIDTH.split(), 32)
    | dict.fromkeys(_LAYERS.split(), 2)
    | dict.fromkeys(_HEADS.split(), 4)
    | dict.fromkeys(_INNER.split(), 48)
    | dict.fromkeys(_HEAD.split(), 8)
    | dict.fromkeys(_POSITIONS.split(), 64)
    | dict.fromkeys(
        "q_lora_rank kv_lora_rank moe_intermediate_size shared_expert_intermediate_size num_mel_bins".split(), 16
    )
    | {"num_experts_per_tok": 2, "n_shared_experts": 1, "image_size": 32, "type_vocab_size": 2}
    | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
)

#: Where small numbers alone make no model.
OWN = {
    "donut-swin": {"embed_dim": 24, "num_heads": [2, 2, 4, 4]},
    "falcon_h1": {"mamba_d_ssm": 32, "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_state": 16},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "gptj": {"rotary_dim": 4},
    "codegen": {"rotary_dim": 4},
    "informer": {"prediction_length": 4},
    "lilt": {"hidden_size": 48},
    "luke": {"entity_vocab_size": 64, "entity_emb_size": 32},
    "qwen2_vl_text": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}},
    "roc_bert": {"pronunciation_vocab_size": 64, "shape_vocab_size": 64},
    "swin": {"embed_dim": 24, "num_heads": [2, 2, 4, 4]},
    "swinv2": {"embed_dim": 24, "num_heads": [2, 2, 4, 4]},
    "time_series_transformer": {"prediction_length": 4},
    "yolos": {"image_size": [32, 48]},
}


def tiny_config(kind: type[PreTrainedConfig]) -> PreTrainedConfig:
    """The default config with small numbers where their names are known, in its parts too."""
    default = kind()
    settings = {}
    for name, value in SMALL.items():
        before = getattr(default, name, ...)
        if isinstance(getattr(kind, name, None), property):
            continue  # it follows from others
        if before is None or (isinstance(before, int) and not isinstance(before, bool)):
            settings[name] = value
    if getattr(default, "layer_types", None) and "num_hidden_layers" in settings:
        settings["num_hidden_layers"] = 4  # of which one at least attends, where others do not
    for name, part in kind.sub_configs.items():
        own = getattr(default, name, None)
        settings[name] = tiny_config(type(own) if own is not None else part).to_dict()
    return kind(**settings | OWN.get(kind.model_type, {}))


def tiny_model(name: str) -> PreTrainedModel:
    """A model in evaluation whose heads are far from uniform. Raises ``ValueError`` if it is not tiny."""
    kind = CONFIG_MAPPING[name]
    config, model = tiny_config(kind), MODEL_MAPPING[kind]
    model = model[0] if isinstance(model, tuple) else model
    with torch.device("meta"):
        parameters = sum(parameter.numel() for parameter in model(config).parameters())
    if parameters > MOST_PARAMETERS:
        raise ValueError(f"{parameters:,} parameters")
    torch.manual_seed(0)
    made = model(config).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.is_floating_point() and parameter.ndim > 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return made


def names() -> list[str]:
    """Architectures that have a base model."""
    return sorted(name for name in CONFIG_MAPPING if CONFIG_MAPPING[name] in MODEL_MAPPING)


def code_hash() -> str:
    """Hash of all of this library's code that decides what becomes of an architecture."""
    digest = hashlib.sha256(transformers.__version__.encode())
    for path in [Path(__file__).relative_to(ROOT).as_posix(), *files(["sparselib.huggingface.attention"])]:
        if path != LOCK:
            digest.update(path.encode() + (ROOT / path).read_bytes())
    return digest.hexdigest()


def judged(name: str) -> tuple[str, str]:
    """What becomes of one architecture: a verdict, and the number of its layers or the reason."""
    try:
        model = tiny_model(name)
    except Exception as error:  # of other libraries that are not installed, of sizes that do not fit
        return NOT_BUILT, _one_line(error)
    model.set_attn_implementation("eager")
    other = next(_others(model), None)
    try:
        control = use_attention(model, lambda scores: scores.softmax(-1))
    except ValueError as error:
        return REFUSED, _one_line(error)
    inputs, expected = other
    for own, found in zip(expected, _outputs(model, inputs), strict=True):
        same = (own == found) | own.isnan()
        apart = (own - found).abs().masked_fill(same, 0.0).max().item()
        if not apart <= 1e-5 * max(1.0, own.abs().nan_to_num(0.0, 0.0, 0.0).max().item()):
            return SILENT, f"{apart:.2g} away"
    return EXACT, f"{control.layers} layers"


def _others(model: PreTrainedModel) -> Iterator[tuple[dict[str, Tensor], list[Tensor]]]:
    """Other inputs than those that ``use_attention`` looks at, where the model takes them, and its outputs.

    They have other numbers; sentences are twice as long, and the padded one is the first.
    """
    for inputs in guess_inputs(model):
        other = {}
        for name, value in inputs.items():
            other[name] = value.flip(0) if value.is_floating_point() else torch.cat([value.flip(0)] * 2, dim=1)
            if name == "attention_mask":
                other[name] = torch.cat([torch.ones_like(value), value.flip(0)], dim=1)
        try:
            yield other, _outputs(model, other)
        except Exception:  # not an input of this model
            continue


@torch.no_grad()
def _outputs(model: nn.Module, inputs: dict[str, Tensor]) -> list[Tensor]:
    torch.manual_seed(1)
    found = model(**inputs)
    return [value for value in found.to_tuple() if isinstance(value, Tensor) and value.is_floating_point()]


def _one_line(error: Exception) -> str:
    """What is wrong, without the paths of this machine."""
    text = " ".join(str(error).split())
    return re.sub(r"(?<![\w:/])/\S+/", "", text)[:160]


def main() -> None:
    """Judge all of them, and write the table."""
    TABLE.parent.mkdir(exist_ok=True)
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["architecture", "verdict", "detail", "transformers"])
        for name in names():
            writer.writerow([name, *judged(name), transformers.__version__])
    JUDGED_BY.write_text(f"{code_hash()}\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    sys.exit(main())
