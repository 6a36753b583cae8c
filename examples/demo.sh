#!/usr/bin/env bash
# The main job on a real file: two edits of a copy of shapes.jl by the bundled model. Run it with `make demo`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
model=${SPECD_DEMO_MODEL:-}
work=$(mktemp -d)
export XDG_RUNTIME_DIR="$work/run" XDG_STATE_HOME="$work/state" XDG_CONFIG_HOME="$work/config"
mkdir -m 700 "$XDG_RUNTIME_DIR"
trap 'specd stop >/dev/null 2>&1 || true; rm -rf "$work"' EXIT
cp "$here/shapes.jl" "$work/shapes.jl"
cd "$work"

if [ -n "$model" ]; then
    mkdir "$XDG_CONFIG_HOME" "$XDG_CONFIG_HOME/specd"
    printf 'model = "%s"\n' "$(cd "$model" && pwd)" > "$XDG_CONFIG_HOME/specd/config.toml"
fi

show() { printf '\n$ %s\n' "$1"; }

show 'specd edit shapes.jl --instruction "rename Rect to Rectangle" --diff'
specd edit shapes.jl --instruction "rename Rect to Rectangle" --diff
show 'specd edit shapes.jl --instruction "rename Rect to Rectangle"        # the same, written to the file'
specd edit shapes.jl --instruction "rename Rect to Rectangle"
show 'specd edit shapes.jl --at 60 --instruction "rename best to winner" --diff'
specd edit shapes.jl --at 60 --instruction "rename best to winner" --diff
grep -q 'struct Rectangle <: Shape' shapes.jl

cat <<'E2'

What to try next:
  specd edit YOUR_FILE --at LINE -i "rename old_name to new_name" --diff      one definition of your own
  specd edit --help                                                           everything it can do
  specd status                                                                the warm daemon, its model and jobs
  specd doctor                                                                what this machine can run

The bundled model does mechanical edits. For a real one, put two lines into the settings file that `specd doctor` names:
  model = "Qwen/Qwen3-4B"
  dflash = "z-lab/Qwen3-4B-DFlash-b16"
E2
