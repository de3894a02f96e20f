#!/bin/sh
# Finds or installs a cargo that can build the project's own tool, and prints its path.
#
# The Makefile calls this, so that `make run` works on a machine without any Rust. All else that is
# needed is found or installed by `cargo xtask setup`. Messages go to standard error.
set -eu

VERSION=1.96
PACKAGES="cargo-web rustc-web rust-web-src lld qemu-system-x86 e2fsprogs gcc libc6-dev"

toolchain_cargo() {
    for cargo in "${RUSTUP_HOME:-$HOME/.rustup}"/toolchains/"$VERSION"*/bin/cargo; do
        if [ -x "$cargo" ]; then
            echo "$cargo"
            return 0
        fi
    done
    return 1
}

# Succeeds if the program $1 is a cargo of our version or a later one.
is_recent() {
    found=$("$1" --version 2>/dev/null | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p')
    [ -n "$found" ] && [ "$found" -ge "${VERSION#1.}" ]
}

system_cargo() {
    for cargo in "$(command -v cargo || true)" /usr/bin/cargo; do
        if [ -n "$cargo" ] && is_recent "$cargo"; then
            echo "$cargo"
            return 0
        fi
    done
    return 1
}

with_rustup() {
    rustup=$(command -v rustup || echo "$HOME/.cargo/bin/rustup")
    [ -x "$rustup" ] || return 1
    echo "==> installing Rust $VERSION with rustup" >&2
    "$rustup" toolchain install "$VERSION" --profile minimal \
        --component rust-src,rustfmt,clippy >&2 || return 1
    toolchain_cargo
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

with_apt() {
    command -v apt-get >/dev/null || return 1
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null || return 1
    echo "==> installing $1 with apt-get" >&2
    # shellcheck disable=SC2086 # a list of packages
    { as_root apt-get update -q && as_root apt-get install -q -y --no-install-recommends $1; } >&2
}

if ! command -v cc >/dev/null && ! with_apt "gcc libc6-dev"; then
    echo "A C compiler is missing (cargo links with it). Please run first, as root:" >&2
    echo "    apt-get update && apt-get install -y $PACKAGES" >&2
    exit 1
fi
# Says why nothing is seen for a while.
announce() {
    if [ ! -e "${CARGO_TARGET_DIR:-target}/debug/xtask" ]; then
        echo "==> building the project's own tool; a first build takes two to five minutes in all" >&2
    fi
}

if toolchain_cargo || system_cargo || with_rustup; then
    announce
    exit 0
fi
if with_apt "$PACKAGES" && system_cargo; then
    announce
    exit 0
fi
echo "There is no Rust $VERSION here and it cannot be installed. Please run first, as root:" >&2
echo "    apt-get update && apt-get install -y $PACKAGES" >&2
exit 1
