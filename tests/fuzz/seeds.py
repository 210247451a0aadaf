#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files to begin with, small and of every kind that is read: usage seeds.py RECLAB OUT. RECLAB exports the weights and states; presets and
samples are those of this checkout. Files already there stay."""
import io
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import wave
import zipfile

checkout = pathlib.Path(__file__).resolve().parents[2]


def npy(descr, shape, data, fortran=False, version=1):
    text = "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (descr, fortran, ''.join('%d,' % s for s in shape))
    header = text.encode()
    header += b' ' * (63 - (len(header) + 10) % 64) + b'\n'
    size = struct.pack('<H' if version == 1 else '<I', len(header))
    return b'\x93NUMPY' + bytes([version, 0]) + size + header + data


def npz(members, method=zipfile.ZIP_STORED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', method) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return out.getvalue()


def safetensors(entries, more=None):
    header, data = dict(more or {}), b''
    for name, dtype, shape, values in entries:
        header[name] = {'dtype': dtype, 'shape': shape, 'data_offsets': [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    return struct.pack('<Q', len(text)) + text + data


def main(reclab, out):
    def keep(target, name, data):
        folder = out / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())

    six = struct.pack('<6d', 1, 2, 3, 4, 5, 6)
    arrays = [('<f8', (3, 2), six, False, 1), ('<f8', (3, 2), six, True, 2), ('>f8', (6,), six, False, 3), ('<f4', (4,), six[:16], False, 1),
              ('<f2', (2, 2), six[:8], True, 1), ('|b1', (5,), b'\1\0\1\0\1', False, 1), ('<i8', (2, 1, 3), six, True, 1),
              ('<c16', (3,), six, False, 1), ('>c8', (2,), six[:16], True, 1), ('|u1', (0,), b'', False, 1), ('<i2', (), six[:2], False, 1)]
    for i, array in enumerate(arrays):
        data = npy(*array)
        keep('npy', f'{i}', data)
        keep('npz', f'stored{i}', npz([('input.npy', data)]))
        keep('npz', f'deflated{i}', npz([('a.npy', data), ('b.npy', data)], zipfile.ZIP_DEFLATED))
        keep('sequence', f'npy{i}', data)
        keep('sequence', f'npz{i}', npz([('input.npy', data), ('time.npy', npy('<f8', (3,), six[:24]))]))
    keep('sequence', 'target', npz([('input.npy', npy('<f8', (3, 2), six)), ('time.npy', npy('<f8', (3,), six[:24])),
                                    ('target.npy', npy('<i8', (3, 1), struct.pack('<3q', 0, 1, 1))),
                                    ('classes.npy', npy('<i8', (), struct.pack('<q', 2))), ('mask.npy', npy('<f8', (3,), six[:24]))]))
    for i, entries in enumerate([[('a', 'F64', [3, 2], six)], [('a', 'F32', [2], six[:8]), ('param/b', 'BF16', [2, 2], six[:8]), ('c', 'BOOL', [1], b'\1')],
                                 [('x', 'I64', [1], six[:8]), ('y', 'U8', [0, 3], b'')]]):
        keep('safetensors', f'{i}', safetensors(entries))
    keep('safetensors', 'metadata', safetensors([('w', 'F16', [4], six[:8])], {'__metadata__': {'format': 'pt'}}))

    tables = ['a,b\n1,2\n3,4\n', 't;x\n0;1,5\n1;2,5\n', 'date\tv\n2024-05-17\t1\n2024-05-18T12:30:15.25Z\t2\n', '# x y\n1 2\n3 4\n',
              'sep=;\r\n"a ""q""";b\r\n1;2\r\n', '1e-400\n0x10\n1e999\n', '\ufefftime (s),x\n0,NaN\n1,inf\n', 'a\r1\r2\r', 'x,y\n"1,234",2\n,\n',
              'year,month,v\n1700,1,3\n1700,2,4\n', ',a,b\nr1,1,2\nr2,3,4\n', '1|2\n3|4\n', '2024-05-17T10:00+02:00,1\n2024/05/18 11:00,2\n',
              "na,1\n--,2\n1'000,3\n", 'a,b\n1,2\n3,4\n\n\n\n']
    for i, text in enumerate(tables):
        keep('table', f'{i}', text)
        keep('sequence', f'table{i}', text)
    keep('table', 'utf16-le', '\ufeffa;b\n1;2\n'.encode('utf-16-le'))
    keep('table', 'utf16-be', '\ufeffa;b\n1;2\n'.encode('utf-16-be'))
    for sample in (checkout / 'resources/samples').glob('*.csv'):
        keep('table', sample.name, sample.read_bytes()[:1500])

    for preset in (checkout / 'presets').glob('*/*.json'):
        keep('preset', preset.name, preset.read_bytes())
    for session in (checkout / 'tests/app/sessions').glob('*/*.reclab'):
        keep('session', session.parent.name + '-' + session.name, session.read_bytes())
    for lesson in (checkout / 'resources/lessons').glob('*/lesson.md'):
        keep('lesson', lesson.parent.name, lesson.read_bytes())
    given = [{'given': '44', 'right': False, 'at': '2026-11-28T10:00:00Z'}, {'given': 'reclab run gru view pins=1', 'right': True}]
    keep('answers', 'two', json.dumps({'reclab answers': 1, 'name': 'Ada', 'lessons': {'state': {'product/1': given, 'span/1': given[:1]}, 'gates': {}}}))
    keep('cache', 'pace', json.dumps({'machine': 'x', 'yardstick_seconds': {'cpu': [0.01, 0.02]}}))

    for width in (1, 2, 3):
        for channels in (1, 2):
            for rate in (1, 8000):
                with io.BytesIO() as out_bytes:
                    with wave.open(out_bytes, 'wb') as sound:
                        sound.setparams((channels, width, rate, 4, 'NONE', ''))
                        sound.writeframes(bytes(range(4 * channels * width)))
                    keep('sound', f'wav{width}{channels}{rate}', out_bytes.getvalue())
    common = struct.pack('>4sIHIHH8s', b'COMM', 18, 1, 4, 16, 0x400b, bytes.fromhex('fa00000000000000'))
    keep('sound', 'aiff', struct.pack('>4sI4s', b'FORM', 4 + len(common) + 24, b'AIFF') + common + struct.pack('>4sIQ4h', b'SSND', 16, 0, 1, -2, 3, -4))
    keep('sound', 'opus', (checkout / 'tests/engine/sequence/a440.opus').read_bytes())
    keep('sound', 'flac', bytes.fromhex('664c6143000000221000100000001200001201f402f00000000881db33eea933ed13b96db91f20a54ea384000028200000007265666572656e'
                                        '6365206c6962464c414320312e342e32203230323231303232' '00000000fff864880007fd03000ee0ee080800fc2d03'))

    torch = [('rnn.weight_ih_l0', [4, 1]), ('rnn.weight_hh_l0', [4, 4]), ('rnn.bias_ih_l0', [4]), ('rnn.bias_hh_l0', [4])]
    keep('weights', 'torch', safetensors([(name, 'F32', shape, bytes(4 * (shape + [1])[0] * (shape + [1])[1])) for name, shape in torch]))
    for model, more in (('elman', []), ('lru', ['--set', 'state=3']), ('transformer', [])):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([reclab, 'run', model, '--set', 'width=4', *more, '--task', 'noise', '--length', '4', '--record', 'param', '--export', folder + '/x'],
                           check=True, stdout=subprocess.DEVNULL)
            keep('weights', model, pathlib.Path(folder, 'x/trace.npz').read_bytes())
            keep('state', model, pathlib.Path(folder, 'x/state.npz').read_bytes())


if __name__ == '__main__':
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
