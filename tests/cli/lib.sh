# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests of this folder: `is`, `says` and the like count, and
# `finish` prints `N passed, N failed, N skipped`. $dir is a scratch directory; $memsim
# runs with the stand-in of fake.c for its libraries.

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${MEMSIM_BUILD:-$root/build}
memsim=$build/bin/memsim
dir=$(mktemp -d "${TMPDIR:-/tmp}/memsim-cli.XXXXXX")
trap 'chmod -R u+rwX "$dir"; rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0
unset NO_COLOR MEMSIM_SESSION LD_PRELOAD FAKE RANK LOCAL_RANK

if ! [ -x "$memsim" ]; then
    echo "$memsim is not built"
    echo "0 passed, 1 failed"
    exit 1
fi

# The stand-in, of fake.c. tests/run has built it.
[ -n "${MEMSIM_BUILD-}" ] || make -s -C "$root" O="$build" standin || exit 1
cp -r "$build/tests/cli/lib" "$dir/lib"
mkdir "$dir/tmp"
export MEMSIM_CHECK_JSON=1 # see schema_assert
export MEMSIM_LIBDIR=$dir/lib TMPDIR=$dir/tmp XDG_CACHE_HOME=$dir/cache

pass() {
    passed=$((passed + 1))
}

fail() {
    failed=$((failed + 1))
    echo "FAIL: $*"
    sed 's/^/  out: /' "$dir/out"
    sed 's/^/  err: /' "$dir/err"
}

skip() {
    skipped=$((skipped + 1))
    echo "SKIP: $*"
}

# run ARGUMENT...: memsim with them; $status, $dir/out, $dir/err
run() {
    status=0
    "$memsim" "$@" >"$dir/out" 2>"$dir/err" </dev/null || status=$?
}

# is WHAT GOT WANT
is() {
    if [ "$2" = "$3" ]; then pass; else fail "$1: '$2', not '$3'"; fi
}

# says FILE TEXT: FILE (out or err) has a line with TEXT
says() {
    if grep -qF -e "$2" "$dir/$1"; then pass; else fail "$1 lacks '$2'"; fi
}

silent() {
    if [ -s "$dir/$1" ]; then fail "$1 is not empty"; else pass; fi
}

lines() {
    is "lines of $1" "$(wc -l <"$dir/$1")" "$2"
}

# wait_for FILE: until it is there, 20 s at most
wait_for() {
    for i in $(seq 400); do
        [ -e "$1" ] && return
        sleep 0.05
    done
    fail "$1 did not come"
}

# leaves_nothing: no run directory is left in TMPDIR
leaves_nothing() {
    is "left behind" "$(ls "$TMPDIR")" ""
}

finish() {
    echo "$passed passed, $failed failed, $skipped skipped"
    [ "$failed" = 0 ]
    exit
}
