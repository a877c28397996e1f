"""Models trained under entmax with PEFT and accelerate, saved, and loaded in a new process: the loss is the same."""

import json
import subprocess
import sys

import pytest
import torch
from accelerate import Accelerator
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import BertConfig, BertForSequenceClassification

from sparselib.huggingface import use_attention
from sparselib.normalizers import Entmax

SIZES = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
IDS = torch.randint(5, 60, (6, 16), generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(6) % 2
ADAPTERS = {"r": 4, "target_modules": ["query", "key", "value"], "task_type": "SEQ_CLS", "lora_dropout": 0.0}

#: Prints the loss of each way of loading, by its name.
LOAD = """
import json, sys, torch
import sparselib.huggingface.attention
from accelerate import load_checkpoint_and_dispatch
from peft import AutoPeftModelForSequenceClassification, PeftModel
from transformers import AutoConfig, AutoModelForSequenceClassification as Auto

folder = sys.argv[1]
found = {{
    "adapters of an entmax model": PeftModel.from_pretrained(
        Auto.from_pretrained(f"{{folder}}/entmax"), f"{{folder}}/adapters"
    ),
    "adapters alone": AutoPeftModelForSequenceClassification.from_pretrained(f"{{folder}}/adapters"),
    "adapters of a softmax model": PeftModel.from_pretrained(
        Auto.from_pretrained(f"{{folder}}/softmax", attn_implementation="entmax"), f"{{folder}}/named"
    ),
    "merged": Auto.from_pretrained(f"{{folder}}/merged"),
    "accelerate": Auto.from_pretrained(f"{{folder}}/accelerate"),
    "accelerate's weights": load_checkpoint_and_dispatch(
        Auto.from_config(AutoConfig.from_pretrained(f"{{folder}}/accelerate")), f"{{folder}}/weights"
    ),
}}
ids, labels = (torch.tensor(x) for x in ({ids}, {labels}))
with torch.no_grad():
    print(json.dumps({{name: model.eval()(ids, labels=labels).loss.item() for name, model in found.items()}}))
"""


def fresh(folder=None):
    torch.manual_seed(0)
    model = BertForSequenceClassification(BertConfig(**SIZES, initializer_range=0.5, hidden_dropout_prob=0.0))
    if folder is not None:
        model.save_pretrained(folder)
    return model if folder is None else BertForSequenceClassification.from_pretrained(folder)


def trained(model, prepare=lambda *parts: parts, backward=lambda loss: loss.backward()):
    optimizer = torch.optim.AdamW([x for x in model.parameters() if x.requires_grad], lr=0.05)
    model, optimizer = prepare(model.train(), optimizer)
    for _ in range(3):
        optimizer.zero_grad()
        backward(model(IDS, labels=LABELS).loss)
        optimizer.step()
    return model.eval()


@torch.no_grad()
def loss_of(model):
    return model.eval()(IDS, labels=LABELS).loss.item()


@pytest.fixture(scope="module")
def losses(tmp_path_factory):
    """The losses of the trained models, by name, and those in a new process."""
    folder = tmp_path_factory.mktemp("models")
    expected = {}

    model = fresh()
    use_attention(model, Entmax(1.3))
    model.save_pretrained(folder / "entmax")
    base = BertForSequenceClassification.from_pretrained(folder / "entmax")
    adapted = trained(get_peft_model(base, LoraConfig(**ADAPTERS)))
    adapted.save_pretrained(folder / "adapters")
    expected["adapters of an entmax model"] = expected["adapters alone"] = loss_of(adapted)
    merged = adapted.merge_and_unload()
    merged.save_pretrained(folder / "merged")
    expected["merged"] = loss_of(merged)

    model = fresh(folder / "softmax")
    use_attention(model)
    adapted = trained(get_peft_model(model, LoraConfig(**ADAPTERS)))
    adapted.save_pretrained(folder / "named")
    expected["adapters of a softmax model"] = loss_of(adapted)
    softmax = PeftModel.from_pretrained(
        BertForSequenceClassification.from_pretrained(folder / "softmax"), folder / "named"
    )
    assert abs(loss_of(softmax) - expected["adapters of a softmax model"]) > 1e-3  # the losses tell both apart

    accelerator, model = Accelerator(cpu=True), fresh()
    use_attention(model)
    model = accelerator.unwrap_model(trained(model, accelerator.prepare, accelerator.backward))
    model.save_pretrained(folder / "accelerate", save_function=accelerator.save)
    accelerator.save_model(model, folder / "weights")
    expected["accelerate"] = expected["accelerate's weights"] = loss_of(model)

    script = LOAD.format(ids=IDS.tolist(), labels=LABELS.tolist())
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return expected, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "name",
    [
        "adapters of an entmax model",
        "adapters alone",
        "adapters of a softmax model",
        "merged",
        "accelerate",
        "accelerate's weights",
    ],
)
def test_the_loss_is_the_same_in_a_new_process(losses, name):
    expected, found = losses
    assert found[name] == pytest.approx(expected[name], abs=1e-5)
