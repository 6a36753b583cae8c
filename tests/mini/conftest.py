"""What the tests of mini share: this repository's own code as a small corpus; a tokenizer and items made from it."""

from pathlib import Path
from random import Random

import pytest

from specd.mini.corpus import write_files
from specd.mini.edits import EditMaker, SourceFile, identifier_pool
from specd.mini.evaluate import Item, bucket, write_items
from specd.mini.packing import encode_edit
from specd.mini.tokenizer import FastEncoder, build

ROOT = Path(__file__).parents[2]

RUST = """
/// A point on a grid.
#[derive(Debug, Clone)]
pub struct Point {
    x: i64,
    y: i64,
}

impl Point {
    /// The point moved by one step.
    pub fn step(&self, dx: i64, dy: i64) -> Point {
        if dx == 0 {
            return Point { x: self.x, y: self.y + dy };
        }
        Point { x: self.x + dx, y: self.y + dy }
    }

    pub fn length(&self) -> i64 {
        self.x.abs() + self.y.abs()
    }
}

fn main() {
    let start = Point { x: 1, y: 2 };
    let there = start.step(3, 4);
    println!("{} {}", there.length(), "done");
}
"""

JAVASCRIPT = """
import { readFile } from 'node:fs';

// Counts the words of a text.
function countWords(text, limit) {
  const counts = new Map();
  for (const word of text.split(' ')) {
    if (counts.size < limit) {
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
  }
  return counts;
}

export function report(path) {
  readFile(path, (error, data) => {
    console.log('read', path);
    const counts = countWords(String(data), 100);
    console.log(counts.size);
  });
}
"""


@pytest.fixture(scope="session")
def files() -> list[SourceFile]:
    python = [p for room in ("mini", "engine") for p in sorted((ROOT / room).glob("*.py"))][:24]
    texts = {p.name: p.read_text() for p in python}
    own = [SourceFile(f"specd/{name}", "python", text) for name, text in texts.items() if "<|" not in text]
    return [
        *own,
        SourceFile("own/point.rs", "rust", RUST * 3),
        SourceFile("own/words.js", "javascript", JAVASCRIPT * 3),
    ]


@pytest.fixture(scope="session")
def pool(files: list[SourceFile]) -> list[str]:
    return identifier_pool(files, Random(1))


@pytest.fixture(scope="session")
def data(files: list[SourceFile], pool: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder such as specd.mini.corpus, .tokenizer and .evaluate leave behind, in small."""
    folder = tmp_path_factory.mktemp("data")
    write_files(folder / "train.jsonl.xz", files)
    build((f.text for f in files), 600).save(str(folder / "tokenizer.json"))
    encode = FastEncoder(folder / "tokenizer.json")
    maker = EditMaker(files, pool, 7)
    edits = [
        maker.make(kind, sizes=((1.0, 300),)) for kind in ("rename", "literal", "delete", "rename") for _ in range(2)
    ]
    write_items(folder / "eval.jsonl.xz", [Item(e, bucket(len(encode_edit(e, encode, "")[1]))) for e in edits])
    return folder
