"""Which lines say that code was left out."""

import pytest

from specd.daemon.rewrite.omission import is_omission

LEFT_OUT = """
# ... rest unchanged
// ... existing code ...
/* ... */
-- rest of the function unchanged
# ...
// …
<!-- rest of the file remains the same -->
{/* ... existing code ... */}
# [rest of the code unchanged]
# (existing code)
// Rest of the code remains the same
# rest of the class
; ... remaining definitions
% ... unchanged
...
…
[...]
[... rest of the code ...]
... (rest of the code unchanged)
# remaining methods unchanged
// other methods
# The rest of the Shape class is unchanged
# existing imports
// unchanged
# same as before
// no changes
/* omitted for brevity */
function foo() { ... }
function foo() { /* ... */ }
fn foo() { /* unchanged */ }
def foo(x): ...  # unchanged
pass  # rest unchanged
# ... other tests ...
#= ... existing code ... =#
--[[ ... ]]
# lines 12-40 unchanged
# ... and so on for the remaining cases
""".strip().split("\n")

CODE = """
# wait until it is ready
# fall back to the original implementation
# use the existing code
# the rest of the tokens are padding
# remaining arguments
# same as above
x = f(a)  # unchanged
return [...xs, y]
foo(...args)
f(x...)
"..."
print("rest unchanged ...")
# value is unchanged
# Loading...
log("Loading ...")
## Other
# keep the order
}
int f(int a, ...);
    ...args,
...rest
#include <rest.h>
- rest
# 1. ...first
#!/bin/sh
% of the total
""".strip().split("\n")


@pytest.mark.parametrize("line", LEFT_OUT)
def test_a_line_that_stands_for_code_left_out_is_found(line: str) -> None:
    assert is_omission(line)
    assert is_omission(f"\t    {line}  ")


@pytest.mark.parametrize("line", CODE)
def test_a_line_of_code_or_a_comment_of_its_own_is_none(line: str) -> None:
    assert not is_omission(line)


def test_a_lone_ellipsis_is_a_statement_of_python() -> None:
    assert not is_omission("    ...", language="python")
    assert is_omission("    # ...", language="python")
    assert is_omission("    ...", language="julia")
