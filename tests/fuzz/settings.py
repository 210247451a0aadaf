#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Starts the window, without a screen, with settings whose layouts are sealed but wrong: usage settings.py RECURRENCE_LAB SECONDS [SEED].
A start that dies must be the only one: the next start with the same settings lives. Settings that kill twice stay in build/fuzz/found."""
import base64
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
alive_after = 4.0  # seconds: the layout has been restored by then, or the process has died of it


def checksum(data):
    """qChecksum: CRC-16 of ISO 3309."""
    crc = 0xffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x8408 if crc & 1 else 0)
    return crc ^ 0xffff


def sealed(state):
    return b'%d:%s' % (checksum(state), base64.b64encode(state))


def mutated(state, random_):
    data = bytearray(state)
    for _ in range(random_.choice((1, 1, 2, 4, 16))):
        at = random_.randrange(len(data))
        kind = random_.randrange(4)
        if kind == 0:
            data[at] = random_.randrange(256)
        elif kind == 1:
            data[at:at + 4] = random_.choice((b'\xff\xff\xff\xff', b'\x00\x00\x00\x00', b'\x7f\xff\xff\xff', b'\x80\x00\x00\x00'))
        elif kind == 2:
            del data[at:at + random_.randrange(1, 40)]
        else:
            data[at:at] = data[at // 2:at // 2 + random_.randrange(1, 40)]
    return bytes(data) or b'\0'


def survives(program, home):
    """None, or how the process ended."""
    environment = {'HOME': str(home), 'QT_QPA_PLATFORM': 'offscreen', 'LIBGL_ALWAYS_SOFTWARE': '1', 'PATH': '/usr/bin:/bin', 'XDG_RUNTIME_DIR': str(home)}
    process = subprocess.Popen(['nice', program, 'elman', '--task', 'noise', '--length', '20', '--set', 'width=4'], env=environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return process.wait(alive_after)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def main(program, seconds, seed):
    found = here.parents[1] / 'build/fuzz/found/settings'
    found.mkdir(parents=True, exist_ok=True)
    random_ = random.Random(seed)
    text = (here / 'layout.ini').read_bytes()
    states = {m[1]: base64.b64decode(m[2]) for m in re.finditer(rb'(\w+)=@ByteArray\(\d+:([\w+/=]+)\)', text)}
    end, starts, died, failures = time.monotonic() + seconds, 0, 0, 0
    while time.monotonic() < end:
        changed = text
        if starts > 0:  # the first are the settings as they are
            for name in random_.sample(sorted(states), random_.randint(1, len(states))):
                state = sealed(mutated(states[name], random_))
                changed = re.sub(rb'(?m)^%s=.*$' % name, lambda _: name + b'=@ByteArray(' + state + b')', changed)
        home = pathlib.Path(tempfile.mkdtemp())
        kept = home / '.config/recurrence-lab/recurrence-lab.ini'
        kept.parent.mkdir(parents=True)
        kept.write_bytes(changed)
        starts += 1
        first = survives(program, home)
        if first is not None:
            died += 1
            again = survives(program, home)
            if again is not None:
                failures += 1
                (found / f'{starts}.ini').write_bytes(changed)
                print(f'settings: died twice ({first}, {again}) of {found / f"{starts}.ini"}')
        shutil.rmtree(home, ignore_errors=True)
    print(f'settings: {starts} starts, {died} died once, {failures} failures')
    return 1 if failures else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1))
