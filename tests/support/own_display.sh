#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Runs a test of a window on a virtual display of its own, so that such tests can go side by side: a display has one keyboard focus.
# RECLAB_DISPLAY=shared, or no Xvfb: on the display that there is, where only one test may run at a time.
set -u
unset WAYLAND_DISPLAY
if [ "${RECLAB_DISPLAY:-own}" = shared ] || ! command -v Xvfb >/dev/null; then exec "$@"; fi
folder=$(mktemp -d)
mkfifo "$folder/display"
Xvfb -displayfd 3 -screen 0 1920x1200x24 -nolisten tcp 3>"$folder/display" >"$folder/said" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; rm -r "$folder"' EXIT
if ! read -r number <"$folder/display"; then
  echo "Xvfb gave no display: $(cat "$folder/said")" >&2
  exit 1
fi
DISPLAY=":$number" "$@"
exit $?
