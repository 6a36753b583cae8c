"""Text to tokens and back: a Hugging Face tokenizer.json, the model's chat template, and text out of a token stream.

Byte-level BPE only (Qwen's kind): every token is a run of bytes, so a stream of tokens is a stream of bytes, and text
leaves it as soon as its characters are whole.
"""

import codecs
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import jinja2
import tokenizers
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

from specd.engine.config import read_json
from specd.engine.errors import ModelError


def _byte_alphabet() -> dict[str, int]:
    """Byte-level BPE writes each byte as one printable character: itself where printable, else the next from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in set(printable))
    table.update({chr(0x100 + number): byte for number, byte in enumerate(others)})
    return table


def chat_template(folder: Path) -> jinja2.Template:
    """The folder's chat template: chat_template.jinja, else the one in tokenizer_config.json. Raises ModelError.

    Rendered as Hugging Face does (sandboxed, blocks trimmed, `raise_exception` known), without importing transformers,
    which would take longer than loading a small model.
    """
    path = folder / "chat_template.jinja"
    if path.exists():
        source: object = path.read_text(encoding="utf-8")
    else:
        path = folder / "tokenizer_config.json"
        source = read_json(path).get("chat_template") if path.exists() else None
        if isinstance(source, list):  # several by name
            source = next((entry.get("template") for entry in source if entry.get("name") == "default"), None)
    if not isinstance(source, str) or not source:
        raise ModelError(f"{folder} has no chat template: base models cannot follow an instruction")

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    world = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
    world.globals["raise_exception"] = refuse
    world.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False, **options)
    try:
        return world.from_string(source)
    except jinja2.TemplateError as error:
        raise ModelError(f"{path}: the chat template is broken ({error})") from None


class _Memo(dict[int, bytes]):
    """What `read` gives for a number, read once."""

    def __init__(self, read: Callable[[int], bytes]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, token: int) -> bytes:
        known = self[token] = self._read(token)
        return known


class Tokenizer:
    """A model folder's tokenizer. `vocab_size` is one more than the highest id that it knows, added ones too."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        path = self.folder / "tokenizer.json"
        if not path.exists():
            raise ModelError(f"{self.folder} has no tokenizer.json: name a folder with a model in Hugging Face layout")
        try:
            self._inner = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise ModelError(f"{path} is broken ({error}); download it again") from None
        self.vocab_size = max(self._inner.get_vocab(with_added_tokens=True).values(), default=-1) + 1
        added = self._inner.get_added_tokens_decoder()
        self.special_ids = frozenset(number for number, token in added.items() if token.special)
        self._added = {number: token.content.encode() for number, token in added.items()}
        self._alphabet = _byte_alphabet()
        self.bytes_of: Mapping[int, bytes] = _Memo(self.token_bytes)  # the same, of tokens that came before at once
        self._template: jinja2.Template | None = None

    def encode(self, text: str) -> list[int]:
        """The text's ids; special tokens written in it are read as such, nothing is added around it."""
        ids: list[int] = self._inner.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The ids' text without special tokens; bytes that are not UTF-8 become U+FFFD."""
        return b"".join(map(self.bytes_of.__getitem__, ids)).decode("utf-8", errors="replace")

    def token_bytes(self, token: int) -> bytes:
        """The bytes a token stands for; none for a special token or an unknown id. The library takes microseconds."""
        if token in self._added:
            return b"" if token in self.special_ids else self._added[token]
        text = self._inner.id_to_token(token)
        if text is None:
            return b""
        try:
            return bytes(self._alphabet[character] for character in text)
        except KeyError:
            return text.encode()

    def token_id(self, text: str) -> int | None:
        """The id of a token by its content, such as `<|im_end|>`."""
        found: int | None = self._inner.token_to_id(text)
        return found

    def chat_text(self, messages: Sequence[dict[str, str]]) -> str:
        """The messages in the model's own chat template, thinking off, up to where the answer begins."""
        if self._template is None:
            self._template = chat_template(self.folder)
        try:
            text: str = self._template.render(
                messages=list(messages), add_generation_prompt=True, enable_thinking=False, tools=None
            )
        except jinja2.TemplateError as error:
            raise ModelError(f"{self.folder}: the chat template refuses these messages ({error})") from None
        return text

    def chat(self, messages: Sequence[dict[str, str]], *, answer_prefix: str = "") -> list[int]:
        """The ids of `chat_text`, with the beginning of the answer where one is given. A special token that a message
        spells out is text: only the template's own count."""
        if not any(self._spells_special(message["content"]) for message in messages):
            return self.encode(self.chat_text(messages) + answer_prefix)
        marks = [f"\ue000{number}\ue001" for number in range(len(messages))]
        contents = [message["content"] for message in messages]
        marked = [message | {"content": mark} for message, mark in zip(messages, marks, strict=True)]
        ids, rest = list[int](), self.chat_text(marked)
        for mark, content in zip(marks, contents, strict=True):
            before, _, rest = rest.partition(mark)
            ids += self.encode(before) + self.encode_plain(content)
        return ids + self.encode(rest + answer_prefix)

    def encode_plain(self, text: str) -> list[int]:
        """The text's ids where even a special token that it spells out is only text."""
        self._inner.encode_special_tokens = True
        try:
            return self.encode(text)
        finally:
            self._inner.encode_special_tokens = False

    def _spells_special(self, text: str) -> bool:
        return any(self._added[token].decode() in text for token in self.special_ids)


class TextStream:
    """Tokens in, text out: what has been pushed so far, never half a character. The deltas concatenate to `decode`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._bytes_of = tokenizer.bytes_of.__getitem__
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, ids: Iterable[int]) -> str:
        return self._decoder.decode(b"".join(map(self._bytes_of, ids)))

    def finish(self) -> str:
        """The rest: U+FFFD where the stream ended inside a character."""
        return self._decoder.decode(b"", final=True)
