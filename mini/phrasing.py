"""Ways to ask for a rename, put together from parts: verb, what it is done to, joint, reason, aside.

People word a rename in more ways than a list can hold, so half of the training wordings come from here. A and B stand
for the old and the new name, N for a noun, as in `wording.RENAME`; W and D of an aside become a word and a number. No
wording of `wording.RENAME_UNSEEN` can come out.
"""

import re
from random import Random

from specd.mini.names import COMMON_WORDS

# (verb, joints); "verb what joint B"
_TO = (
    ("rename", "to|to|to|as|into|so that it is called|so it becomes|so that it is named|:|->|=>|,new name|to be|to:"),
    ("change", "to|to|into|to be|to become|over to|->|so that it is called|so it says|, make it"),
    ("turn", "into|to"),
    ("convert", "to|into"),
    ("refactor", "to|into|so that it is called|so it is named"),
    ("move", "to|over to"),
    ("switch", "to|over to"),
    ("update", "to|to be|to be called|to its new name|to the new name"),
    ("transform", "into|to"),
    ("rewrite", "as|to|to be|into"),
    ("modify", "to|to be|so that it is called"),
    ("alter", "to|to be"),
    ("edit", "to say|to be|so that it is called"),
    ("correct", "to|, it is|, it should be"),
    ("fix", "to be|, it should be|, it is called|: it should be"),
    ("replace", "with|by|with|by|with:|by its new name|everywhere with|with the identifier"),
    ("substitute", "with|by"),
    ("overwrite", "with|by"),
    ("trade", "for"),
    ("name", ""),
    ("call", "|instead:|by the name|from here on"),
    ("re-name", "to|as"),
    ("give", "the name|the new name|a new name:|another name,|the identifier"),
    ("set the name of", "to"),
    ("the new name for", "is|should be|will be|:"),
    ("the right name for", "is|would be"),
    ("do the renaming of", "to"),
    ("start calling", ""),
    ("stop using", "; use|, it is|and use"),
    ("drop the name", "in favour of|for|and use"),
    ("find", "and make it|and turn it into|and put|, replace by"),
)
_WHAT = (
    "A|A|A|A|the N A|the N A|the name A|the N named A|the N called A|every A|each A|all A|all the A|every use of A"
    "|each use of A|all uses of A|every occurrence of A|each occurrence of A|all references to A|our A|this A|that A"
    "|the identifier A|the old name A|what is A now|the existing A|N A|the word A|the symbol A|the one called A"
).split("|")
_NEW = ("B",) * 9 + ("the name B", "the new name B", "the N B", "just B", "plain B")

# The new name first, a statement, a note, a question.
_OTHER = re.split(
    r"[|\n]",
    """use B where A is used now|use B for A|use B wherever A is used|use B everywhere instead of A
write B instead of A|write B for A|write B where it says A now|put B wherever A stands|put B instead of A
put B where A is|have B instead of A|have it say B instead of A|go with B rather than A|say B instead of A
say B, not A|let B replace A|let B be the name of A|make B the name of A|make B out of A|make A read B
make A be called B|let A become B|let A go by B|let the N A be B|take B instead of A|choose B over A
get rid of the name A, use B|adopt B for A|introduce B as the name of A|prefer B to A|B for A|B, not A
B replaces A|B should replace A|B is to replace A|B takes the place of A|B is what A is to be called
B is the new name of A|B is the new A|B is the right name for A|B is better than A|B instead of A
B should be used instead of A|B rather than A|B is how A should be written|B (was A)|B, formerly A
A becomes B|A will be B|A will be called B|A gets renamed to B|A gets the name B|A goes by B now
A has a new name: B|A has been renamed to B|A has been renamed to B in the library, follow|A has to be B
A has to become B|A must become B|A must be B|A must be renamed to B|A shall be B|A is to be B
A is to be called B|A is to become B|A is wrong, it is B|A is wrong, use B|A is deprecated, use B
A is called B upstream|A was a typo for B|A should read B|A should have been B|A should really be B
A should become B|A should change to B|A can be called B|A may be called B|A needs to be B
A needs to be renamed to B|A needs the name B|A wants to be B|A could be B|A could be called B|A ---> B
A --> B|A>B|A > B|A : B|A = B|A / B|A, B|A should say B|A: call it B|A: rename to B|A: should be B
A, rename it to B|A; new name B|A, now B|A, new name B|A? B!|A -> B, please|A -> B (rename)|[A -> B]
(A => B)|old name A, new name B|old: A, new: B|old A new B|old=A new=B|old is A, new is B|from A to B
from: A to: B|from A into B|name change: A to B|name change A -> B|naming: A -> B|renaming A to B
renaming: A to B|rename old A new B|the new name is B, the old one is A|the N is B now, not A
the N is called A, it should be B|the name is A, make it B|the N A is to be B|the N A must be B
the N A becomes B|the N formerly called A is B now|the name A is bad, B is good|the name A should go, use B
the name A becomes B|the name of A is B|the name of A is to be B|the name of A should be B
the code says A, it should say B|it says A, it should say B|it is called A; call it B
there is A here; make it B|where it says A write B|where it says A it should say B
wherever you see A write B|wherever there is A, use B|whenever A occurs, use B|everywhere A is used, use B
each time A is used, use B|if you see A, make it B|for A read B|for A use B|for A write B|for A take B
in place of A use B|in place of A write B|instead of A use B|instead of A write B|instead of A, B
instead of A I want B|rather than A use B|not A but B|no A, B|no more A: use B|I want B instead of A
I want A to become B|I want to rename A to B|I want to call A B|I would call A B|I'd call A B
I'd rather have B than A|I'd like to see B instead of A|I'd like A to be B|I need A to be B
I need A renamed to B|I need B here, not A|I meant B, not A|I mistyped A, it is B|I misspelled A; B is right
my mistake: A should be B|we want B instead of A|we want A to be B|we call this B, not A|we say B, not A
we decided to call A B|we renamed A to B|we renamed A, it is B now|we are renaming A to B|we should call A B
we need A to be called B|the team calls A B|the docs say B, the code says A; follow the docs
the reviewer wants B instead of A|the spec says B, not A|people expect B, not A
nobody understands A; call it B|the linter wants B for A|A is too short, call it B|A is too long, call it B
A is unclear, use B|A is confusing; B is clear|A is ugly; use B|A is not a good name, B is|A is too vague: B
A clashes with something, so call it B|A is a keyword there, use B|A does not say enough, B does
could A be B?|could A be called B?|can A become B?|can A be called B?|should A not be B?
why not B instead of A?|why is it A? make it B|would B be better than A? then use it|how about B for A?
what about calling A B?|shouldn't A be B?|is A not B now? change it|:%s/A/B/g|sed s/A/B/g|%s/A/B|s#A#B#
rename(A, B)|rename A,B|rename A; B|mv A B|A B|rename {A} to {B}|rename A (to B)|rename A - B|ren A B
rename A B|refactor/rename A B|do A -> B|apply A -> B|perform the rename A => B|run a rename: A to B
make the rename A to B|carry out the rename of A to B|execute: rename A to B|A renamed to B|A named B
A called B|A as B|A into B|A to B""",
)

_BEFORE = re.split(
    r"[|\n]",
    """for consistency,|in this code|as discussed,|todo:|cleanup:|ticket D:|after the W change,|next:|step D:|D.|D)
to avoid confusion with the W,|since it clashes with the W,|small thing:|one more:|hi,|hey,|hello,
quick edit:|fyi:|review comment:|W:|-|*|#|>|to do:|task:|first,|then|also|and|so|ok|okay,|yes,|no,|well,
actually,|I think you should|we need to|I want you to|I'd like you to|you need to|let's|let us|it's time to
time to|would you|will you|kindly|do|go and|go through the code and|in all of this|here,|here:|in here
in the code below|in the code above|in the W part|in this function,|in this class,|in this file,
within this block|for the W,|as in the W module,|like the W,|to match the W,|to be clear,|for clarity,
for readability,|my request:|instruction:""",
)
_AFTER = re.split(
    r"[|\n]",
    """ for consistency| because it is clearer|, it is clearer| as in the W module| so that it matches the W
 (see the W docs)| to match the W|, nothing else| and leave the rest alone|, the rest stays
, and keep everything else|, change nothing else| (all D uses)|, it reads better| since the W does the same
, comments too| and in comments|, including comments and strings| also in the comments| in every line
 on every line| in the code above| in this code| in all of it| for me| now| instead| at once| again| then
 in one go| globally| completely| exactly| only| as agreed| as discussed|, ok?|, right?| :)|!!|...| - thanks
 -- thank you| asap| if you can| without changing anything else| but keep the rest as it is
 and don't touch other names| (not the ones that only contain it)|, whole words only| as a whole word
 where it is a whole word|, exact matches only| but not names that begin with it| all over
 from top to bottom| in the W code| like in the W| (W)| #D|, see D| [W]| for the W| in version D
 everywhere you find it""",
)


# Wordings with a hole: V is any of the words below, so that a word nobody has met is not taken for the new name.
_OPEN = re.split(
    r"[|\n]",
    """A is to be V B|A should be V as B|A must be V B|A needs to be V to B|A has to be V as B|A will be V B
A is V B now
V A as B|V A to B|V A into B|V A with B|V every A to B|V the N A as B|V the name A to B|have A V as B|have every A V B
let A V as B|let it V B instead of A|make A V B|make it V B, not A|the V of A should be B|the V of A is to be B
the V of A is B now|set the V of A to B|each V of A becomes B|every V of A must be B|all V of A should say B
change the V A to B|where A is V, use B|when A is V, make it B|V A and use B|V out A and write B|V A, then put B there
A V as B|A V to B|A should V B|A must V B from today|V: A to B|V: A -> B|V (A -> B)|for V, A should be B
we V A as B|we V B instead of A|they V A B|I V B to A|I would V A as B|please V: A becomes B|B is V for A
B should be V where A is|use B as the V of A|B has to be V instead of A""",
)
_HOLE = """labelled titled marked understood seen taken given written found read meant stated listed declared
defined entered
typed noted put kept held shown told chosen picked selected adopted treated handled tagged coined dubbed termed styled
phrased worded addressed recognised identified registered recorded published exposed referred regarded considered
label title mark tag coin dub term style phrase word address list declare define enter type note show pick select adopt
treat publish spell name notation heading caption designation token instance place spot place use reference usage form
clarity readability symmetry uniformity review release version reading writing sake shift adapt adjust apply morph
remap retag rebrand reword rephrase restate refashion recast reclassify standardise normalise harmonise unify""".split()


def _filled(rng: Random, aside: str) -> str:
    word = rng.choice(COMMON_WORDS)
    return re.sub(r"\b[WD]\b", lambda m: word if m.group() == "W" else str(rng.randrange(1, 400)), aside)


def rename_template(rng: Random) -> str:
    """A sentence with A and B that asks for a rename of A to B."""
    if rng.random() < 0.45:
        verb, joints = rng.choice(_TO)
        joint = rng.choice(joints.split("|"))
        new = "B" if "name" in joint or "identifier" in joint else rng.choice(_NEW)
        words = f"{verb} {rng.choice(_WHAT)} {joint} {new}"
        words = re.sub(r" +", " ", words).replace(" ,", ",").replace(" ;", ";").replace(" :", ":")
    elif rng.random() < 0.7:
        words = rng.choice(_OTHER)
    else:
        hole = rng.choice(_HOLE)
        words = re.sub(r"\bV\b", hole, rng.choice(_OPEN))
    r = rng.random()
    if r < 0.14 and words[:1] not in ":%s{[(" and "?" not in words:
        words = f"{_filled(rng, rng.choice(_BEFORE))} {words}"
    elif r < 0.30 and words[-1:] not in ")]}?!" and "/" not in words:
        words += _filled(rng, rng.choice(_AFTER))
    return words
