#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# For a machine with a CUDA device: whether it computes what the CPU does, and what it takes.
#   run.sh fetch         into .deps, beside this checkout's files, what a machine without Debian's packages compiles against
#   run.sh pack [MARCH]  builds here for such a machine (x86-64-v3, sm_90) and packs the programs into .deps, so that nothing is compiled there
#   run.sh [check|time]  there: the cases of the backend, every primitive and preset on both devices, compute-sanitizer; the benchmark's rows G1 to
#                        G7 beside their peers where python3 has them, and what `auto` chooses a device by. Both without a word.
# Logs go to $OUT, or build/gpu-report. Nothing that is timed runs beside anything else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
deps=$PWD/.deps packed=$PWD/.deps/packed.tar.xz
programs=(reclab gpu_test_backends reclab-bench reclab-device-bench)

fetch() {
  mkdir -p "$deps"
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  cd "$folder"
  apt-get download libeigen3-dev nlohmann-json3-dev libcli11-dev libfftw3-dev libfftw3-double3 libfftw3-single3 zlib1g-dev zlib1g
  for package in *.deb; do dpkg -x "$package" "$deps"; done
  # Debian's link to zlib is absolute; here it stays inside the folder.
  for link in "$deps"/usr/lib/*/libz.so; do ln -sf "../../../lib/$(uname -m)-linux-gnu/$(basename "$(readlink "$link")")" "$link"; done
  # Only what is compiled against: documents and the other precisions stay out.
  rm -rf "$deps"/usr/share/doc "$deps"/usr/share/man "$deps"/usr/share/info "$deps"/usr/bin
  find "$deps" -name 'libfftw3l*' -delete -o -name 'libfftw3q*' -delete
}

configured() {  # configured FOLDER OPTION...
  local folder=$1; shift
  local generator=(); command -v ninja > /dev/null && generator=(-G Ninja)
  mkdir -p "$folder"
  cmake -S . -B "$folder" "${generator[@]}" -DRECLAB_DESKTOP=OFF -DRECLAB_WERROR=OFF "$@" > "$folder/configure.log" 2>&1
  grep -q 'CUDA compiler identification' "$folder/configure.log" || { echo "no CUDA compiler was found; put nvcc on the PATH" >&2; exit 1; }
}
built() {
  cmake --build "$1" -j "$(nproc)" --target "${programs[@]}" > "$1/build.log" 2>&1 || { grep -n -A5 'error' "$1/build.log" | head -60; exit 1; }
}

pack() {
  configured build/packed -DRECLAB_NATIVE=OFF -DCMAKE_CXX_FLAGS="-march=${1:-x86-64-v3}" -DCMAKE_CUDA_ARCHITECTURES=90-real
  built build/packed
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  mkdir -p "$folder/bin" "$folder/lib" "$deps"
  for program in "${programs[@]}"; do strip -o "$folder/bin/$program" "build/packed/bin/$program"; done
  # Of the shared libraries all but those of the compiler and the C library, which every machine has.
  ldd "$folder/bin/reclab" | awk '$3 ~ /^\// {print $3}' | grep -vE '/(libc|libm|libgcc_s|libstdc\+\+|libpthread|libdl|librt)\.so' |
    while read -r library; do cp -L "$library" "$folder/lib/"; done
  tar c -C "$folder" bin lib | xz -T0 -4 --lzma2=dict=96MiB > "$packed.new"
  mv "$packed.new" "$packed"
  ls -l "$packed"
}

case ${1:-} in
  fetch) fetch; exit;;
  pack) shift; pack "$@"; exit;;
esac

out=${OUT:-$PWD/build/gpu-report}
mkdir -p "$out"
export PATH=$PATH:/usr/local/cuda/bin RECLAB_PRESETS=$PWD/presets
# cuBLAS and cuFFT of the toolkit, or those that came with a package of Python.
LD_LIBRARY_PATH=$(ls -d /usr/local/cuda/lib64 "$(python3 -c 'import site; print(site.getsitepackages()[0])' 2> /dev/null)"/nvidia/*/lib 2> /dev/null |
  tr '\n' ':' || true)${LD_LIBRARY_PATH:-}
if [[ -f $packed ]]; then
  mkdir -p build/packed
  tar xJf "$packed" -C build/packed
  bin=build/packed/bin
  LD_LIBRARY_PATH=$PWD/build/packed/lib:$LD_LIBRARY_PATH
else
  prefix=()
  [[ -d $deps ]] && prefix=(-DCMAKE_PREFIX_PATH="$deps/usr" -DCMAKE_INCLUDE_PATH="$deps/usr/include"
    -DCMAKE_LIBRARY_PATH="$deps/usr/lib/$(uname -m)-linux-gnu;$deps/lib/$(uname -m)-linux-gnu")
  configured build/gpu "${prefix[@]}"
  built build/gpu
  bin=build/gpu/bin
fi
export LD_LIBRARY_PATH out bin

part() {  # part NAME SECONDS COMMAND...: runs it to the end, says how it ended, remembers a failure
  local name=$1 limit=$2 begin=$SECONDS status=0; shift 2
  timeout -k 5 "$limit" "$@" > "$out/$name.log" 2>&1 || status=$?
  echo "$name: exit $status, $((SECONDS - begin)) s"
  [[ $status == 0 ]] || echo "$name" >> "$out/failed"
}
export -f part
rm -f "$out/failed"
nvidia-smi > "$out/device.txt" 2>&1 || true

if [[ ${1:-time} == time ]]; then
  part device 60 "$bin/reclab-device-bench" "$out/device.json"
  peers=(); python3 -c 'import torch' 2> /dev/null && peers=(--peers python3)
  for row in G1 G2 G3 G5 G6 G4 G7; do part "$row" 60 "$bin/reclab-bench" "${peers[@]}" "$row"; done
  grep -hv '^{' "$out"/device.log "$out"/G?.log || true
fi
if [[ ${1:-check} == check ]]; then
  part parity 120 "$bin/gpu_test_backends"
  if grep -q SKIP "$out/parity.log"; then cat "$out/parity.log"; exit 1; fi
  # All products and transforms by our own kernels, then all that can be by libraries.
  RECLAB_CUDA_PRODUCTS=own RECLAB_CUDA_TRANSFORMS=own part parity-own 120 "$bin/gpu_test_backends"
  RECLAB_CUDA_PRODUCTS=cublas RECLAB_CUDA_TRANSFORMS=cufft part parity-libraries 120 "$bin/gpu_test_backends"
  compare() { part "compare-$1" 120 "$bin/reclab" check-device --json "$@"; }
  export -f compare
  { for primitive in attention convolution delta diagonal independent light linear outer pooling segments selective step; do echo "$primitive"; done
    "$bin/reclab" list --json | grep -o '^    "id": "[^"]*"' | cut -d'"' -f4 | paste -d' ' - -; } |
    xargs -L 1 -P "$(nproc)" bash -c 'compare "$@"' _
  if command -v compute-sanitizer > /dev/null; then
    # A case takes up to a minute: those of the families with kernels of blocks, a few at once.
    for tool in memcheck racecheck; do
      for case in softmax selective 'convolution: long' 'gated: the memory in chunks' 'product: matrix' 'diagonal: the recurrence'; do
        printf '%s\0%s\0' "$tool" "$case"
      done
    done | xargs -0 -n 2 -P 4 bash -c 'part "$1-${2%%[: ]*}" 240 compute-sanitizer --tool "$1" --error-exitcode 9 "$bin/gpu_test_backends" "$2"' _
  fi
fi
if [[ -s $out/failed ]]; then echo "failed: $(sort "$out/failed" | tr '\n' ' ')"; exit 1; fi
