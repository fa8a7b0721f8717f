#!/usr/bin/env bash
# Packs bringup-node as a VM extension, one zip a system, into the extension folder of the target
# directory. Where a compiler for a processor or for Windows is missing, says so in one line and
# leaves that out.
set -euo pipefail

cd "$(dirname "$0")/../../.."
target=${CARGO_TARGET_DIR:-target}
# The platform wants four numbers.
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1).0
out=$target/extension
mkdir -p "$out"

has_target() {
	[ -d "$(rustc --print=target-libdir --target "$1")" ] || rustup target add "$1" 2>/dev/null
}

build() {
	cargo build --quiet --locked --release --package bringup-node --target "$1" >&2
}

pack() {
	local system=$1 name=$2
	shift 2
	cargo run --quiet --locked --package bringup-node --example extension_package -- \
		"$system" "$out/$name-$version.zip" "$@"
}

amd64=x86_64-unknown-linux-musl
arm64=aarch64-unknown-linux-musl
windows=x86_64-pc-windows-gnu

programs=()
for pair in "amd64 $amd64" "arm64 $arm64"; do
	read -r processor triple <<<"$pair"
	if ! has_target "$triple"; then
		echo "Linux on $processor is left out; missing: rustup target add $triple" >&2
		continue
	fi
	# The linker that comes with the compiler knows every processor.
	export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld
	build "$triple"
	programs+=("$processor=$target/$triple/release/bringup-node")
done
if [ ${#programs[@]} -gt 0 ]; then
	pack linux BringupNodeLinux "${programs[@]}"
fi

if ! has_target "$windows"; then
	echo "Windows is left out; missing: rustup target add $windows" >&2
elif ! command -v x86_64-w64-mingw32-gcc >/dev/null; then
	echo "Windows is left out; missing: a linker (Debian: gcc-mingw-w64-x86-64)" >&2
else
	build "$windows"
	pack windows BringupNodeWindows "amd64=$target/$windows/release/bringup-node.exe"
fi
