#!/bin/sh
# Fetch the packages that the bundled model's corpus adds to ../shared/corpus, into a folder:  sh mini/sources.sh DIR
# Needs npm and apt-get (with deb-src entries for the last line). specd.mini.corpus takes only what is permissively licensed
# by its own metadata, and lists it in sources.json; preact, date-fns, express, leveldb and commons-collections4 are held out.
set -eu
mkdir -p "$1" && cd "$1"
for p in three rxjs express lodash acorn webpack eslint async svelte mocha mathjs ramda chai undici fastify leaflet immutable \
    preact date-fns d3-array d3-scale d3-shape d3-selection rollup @babylonjs/core vite ioredis knex sequelize; do
    npm pack --silent "$p"
done
apt-get download libabsl-dev libspdlog-dev catch2 libcli11-dev
apt-get source --download-only guava-libraries libcommons-lang3-java jackson-core libcommons-collections4-java leveldb
