import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from specd.mini import train as training
from specd.mini.checkpoint import load_model
from specd.mini.drafter import BLOCK, BlockMask, Drafter, DrafterConfig, sample_blocks
from specd.mini.evaluate import encoded, read_items, table, teacher_forced
from specd.mini.model import MiniModel, ModelConfig
from specd.mini.packing import encode_edit
from specd.mini.tokenizer import FastEncoder

SMALL = ModelConfig(vocabulary=600, layers=2, hidden=32, heads=4, kv_heads=2, head_dim=16, mlp=48)
ONE = torch.tensor([0, 40], dtype=torch.int32)


def run(*args: str) -> str:
    done = subprocess.run([sys.executable, "-m", *args], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_packed_documents_do_not_see_each_other() -> None:
    torch.manual_seed(0)
    model = MiniModel(SMALL, torch.float32)
    for layer in model.layers:
        torch.nn.init.normal_(layer.o, std=0.1)
    a, b = torch.randint(600, (25,)), torch.randint(600, (15,))
    alone, _ = model(b, torch.arange(15), torch.tensor([0, 15], dtype=torch.int32), 15)
    positions = torch.cat((torch.arange(25), torch.arange(15)))
    together, _ = model(torch.cat((a, b)), positions, torch.tensor([0, 25, 40], dtype=torch.int32), 25)
    torch.testing.assert_close(together[25:], alone)


def test_attention_gradients_match_autograd() -> None:
    from specd.mini.model import attention, attention_backward

    torch.manual_seed(1)
    q, k, v = torch.randn(40, 4, 16), torch.randn(40, 2, 16), torch.randn(40, 2, 16)
    bounds = torch.tensor([0, 12, 40], dtype=torch.int32)
    g = torch.randn_like(q)
    out, lse = attention(q, k, v, bounds, 40)
    mine = attention_backward(g, q, k, v, out, lse, bounds, 40)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]
    parts = []
    for start, end in ((0, 12), (12, 40)):
        a, b, c = (x[start:end].transpose(0, 1)[None] for x in leaves)
        parts.append(
            torch.nn.functional.scaled_dot_product_attention(a, b, c, is_causal=True, enable_gqa=True)[0].transpose(
                0, 1
            )
        )
    theirs = torch.autograd.grad((torch.cat(parts) * g).sum(), leaves)
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model trained in two legs by the command line."""
    out = tmp_path_factory.mktemp("model")
    common = ("specd.mini.train", "--data", str(data), "--out", str(out), "--tiny", "--steps", "24", "--rate", "0.02")
    run(*common, "--until", "0.5")
    run(*common)
    return out


def test_a_second_leg_goes_on_where_the_first_ended(trained: Path) -> None:
    log = [json.loads(line) for line in (trained / "log.jsonl").read_text().splitlines()]
    assert [x["step"] for x in log if x.get("event") == "start"] == [0, 12]
    assert [x["step"] for x in log if x.get("event") == "end"] == [12, 24]
    losses = [x["loss"] for x in log if "loss" in x]
    assert losses[-1] < losses[0] - 0.3


def test_training_goes_on_from_weights_but_not_with_another_tokenizer(
    trained: Path, data: Path, tmp_path: Path
) -> None:
    args = ["--out", str(tmp_path / "out"), "--tiny", "--steps", "1", "--weights", str(trained)]
    training.train(*training.parse(["--data", str(data), *args]))
    first = json.loads((tmp_path / "out" / "log.jsonl").read_text().splitlines()[1])
    assert first["loss"] < json.loads((trained / "log.jsonl").read_text().splitlines()[1])["loss"] - 0.3
    other = shutil.copytree(data, tmp_path / "other")
    (other / "tokenizer.json").write_text("{}")
    with pytest.raises(SystemExit, match="not the tokenizer"):
        training.train(*training.parse(["--data", str(other), *args, "--out", str(tmp_path / "new")]))


def test_the_same_seed_trains_the_same_model(data: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        options, config = training.parse(["--data", str(data), "--out", str(tmp_path / name), "--tiny", "--steps", "3"])
        training.train(options, config)
    a, b = (torch.load(tmp_path / n / "state.pt", weights_only=True)["model"] for n in ("a", "b"))
    assert all(torch.equal(a[k], b[k]) for k in a)


def test_the_saved_folder_loads_in_transformers_with_equal_logits(trained: Path) -> None:
    theirs = AutoModelForCausalLM.from_pretrained(trained, dtype=torch.float32)
    mine = load_model(trained, "cpu", torch.float32)
    ids = torch.randint(4, 600, (40,))
    x, _ = mine(ids, torch.arange(40), ONE, 40)
    torch.testing.assert_close(mine.logits(x), theirs(ids[None]).logits[0], rtol=1e-4, atol=1e-4)


def test_the_chat_template_gives_the_trained_prompt(trained: Path, data: Path) -> None:
    from specd.daemon.rewrite.prompt import region_message

    edit = read_items(data / "eval.jsonl.xz")[0].edit
    tokenizer = AutoTokenizer.from_pretrained(trained)
    message = {"role": "user", "content": region_message("rust", edit.before, edit.instruction)}
    text = tokenizer.apply_chat_template([message], add_generation_prompt=True, tokenize=False)
    assert tokenizer(text)["input_ids"] == encode_edit(edit, FastEncoder(data / "tokenizer.json"), "rust")[0]


def test_teacher_forcing_counts_what_greedy_decoding_would_get_wrong(trained: Path, data: Path) -> None:
    model = load_model(trained, "cpu", torch.float32).requires_grad_(False)
    items = read_items(data / "eval.jsonl.xz")
    documents = encoded(items, FastEncoder(data / "tokenizer.json"))
    wrong = teacher_forced(model, documents, 2048)
    prompt, answer = documents[0]
    ids = torch.tensor(prompt + answer)
    x, _ = model(ids, torch.arange(len(ids)), torch.tensor([0, len(ids)], dtype=torch.int32), len(ids))
    expected = int((model.logits(x).argmax(-1)[len(prompt) - 1 : -1] != ids[len(prompt) :]).sum())
    assert wrong[0] == expected
    assert table(items, wrong)["rename"]["all"][1] == 4


def test_the_drafter_trains_is_saved_in_the_released_format_and_goes_on_from_it(
    trained: Path, data: Path, tmp_path: Path
) -> None:
    from safetensors.torch import load_file

    def train_drafter(name: str, steps: int, *more: str) -> Path:
        given = ["--data", str(data), "--model", str(trained), "--out", str(tmp_path / name), "--steps", str(steps)]
        run("specd.mini.train_dflash", *given, "--tiny", *more)
        return tmp_path / name

    out = train_drafter("dflash", 6)
    config = json.loads((out / "config.json").read_text())
    tensors = load_file(str(out / "model.safetensors"))
    hidden, taps = config["hidden_size"], config["dflash_config"]["target_layer_ids"]
    assert config["architectures"] == ["DFlashDraftModel"]
    assert config["block_size"] == BLOCK
    assert tensors["fc.weight"].shape == (hidden, hidden * len(taps))
    assert len(tensors) == 11 * config["num_hidden_layers"] + 3
    log = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert "all" in log[-1]
    again = load_file(str(train_drafter("again", 0, "--weights", str(out)) / "model.safetensors"))
    assert all(torch.equal(again[name], tensor) for name, tensor in tensors.items())


def test_a_block_sees_its_own_document_before_the_anchor_and_itself() -> None:
    mask = BlockMask(64, 2, torch.device("cpu"))
    mask.set(torch.tensor([20, 50]), torch.tensor([0, 30]))
    seen = mask.dense()[0, 0]
    assert seen[0, :64].nonzero().flatten().tolist() == list(range(20))
    assert seen[BLOCK, :64].nonzero().flatten().tolist() == list(range(30, 50))
    assert seen[3, 64:].nonzero().flatten().tolist() == list(range(BLOCK))


def test_block_labels_are_the_answer_tokens_after_the_anchor() -> None:
    rows = torch.tensor([*range(9, 29), *range(39, 49), 0, 0])
    labels = torch.cat((torch.arange(100, 130), torch.full((2,), -100)))
    positions = torch.cat((torch.arange(29), torch.arange(21)))
    anchors, starts, wanted = sample_blocks(rows, labels, positions, 64, torch.Generator().manual_seed(0))
    for anchor, start, row in zip(anchors.tolist(), starts.tolist(), wanted.tolist(), strict=True):
        last, first = (28, 10) if anchor < 30 else (48, 40)
        offset = 0 if anchor < 30 else 20
        expected = [100 + offset + p - first for p in range(anchor + 1, min(anchor + BLOCK, last + 2))]
        assert start == (0 if anchor < 29 else 29)
        assert [x for x in row if x != -100] == expected


def test_a_drafter_gives_one_row_per_block_position() -> None:
    drafter = Drafter(DrafterConfig(SMALL, layers=1, heads=4, kv_heads=2, mlp=48, taps=(0, 1)))
    mask = BlockMask(40, 3, torch.device("cpu"))
    mask.set(torch.tensor([10, 20, 30]), torch.zeros(3, dtype=torch.long))
    x = torch.randn(3 * BLOCK, 32)
    out = drafter(x, torch.randn(40, 64), torch.arange(3 * BLOCK), torch.arange(40), mask.dense())
    assert out.shape == (3 * BLOCK, 32)
