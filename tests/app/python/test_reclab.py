# SPDX-License-Identifier: GPL-3.0-or-later
"""reclab.py against the command line, against NumPy's own readers, and against loops in NumPy. Run by tests/app/python/run.sh."""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import unittest

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "app/python"))
import reclab  # noqa: E402

PROGRAM = os.environ["RECLAB"]
LAB = reclab.Lab(PROGRAM)


def tearDownModule():
    LAB.close()


def line(*words, folder=None):
    done = subprocess.run([PROGRAM, *map(str, words)], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lstm_by_hand(weights, x):
    """Hidden states of one layer, gates in the order input, forget, cell, output, as torch.nn.LSTM documents."""
    sigmoid = lambda a: 1 / (1 + numpy.exp(-a))
    width = weights["0/weight_hh"].shape[1]
    h, c, outputs = numpy.zeros(width), numpy.zeros(width), []
    for row in x:
        i, f, g, o = numpy.split(weights["0/weight_ih"] @ row + weights["0/bias_ih"] + weights["0/weight_hh"] @ h + weights["0/bias_hh"], 4)
        c = sigmoid(f) * c + sigmoid(i) * numpy.tanh(g)
        h = sigmoid(o) * numpy.tanh(c)
        outputs.append(h)
    return numpy.array(outputs)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="reclab-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.x = numpy.random.default_rng(1).normal(size=(30, 2))

    def same(self, found, wanted):
        self.assertEqual(set(found), set(wanted))
        for key in wanted:
            a, b = numpy.asarray(found[key]), numpy.asarray(wanted[key])
            self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype), key)
            self.assertEqual(a.tobytes(), b.tobytes(), key)

    def refused(self, text, call, *arguments, **more):
        with self.assertRaises(reclab.Error) as caught:
            call(*arguments, lab=LAB, **more)
        self.assertIn(text, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        return caught.exception


class Runs(Case):
    def test_given_weights_and_input_give_what_a_loop_in_numpy_gives(self):
        draw = numpy.random.default_rng(2)
        weights = {"0/weight_ih": draw.normal(size=(16, 2)), "0/weight_hh": draw.normal(size=(16, 4)) / 2,
                   "0/bias_ih": draw.normal(size=16), "0/bias_hh": draw.normal(size=16)}
        run = reclab.run("lstm", self.x, weights=weights, lab=LAB)
        self.assertLess(numpy.abs(run["output"] - lstm_by_hand(weights, self.x)).max(), 1e-13)
        self.same(run.weights, weights)
        self.assertEqual(run["state/0/c"].shape, (30, 4))

    def test_it_is_the_run_of_the_command_line(self):
        numpy.savez(self.folder / "in.npz", input=self.x)
        run = reclab.run("gru", self.x, width=5, seed=3, lab=LAB)
        line("run", "gru", "--input", "in.npz", "--standardise", "no", "--set", "width=5", "--seed", 3, "--export", "out", folder=self.folder)
        self.same(run, reclab.open_run(self.folder / "out"))
        self.same(run.state, numpy.load(self.folder / "out/state.npz"))

    def test_targets_masks_classes_times_and_standardisation(self):
        mask = numpy.zeros(30)
        mask[20:] = 1
        target = numpy.random.default_rng(3).normal(size=(30, 2))
        run = reclab.run("elman", self.x, target=target, mask=mask, loss="task", width=3, lab=LAB)
        wanted = 0.5 * ((run["output"] - target)[20:] ** 2).sum(axis=1).mean()
        self.assertAlmostEqual(run.loss, wanted, delta=1e-12 * max(1, wanted))
        labels = numpy.arange(30) % 4
        run = reclab.run("elman", self.x, target=labels, classes=4, loss="task", width=3, lab=LAB)
        z = run["output"] - run["output"].max(axis=1, keepdims=True)
        wanted = (numpy.log(numpy.exp(z).sum(axis=1)) - z[numpy.arange(30), labels]).mean()
        self.assertAlmostEqual(run.loss, wanted, delta=1e-12)
        time = numpy.cumsum(numpy.random.default_rng(4).uniform(0.5, 2, size=30))
        run = reclab.run("cfc", self.x, time=time, lab=LAB)
        self.assertTrue((run["time"] == time).all())
        run = reclab.run("elman", self.x + 5, standardise=True, width=3, lab=LAB)
        self.assertLess(abs(run["input"].mean(axis=0)).max(), 1e-12)

    def test_a_state_continues_a_run_to_the_bit(self):
        whole = reclab.run("lstm", self.x, width=4, lab=LAB)
        first = reclab.run("lstm", self.x[:11], width=4, lab=LAB)
        rest = reclab.run("lstm", self.x[11:], width=4, state=first.state, lab=LAB)
        self.assertTrue((numpy.concatenate([first["output"], rest["output"]]) == whole["output"]).all())

    def test_a_run_that_is_saved_is_read_lazily_and_repeated_by_its_command(self):
        first = reclab.run("lstm", self.x, width=4, lab=LAB)
        run = reclab.run("lstm", self.x, weights=first, state=first.state, seed=2, lab=LAB)
        self.assertTrue((run["output"] != first["output"]).any())
        run.save(self.folder / "kept")
        again = reclab.open_run(self.folder / "kept", LAB)
        self.same(again, run)
        self.assertIsInstance(again["output"], numpy.memmap)
        self.assertEqual(again.command, run.command)
        line(*shlex.split(run.command)[1:], "--export", "repeated", folder=self.folder / "kept")
        self.same(reclab.open_run(self.folder / "kept/repeated"), run)
        self.assertEqual(set(json.loads((self.folder / "kept/manifest.json").read_text())["files"]),
                         {"trace.npz", "state.npz", "input.npz", "weights.npz", "initial.npz"})
        with self.assertRaises(reclab.Error):
            run.save(self.folder / "kept")
        self.assertEqual([entry.name for entry in self.folder.iterdir()], ["kept"])

    def test_mistakes_are_a_sentence_and_the_process_stays(self):
        process = reclab.run("elman", self.x, lab=LAB) and LAB._process.pid
        self.refused("the nearest are lstm", reclab.run, "lstmm")
        self.refused("--widht", reclab.run, "lstm", widht=3)
        self.refused("belong to an input", reclab.run, "lstm", target=self.x)
        self.refused("input.npz", reclab.run, "lstm", numpy.full((3, 1), numpy.nan))
        self.refused("input.npz", reclab.run, "lstm", numpy.zeros((3, 2, 2)))
        self.refused("weights.npz", reclab.run, "lstm", self.x, weights={"0/weight_ih": numpy.zeros((3, 2))})
        self.assertEqual(self.refused("no text", reclab.run, "lstm", weights="no text").status, 2)
        self.assertEqual(reclab.run("elman", self.x, lab=LAB) and LAB._process.pid, process)

    def test_a_process_that_is_killed_is_said_and_another_one_begins(self):
        with reclab.Lab(PROGRAM) as lab:
            first = reclab.run("elman", self.x, lab=lab)
            lab._process.kill()
            lab._process.wait()
            self.same(reclab.run("elman", self.x, lab=lab), first)
            lab._process.stdin.write(b"{")  # what comes now is no request
            with self.assertRaises(reclab.Error):
                lab.ask(["run", "elman"])

    def test_threads_are_of_the_process_and_change_no_bit(self):
        with reclab.Lab(PROGRAM, threads=1) as lab:
            one = reclab.run("elman", self.x, lab=lab)
            tasks = f"/proc/{lab._process.pid}/task"
            alone = len(os.listdir(tasks)) if os.path.isdir(tasks) else None
        with reclab.Lab(PROGRAM, threads=40) as lab:
            self.same(reclab.run("elman", self.x, lab=lab), one)
            if alone is not None:
                self.assertEqual(len(os.listdir(f"/proc/{lab._process.pid}/task")), alone + 39)
        self.refused("threads", reclab.run, "elman", self.x, threads=2)
        with reclab.Lab(PROGRAM, threads=0) as lab, self.assertRaisesRegex(reclab.Error, "ended with status 2"):
            reclab.run("elman", self.x, lab=lab)

    def test_of_a_hyper_parameter_that_is_an_option_too_it_is_asked_which(self):
        both = set()
        for preset in reclab.presets(LAB):
            keys = {"--" + row["key"].replace("_", "-") for row in LAB.card(preset["id"])["hyper"]}
            both |= {(command, preset["id"], key) for command in ("run", "train", "evaluate") for key in keys & set(LAB.options(command))}
        self.assertIn(("train", "transformer", "--window"), both)
        for command, id, option in both:
            name = option[2:].replace("-", "_")
            if name not in ("target", "time"):  # of reclab.py's own arguments, `state` alone is told apart by its type
                self.refused(f'set={{"{name}"', getattr(reclab, command), id, **{name: 3})
            self.assertEqual(LAB.words(command, id, {}, {name: 3})[2:], ["--set", f"{name}=3"])
            self.assertEqual(LAB.words(command, id, {}, None, {name: 3})[2:], [option, "3"])

    def test_values_of_settings(self):
        words = LAB.words("run", "lstm", {"width": 8, "seed": 3, "trained": True, "standardise": False, "task_set": {"delay": 4},
                                          "record": ["output", "gate"], "device": None}, {"layers": 2})
        self.assertEqual(words, ["run", "lstm", "--set", "layers=2", "--set", "width=8", "--seed", "3", "--trained", "--standardise", "no",
                                 "--task-set", "delay=4", "--record", "output", "--record", "gate"])
        self.assertEqual(LAB.words("evaluate", "lstm", {"lengths": [10, 20], "with_": ["gru --trained"]})[2:],
                         ["--lengths", "10", "--lengths", "20", "--with", "gru --trained"])
        self.assertEqual(LAB.words("train", "lstm", {"lr": numpy.float64(1e-3), "trained": False})[2:], ["--lr", "0.001"])


class Others(Case):
    small = dict(width=4, task="adding", length=10, steps=3, batch=4, held_out=8)

    def test_a_training_is_that_of_the_command_line_and_runs(self):
        training = reclab.train("lstm", export=self.folder / "a", lab=LAB, **self.small)
        line(*LAB.words("train", "lstm", self.small), "--export", self.folder / "b")
        self.same(training.weights, reclab.Training(self.folder / "b").weights)
        self.same(training.history, numpy.load(self.folder / "b/history.npz"))
        run = reclab.run("lstm", task="adding", length=10, loss="task", weights=training, lab=LAB)
        self.same(run.weights, training.weights)
        further = reclab.train(resume=self.folder / "a", steps=5, lab=LAB)
        self.assertEqual(len(further.history["step"]), 5)

    def test_a_training_on_arrays_keeps_them_and_one_without_a_folder_leaves_none(self):
        x = numpy.sin(numpy.arange(200) / 5)
        training = reclab.train("gru", x, window=20, steps=2, batch=2, width=3, export=self.folder / "t", lab=LAB)
        self.assertTrue((self.folder / "t-input.npz").exists())
        self.assertEqual(len(reclab.train(resume=training.folder, steps=3, lab=LAB).history["step"]), 3)
        training = reclab.train("lstm", lab=LAB, **self.small)
        folder = training.folder
        self.assertTrue((folder / "training.json").exists())
        del training
        self.assertFalse(folder.parent.exists())

    def test_an_evaluation_is_that_of_the_command_line(self):
        settings = dict(width=4, task="adding", lengths=[10, 20], sequences=20)
        table = reclab.evaluate("lstm", lab=LAB, **settings)
        wanted = json.loads(line(*LAB.words("evaluate", "lstm", settings), "--json"))
        self.assertEqual(table.rows, wanted["rows"])
        self.assertEqual(table.about["metric"], wanted["metric"])
        self.assertEqual(set(table.where(by="length", model="lstm")["length"]), {10, 20})
        weights = reclab.run("lstm", width=4, task="adding", length=10, loss="task", seed=7, lab=LAB).weights
        other = reclab.evaluate("lstm", weights=weights, lab=LAB, **settings)
        self.assertNotEqual(other.rows, table.rows)
        self.assertIn("<td>", table._repr_html_())

    def test_a_sweep_has_a_row_a_cell_and_computes_none_twice(self):
        plan = {"base": "reclab train lstm --task adding --length 10 --steps 2 --batch 4 --held-out 8",
                "axes": {"seed": [1, 2], "set.width": [4, 8]}, "measure": ["loss"]}
        table = reclab.sweep(plan, self.folder / "cells", jobs=1, lab=LAB)
        self.assertEqual(len(table), 4)
        self.assertEqual(sorted(zip(table["seed"], table["set.width"])), [(1, 4), (1, 8), (2, 4), (2, 8)])
        self.assertTrue(numpy.isfinite(table["loss"]).all())
        self.assertEqual(reclab.sweep(plan, self.folder / "cells", lab=LAB).rows, table.rows)
        self.refused("measure", reclab.sweep, {**plan, "measure": ["los"]}, self.folder / "other")


class Files(Case):
    arrays = {"a": numpy.arange(6.0).reshape(2, 3), "b/c": numpy.arange(3) + 1j, "scalar": numpy.array(2.5), "none": numpy.zeros((0, 4)),
              "f": numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3)), "i": numpy.arange(5, dtype=">i4"), "long name" * 20: numpy.ones(1)}

    def test_archives_read_what_numpy_reads(self):
        for save in (numpy.savez, numpy.savez_compressed):
            save(self.folder / "x.npz", **self.arrays)
            self.same(reclab.Archive(self.folder / "x.npz"), numpy.load(self.folder / "x.npz"))
        (self.folder / "y.npz").write_bytes(reclab._npz(self.arrays))
        self.same(reclab.Archive(self.folder / "y.npz"), numpy.load(self.folder / "y.npz"))
        self.assertIsInstance(reclab.Archive(self.folder / "y.npz")["a"], numpy.memmap)

    def test_safetensors(self):
        training = reclab.train("lstm", lab=LAB, **Others.small)
        weights = reclab.Archive(training.folder / "weights.safetensors")
        self.same(weights, training.weights)
        (self.folder / "z").write_bytes(b"no archive at all")
        self.assertRaises(reclab.Error, reclab.Archive, self.folder / "z")


class Names(Case):
    def test_weights_go_out_and_back_in_by_reference_names_of_every_preset_that_has_them(self):
        tried = []
        for preset in reclab.presets(LAB):
            card = LAB.card(preset["id"])
            if not any(row["reference"] for row in card["parameters"]):
                continue
            run = reclab.run(preset["id"], record=["output", "param"], lab=LAB)
            shown = reclab._card_of(run)
            names, reference = [], {row["name"]: row["reference"] for row in shown["parameters"] + shown["head"]}
            for own, values in run.weights.items():
                first = (reference[own] or [{"name": own.replace("/", ".")}])[0]["name"]
                names += [first.replace("{i}", str(row)) for row in range(len(values))] if "{i}" in first else [first]
            theirs = run.named_as(names)
            with self.subTest(preset["id"]):
                self.assertEqual(set(theirs), set(names))
                again = reclab.run(preset["id"], record=["output", "param"], weights={"model.part." + k: v for k, v in theirs.items()},
                                   set=run.manifest["hyper"], sizes="preset", lab=LAB)
                self.same(dict(again.weights), dict(run.weights))
                self.assertTrue((again["output"] == run["output"]).all())
            tried.append(preset["id"])
        self.assertGreater(len(tried), 50)


    def test_names_that_do_not_fit_are_said(self):
        run = reclab.run("lstm", self.x, width=4, lab=LAB)
        with self.assertRaises(reclab.Error) as caught:
            run.named_as(["weight_ih_l0", "weight_hh_l0", "bias_ih_l0"])
        self.assertIn("0/bias_hh has none of these names", str(caught.exception))


class Pictures(Case):
    def test_xarray_has_dimensions_units_and_coordinates(self):
        try:
            import xarray
        except ImportError:
            self.skipTest("xarray is not installed")
        run = reclab.run("lstm", self.x, width=4, time=numpy.arange(30) / 2, lab=LAB)
        gate = run.array("gate/0/forget")
        self.assertEqual(gate.dims[0], "time")
        self.assertTrue((gate["time"].values == numpy.arange(30) / 2).all())
        self.assertTrue((gate.sel(time=3.5).values == run["gate/0/forget"][7]).all())
        self.assertEqual(run.array("gradient/state/0/h").attrs["units"], "log10")
        self.assertEqual(gate.attrs["valid_range"], [0, 1])
        for id in ("lstm", "mamba", "lru", "transformer", "hippo-legs", "lmu"):
            run = reclab.run(id, length=40, lab=LAB)
            data = run.xarray()
            self.assertIsInstance(data, xarray.Dataset)
            for entry in run.manifest["arrays"]:
                self.assertEqual(data[entry["key"]].shape, tuple(entry["shape"]), entry["key"])
                self.assertTrue(numpy.array_equal(data[entry["key"]].values, run[entry["key"]], equal_nan=True), entry["key"])

    def test_the_kinds_are_those_of_the_arrays(self):
        kinds = {row["kind"]: row for row in reclab.kinds(LAB)}
        for key in (entry["key"] for entry in reclab.run("mamba", length=40, lab=LAB).manifest["arrays"]):
            self.assertIn(key.split("/")[0], kinds)

    def test_the_figure_is_that_of_the_window(self):
        if not os.access(os.environ.get("RECURRENCE_LAB", ""), os.X_OK):
            self.skipTest("recurrence-lab is not built beside this reclab")
        run = reclab.run("lstm", self.x, width=4, lab=LAB)
        picture = run.figure("gradients", width=85)
        self.assertIn("<svg", picture.svg)
        self.assertTrue(picture._repr_html_().startswith("<svg"))
        self.assertIn("<svg", run._repr_html_())
        picture.save(self.folder / "a.svg")
        with self.assertRaises(reclab.Error):
            run.figure("no-panel").svg

    def test_without_the_window_a_run_says_so(self):
        run = reclab.run("lstm", self.x, width=4, lab=LAB)
        before = os.environ.get("RECURRENCE_LAB")
        os.environ["RECURRENCE_LAB"] = str(self.folder / "none")
        try:
            self.assertIn("reclab.Run of lstm", run._repr_html_())
            self.assertIn("no program", run._repr_html_())
            with self.assertRaises(reclab.Error):
                run.figure().svg
        finally:
            os.environ.pop("RECURRENCE_LAB") if before is None else os.environ.update(RECURRENCE_LAB=before)


class Installed(Case):
    def test_the_version_is_the_program_s(self):
        version = [row for row in (ROOT / "app/python/pyproject.toml").read_text().splitlines() if row.startswith("version")][0].split('"')[1]
        self.assertEqual(line("--version").strip(), version)


class Notebooks(Case):
    def test_every_notebook_runs_as_it_is_written(self):
        """Cell by cell, as a kernel would, each cell's last value shown."""
        import ast
        files = sorted((ROOT / "resources/notebooks").glob("*.ipynb"))
        self.assertTrue(files)
        for file in files:
            scope, shown = {"__name__": "__main__"}, 0
            for number, cell in enumerate(json.loads(file.read_text("utf-8"))["cells"]):
                if cell["cell_type"] != "code":
                    continue
                with self.subTest(f"{file.name}, cell {number}"):
                    tree = ast.parse("".join(cell["source"]))
                    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
                    exec(compile(tree, f"{file.name}:{number}", "exec"), scope)
                    value = last and eval(compile(ast.Expression(last.value), f"{file.name}:{number}", "eval"), scope)
                    if hasattr(value, "_repr_html_"):
                        self.assertIn("<", value._repr_html_())
                        shown += 1
            self.assertGreater(shown, 0, file.name)


if __name__ == "__main__":
    unittest.main()
