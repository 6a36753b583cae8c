#!/bin/sh
# run.sh CODE_SERVER_FOLDER: the tests in a real VS Code, from the project's root, with `specd` on the PATH. Skips with
# the reason where there is no browser, or where code-server cannot be had here. SCREENSHOTS=FOLDER keeps pictures;
# PATIENCE=4 waits four times as long for everything, on a machine that has more to do.
set -eu
here=editors/vscode/test/real

skip() {
    echo "SKIPPED the tests in a real VS Code: $1"
    exit 0
}

chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[ -n "$chromium" ] || skip "no Chromium was found; install one, or name it: make test-vscode CHROMIUM=/path/to/chromium"
timeout 480 sh "$here/install-code-server.sh" "$1" || skip "code-server could not be set up (see above)"
[ -z "${SCREENSHOTS:-}" ] || SCREENSHOTS=$(mkdir -p "$SCREENSHOTS" && cd "$SCREENSHOTS" && pwd)
vsix=$(ls -t dist/specd-*.vsix | head -1)
echo "testing $vsix in code-server with $chromium (about 6 minutes)"

root=$PWD
cd editors/vscode
CODE_SERVER=$(cd "$root" && cd "$1" && pwd) SPECD=$(command -v specd) VSIX=$root/$vsix CHROMIUM=$chromium \
    node --test --test-concurrency=1 --test-reporter=spec out/test/real/
