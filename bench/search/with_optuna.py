# SPDX-License-Identifier: MIT
"""Optuna's samplers on a recorded table, by ask and tell.

- Space: one parameter an axis of more than one value: the rank of the value (ints), or the value as a category.
- Told: the logarithm of the time; of an entry that failed the greatest logarithm so far (of the table, when it is the first).
- Optuna knows no rules between parameters and suggests the same point again. Neither costs an evaluation here. What is done with
  a suggestion that is outside the table or was evaluated before is the peer's third word:
  reject    told as failed, which samplers leave out of their models; asked again
  bound     outside: told as a trial that violates a constraint, with the greatest logarithm so far; a repeat: as reject
  repair    the nearest entry not yet evaluated is evaluated and told in its place (least sum of rank distances, each axis scaled to
            1; the first of equals)
  listed    the acquisition is maximised over the entries not yet evaluated (GPSampler lets advanced users override how it
            is maximised), instead of over the box
- After PATIENCE suggestions in a row that were of no use an entry is drawn at random, evaluated and told."""
import importlib.metadata
import math
import random
import warnings

import numpy
import optuna
import torch
from optuna.trial import TrialState

VERSION = "Optuna " + importlib.metadata.version("optuna")
PATIENCE = 20
optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore")
torch.set_num_threads(1)

# Name -> sampler, axes, what is done with a suggestion of no use. tpe is multivariate, tpe1 draws each axis by itself; gp is told
# that the objective has no noise, gpn is not.
PEERS = {f"optuna-{sampler}-{axes}-{way}": (sampler, axes, way)
         for sampler in ("tpe", "tpe1", "gp", "gpn") for axes in ("rank", "category") for way in ("reject", "bound", "repair", "listed")
         if way != "listed" or sampler.startswith("gp")}


class ListedGP(optuna.samplers.GPSampler):
    """The Gaussian process with its acquisition maximised over a list of points."""

    points = left = values = None

    def _optimize_acqf(self, acqf, best_params):
        if self.values is None:
            self.values = acqf.search_space.get_normalized_params(self.points, self.points)
        values = self.values[self.left]
        return values[int(numpy.argmax(acqf.eval_acqf_no_grad(values)))]


class Runs:
    """The runs of one peer on one table."""

    def __init__(self, table, peer):
        self.table = table
        self.sampler, axes, self.way = PEERS[peer]
        columns = list(zip(*table.configurations.values()))
        self.values = {name: sorted(set(column)) for name, column in zip(table.names, columns) if len(set(column)) > 1}
        where = [table.names.index(name) for name in self.values]
        ranks = [{value: rank for rank, value in enumerate(values)} for values in self.values.values()]
        self.keys = list(table.configurations)
        self.ranks = numpy.array([[rank[point[i]] for rank, i in zip(ranks, where)] for point in table.configurations.values()])
        self.index = {tuple(point): i for i, point in enumerate(self.ranks.tolist())}
        self.points = [dict(zip(self.values, point)) for point in self.ranks.tolist()]
        sizes = [len(values) for values in self.values.values()]
        self.scaled = self.ranks / (numpy.array(sizes) - 1)
        make = {"rank": lambda n: optuna.distributions.IntDistribution(0, n - 1),
                "category": lambda n: optuna.distributions.CategoricalDistribution(list(range(n)))}[axes]
        self.axes = {name: make(n) for name, n in zip(self.values, sizes)}

    def run(self, seed, evals):
        run = Run(self, seed)
        evals = min(evals, len(self.keys))
        while len(run.order) < evals:
            run.step()
        return [self.keys[i] for i in run.order], run.notes


class Run:
    """One run: what was evaluated, and what was told."""

    def __init__(self, runs, seed):
        self.runs, self.order, self.left, self.useless = runs, [], numpy.ones(len(runs.keys), bool), 0
        self.notes = {"outside": 0, "repeated": 0, "drawn": 0}
        self.worst, self.random = -math.inf, random.Random(seed)
        self.study = optuna.create_study(sampler=self.sampler(seed))

    def sampler(self, seed):
        if self.runs.sampler.startswith("tpe"):
            return optuna.samplers.TPESampler(seed=seed, multivariate=self.runs.sampler == "tpe")
        make = ListedGP if self.runs.way == "listed" else optuna.samplers.GPSampler
        sampler = make(seed=seed, deterministic_objective=self.runs.sampler == "gp")
        sampler.points, sampler.left = self.runs.points, self.left
        return sampler

    def step(self):
        trial = self.study.ask(self.runs.axes)
        point = tuple(trial.params[name] for name in self.runs.axes)
        entry = self.runs.index.get(point)
        if entry is not None and self.left[entry]:
            self.study.tell(trial, self.evaluate(entry))
            return
        self.notes["outside" if entry is None else "repeated"] += 1
        self.useless += 1
        if self.runs.way == "bound" and entry is None and self.order:
            trial.set_constraint("table", 1)
            self.study.tell(trial, self.worst)
        else:
            self.study.tell(trial, state=TrialState.FAIL)
        if self.runs.way == "repair" and len(self.order) >= 10:
            self.add(self.nearest(point))
        elif self.useless >= PATIENCE:
            self.notes["drawn"] += 1
            self.add(self.random.choice(numpy.flatnonzero(self.left).tolist()))

    def evaluate(self, entry):
        """What is told of the entry."""
        self.order.append(entry)
        self.left[entry] = False
        self.useless = 0
        time = self.runs.table.times[self.runs.keys[entry]]
        if time is not None:
            told = math.log(time)
        else:
            told = self.worst if self.order[1:] else math.log(self.runs.table.slowest)
        self.worst = max(self.worst, told)
        return told

    def add(self, entry):
        self.study.add_trial(optuna.create_trial(params=self.runs.points[entry], distributions=self.runs.axes,
                                                 value=self.evaluate(entry)))

    def nearest(self, point):
        there = numpy.array(point) / self.runs.ranks.max(axis=0)
        far = numpy.abs(self.runs.scaled - there).sum(axis=1)
        far[~self.left] = math.inf
        return int(numpy.argmin(far))
