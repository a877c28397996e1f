"""Small inputs for a Hugging Face model, guessed from its config; all positions differ."""

import inspect
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

TOKENS, PADDED = 8, 3
SAMPLES, FRAMES, PIXELS = 4000, 64, 32
_BINS = ("num_mel_bins", "feature_projection_input_dim", "input_feat_per_channel", "feature_size")

Inputs = dict[str, Tensor]


def guess_inputs(model: PreTrainedModel) -> Iterator[Inputs]:
    """Yield inputs to try, the likeliest first: the model's main input, alone and with another."""
    generator = torch.Generator().manual_seed(0)
    accepted = inspect.signature(model.forward).parameters
    main = model.main_input_name if isinstance(model.main_input_name, list) else [model.main_input_name]
    for others in ([], *([name] for name in _MAKERS if name not in main and name in accepted)):
        candidates = [_MAKERS[name](model.config, generator) for name in [*main, *others] if name in _MAKERS]
        for parts in product(*candidates):
            inputs = {name: x for part in parts for name, x in part.items() if name in accepted}
            if model.config.is_encoder_decoder and "decoder_input_ids" in accepted:
                for ids in _ids(model.config, generator):
                    inputs["decoder_input_ids"] = ids
            yield {
                name: x.to(model.device, model.dtype if x.is_floating_point() else x.dtype)
                for name, x in inputs.items()
            }


def _ids(config: PreTrainedConfig, generator: torch.Generator) -> list[Tensor]:
    """Return two sentences without the special tokens that the config names; nothing for a model without a vocabulary."""
    text = config.get_text_config()
    named = [x for key, x in (config.to_dict() | text.to_dict()).items() if key.endswith("_token_id")]
    special = {token for x in named for token in (x if isinstance(x, list) else [x])}
    ordinary = [token for token in range(min(getattr(text, "vocab_size", 0), 1000)) if token not in special]
    if not ordinary:
        return []
    return [torch.tensor(ordinary)[torch.randint(len(ordinary), (2, TOKENS), generator=generator)]]


def _text(config: PreTrainedConfig, generator: torch.Generator) -> list[Inputs]:
    real = torch.ones(2, TOKENS, dtype=torch.long)
    real[1, -PADDED:] = 0
    return [{"input_ids": ids, "attention_mask": real} for ids in _ids(config, generator)]


def _images(config: PreTrainedConfig, generator: torch.Generator) -> list[Inputs]:
    return [{"pixel_values": torch.randn(2, *_image_shape(config), generator=generator)}]


def _videos(config: PreTrainedConfig, generator: torch.Generator) -> list[Inputs]:
    frames = getattr(config, "num_frames", 2)
    return [{"pixel_values_videos": torch.randn(2, frames, *_image_shape(config), generator=generator)}]


def _image_shape(config: PreTrainedConfig) -> tuple[int, int, int]:
    vision_config = getattr(config, "vision_config", config)
    size = getattr(vision_config, "image_size", None) or PIXELS
    height, width = size if isinstance(size, tuple | list) else (size, size)
    return getattr(vision_config, "num_channels", 3), height, width


def _spectrograms(config: PreTrainedConfig, generator: torch.Generator) -> list[Inputs]:
    """Return spectrograms with frames last, as for Whisper, and with frames first."""
    sizes = (getattr(config, name, None) for name in _BINS)
    bins = next((size for size in sizes if size), 80)
    positions = getattr(config, "max_source_positions", None)
    frames = 2 * positions if positions else FRAMES
    shapes = (bins, frames), (frames, bins)
    return [{"input_features": torch.randn(2, *shape, generator=generator)} for shape in shapes]


def _audio(config: PreTrainedConfig, generator: torch.Generator) -> list[Inputs]:
    shapes = (SAMPLES,), (1, SAMPLES)
    return [{"input_values": torch.randn(2, *shape, generator=generator)} for shape in shapes]


_MAKERS = {
    "input_ids": _text,
    "pixel_values": _images,
    "pixel_values_videos": _videos,
    "input_features": _spectrograms,
    "input_values": _audio,
}
