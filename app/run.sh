#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Installs what is missing, builds, and opens the lab on the sunspot series; without a display it draws every panel into out/.
# Arguments go to recurrence-lab:  ./app/run.sh mamba --task copy
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
called_from=$OLDPWD
. app/prepare.sh

install_packages engine desktop
build release recurrence-lab
lab=$PWD/build/release/bin/recurrence-lab

# The shipped series and the LSTM, where the arguments name no other.
arguments=("$@")
case " $* " in *" --input"* | *" --task"*) ;; *) arguments=(--input "$PWD/resources/samples/sunspots.csv" "$@") ;; esac
case "${1:-}" in "" | -*) arguments=(lstm "${arguments[@]}") ;; esac

if [ -n "${DISPLAY:-}" ]; then
  cd "$called_from"
  step="recurrence-lab ended with an error"
  "$lab" "${arguments[@]}"
else
  echo "No display: drawing the figures into out/"
  mkdir -p out
  out=$PWD/out
  cd "$called_from"
  log=$out/recurrence-lab.log step="drawing the figures"
  LIBGL_ALWAYS_SOFTWARE=1 xvfb-run -a -s "-screen 0 1920x1200x24" "$lab" "${arguments[@]}" --figures "$out" --format png </dev/null >"$log" 2>&1
  ls -1 "$out"/*.png
fi
step="" log=""
