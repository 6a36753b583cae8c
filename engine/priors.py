"""What an Acceptance believes of drafts before a job has taught it better."""

from specd.engine.acceptance import Prior

# Chance that a drafted token is refused, by (proposer, evidence), before a job has taught better; where there are
# eight, at positions 1, 2, 3-4, 5-8, ..., from 65 on. Measured by replaying real edits (cases of bench/replay.py with
# Qwen3's tokenizer, a third of the corpus) to a perfect target, so rounded up. For n-gram lookup the evidence is the
# length of the match; for edits the classes are edit.py's: a copy that goes on (0-3), a guess where to go on (4-8).
# What is recalled where there is no text to edit was measured on the bundled model's answers to questions that no
# benchmark asks, at temperatures of 0.7 and 1.
EDITS: dict[tuple[str, int], Prior] = {
    ("edit", 0): (0.03, 0.02, 0.02, 0.02, 0.02, 0.02, 0.01, 0.005),
    ("edit", 1): (0.03, 0.02, 0.02, 0.02, 0.02, 0.02, 0.01, 0.005),
    ("edit", 2): (0.02, 0.01, 0.01, 0.01, 0.01, 0.01, 0.005, 0.003),
    ("edit", 3): (0.01, 0.005, 0.005, 0.003, 0.002, 0.002, 0.002, 0.002),
    ("edit", 4): 0.9,
    ("edit", 5): (0.8, 0.6, 0.45, 0.25, 0.1, 0.05, 0.05, 0.05),
    ("edit", 6): (0.65, 0.45, 0.25, 0.12, 0.08, 0.04, 0.02, 0.01),
    ("edit", 7): (0.4, 0.3, 0.15, 0.07, 0.06, 0.03, 0.02, 0.005),
    ("edit", 8): (0.2, 0.1, 0.02, 0.03, 0.02, 0.02, 0.01, 0.005),
    **{("recall", evidence): 0.9 for evidence in range(4)},
    ("recall", 4): (0.75, 0.6, 0.2, 0.12, 0.08, 0.08, 0.05, 0.05),
    ("recall", 5): (0.45, 0.3, 0.1, 0.09, 0.08, 0.06, 0.02, 0.02),
    ("recall", 6): (0.2, 0.35, 0.12, 0.1, 0.08, 0.04, 0.01, 0.01),
    ("recall", 7): (0.08, 0.22, 0.09, 0.08, 0.07, 0.035, 0.01, 0.01),
    ("recall", 8): (0.03, 0.03, 0.025, 0.02, 0.012, 0.006, 0.004, 0.004),
    ("ngram", 1): (0.7, 0.6, 0.4, 0.15, 0.1, 0.05, 0.05, 0.05),
    ("ngram", 2): (0.5, 0.3, 0.16, 0.1, 0.07, 0.03, 0.03, 0.03),
    ("ngram", 3): (0.23, 0.12, 0.1, 0.05, 0.02, 0.015, 0.015, 0.015),
    ("dflash", 0): 0.15,
    ("draft_model", 0): 0.2,
}

# The same for a text that is not an edit. Models that draft find it much harder; kept apart, so that neither kind of
# job is misled by what the other taught.
FREE: dict[tuple[str, int], Prior] = {**EDITS, ("dflash", 0): 0.35, ("draft_model", 0): 0.35}

# Chance that a branch's token is refused, before a job has taught better: name/0 is the first branch at a node, name/1
# and name/2 the others (their first token alone). What a proposer's chain does, its first branch does. For n-gram
# lookup the evidence is a match's length in the classes of ngram_tree.py; measured as adaptive.py's are.
BRANCHES: dict[tuple[str, int], Prior] = {
    **{(f"{name}/0", evidence): prior for (name, evidence), prior in EDITS.items()},
    ("ngram/0", 0): (0.7, 0.5, 0.3, 0.12, 0.06, 0.04, 0.04, 0.04),
    ("ngram/0", 1): (0.55, 0.3, 0.16, 0.09, 0.07, 0.03, 0.03, 0.03),
    ("ngram/0", 2): (0.5, 0.26, 0.17, 0.08, 0.07, 0.02, 0.02, 0.02),
    ("ngram/0", 3): (0.27, 0.17, 0.14, 0.1, 0.08, 0.02, 0.02, 0.02),
    ("ngram/0", 4): (0.14, 0.12, 0.11, 0.05, 0.05, 0.03, 0.03, 0.03),
    ("ngram/0", 5): (0.09, 0.08, 0.05, 0.05, 0.04, 0.02, 0.02, 0.02),
    ("ngram/0", 6): (0.03, 0.02, 0.02, 0.02, 0.01, 0.007, 0.007, 0.007),
    ("ngram/0", 7): (0.8, 0.5, 0.3, 0.12, 0.06, 0.04, 0.04, 0.04),
    **{(name, evidence): 0.9 for name in ("ngram/1", "edit/1", "dflash/1", "draft_model/1") for evidence in range(9)},
    **{(name, evidence): 0.96 for name in ("ngram/2", "edit/2", "dflash/2", "draft_model/2") for evidence in range(9)},
}
