"""specd.engine: tokens in, tokens out. It knows nothing of files, editors or sockets; it imports no other specd room.

loaded = load("Qwen/Qwen3-4B")
ids = loaded.tokenizer.chat([{"role": "user", "content": "..."}])
for event in generate(loaded.model, ids, tokenizer=loaded.tokenizer, speculative=NgramProposer(k=15)):
    ...
"""

from specd.engine.acceptance import Acceptance
from specd.engine.adaptive import Adaptive
from specd.engine.config import EngineConfig, ModelConfig
from specd.engine.costs import CostTable
from specd.engine.draft import Committed, Draft, Proposer, Sequence
from specd.engine.errors import ContextOverflow, EngineError, ModelError, NonFiniteLogits, OutOfMemory
from specd.engine.events import Event, Finished, PrefillDone, StepDone
from specd.engine.generate import generate
from specd.engine.load import Loaded, load
from specd.engine.policy import Choice, Fixed, StepPolicy
from specd.engine.prefill import PrefillProgress, prefill
from specd.engine.prefix import Kept, PrefixCache, prepare
from specd.engine.propose.ngram import NgramProposer
from specd.engine.sampling import SamplingParams
from specd.engine.stats import StepRecord, Summary
from specd.engine.tokenizer import TextStream, Tokenizer

__all__ = [
    "Acceptance",
    "Adaptive",
    "Choice",
    "Committed",
    "ContextOverflow",
    "CostTable",
    "Draft",
    "EngineConfig",
    "EngineError",
    "Event",
    "Finished",
    "Fixed",
    "Kept",
    "Loaded",
    "ModelConfig",
    "ModelError",
    "NgramProposer",
    "NonFiniteLogits",
    "OutOfMemory",
    "PrefillDone",
    "PrefillProgress",
    "PrefixCache",
    "Proposer",
    "SamplingParams",
    "Sequence",
    "StepDone",
    "StepPolicy",
    "StepRecord",
    "Summary",
    "TextStream",
    "Tokenizer",
    "generate",
    "load",
    "prefill",
    "prepare",
]
