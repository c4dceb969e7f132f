# SPDX-License-Identifier: MIT
"""Kernel Tuner's strategies on a recorded table, in its own simulation mode (tune_kernel with simulation_mode=True).

- Budget: strategy_options max_fevals. Kernel Tuner counts an entry the first time it is visited, failed or not; an entry
  visited again costs nothing.
- Space: every entry of the table, failed ones too. (tune_cache() would leave the failed ones out of the space, which tells the
  strategy what it is to find out.) A configuration outside is refused by the restriction and costs nothing.
- The table is read and the space built once; each run has a copy that remembers nothing, since a space remembers the neighbours
  that it was asked for and how many of them it gave, which a later run would profit from.
- Strategies draw from the global generators of Python and numpy: both are seeded. The Latin hypercube of bayes_opt draws from a
  generator of its own, which is given the seed as well."""
import collections
import copy
import functools
import importlib.metadata
import json
import math
import os
import random
import tempfile

import kernel_tuner
import numpy
from constraint import FunctionConstraint
from kernel_tuner import interface, searchspace, util
from kernel_tuner.strategies import bayes_opt

VERSION = "Kernel Tuner " + importlib.metadata.version("kernel_tuner")
TOLD_OF_FAILURE, SPACE, HYPERCUBE = util.get_result_cost, interface.Searchspace, bayes_opt.LatinHypercube

# Name -> strategy, options. bayes_opt takes a failed entry's cost, the greatest double, for a time: its model breaks at the first
# one. "repaired" tells it the value that it knows as invalid (1e20), as its code means to be told. Its default method,
# multi-ultrafast, skips model updates when evaluations are quicker than predictions, as those of a simulation always are;
# multi-fast is what it does when they are not, which is the case of real trials. simulated_annealing's schedule ends at three
# quarters of max_fevals; "room" asks for a third more, and the run is cut at the budget.
PEERS = {
    "kt-random": ("random_sample", {}),
    "kt-genetic": ("genetic_algorithm", {"maxiter": 1000}),
    "kt-vndx": ("hybrid_vndx", {}),
    "kt-greywolf": ("adaptive_tabu_greywolf", {}),
    "kt-annealing": ("simulated_annealing", {"room": 4 / 3}),
    "kt-annealing-default": ("simulated_annealing", {}),
    "kt-ils": ("greedy_ils", {}),
    "kt-mls": ("mls", {}),
    "kt-greedy-mls": ("greedy_mls", {}),
    "kt-diffevo": ("diff_evo", {}),
    "kt-pso": ("pso", {}),
    "kt-firefly": ("firefly_algorithm", {}),
    "kt-dual-annealing": ("dual_annealing", {}),
    "kt-basinhopping": ("basinhopping", {}),
    "kt-bayes": ("bayes_opt", {"repaired": True, "method": "multi-fast"}),
    "kt-bayes-advanced": ("bayes_opt", {"repaired": True, "method": "multi-advanced"}),
    "kt-bayes-ei": ("bayes_opt", {"repaired": True, "method": "ei"}),
    "kt-bayes-default": ("bayes_opt", {"repaired": True}),
    "kt-bayes-unrepaired": ("bayes_opt", {"method": "multi-fast"}),
}


class Runs:
    """The runs of one peer on one table."""

    def __init__(self, table, peer):
        self.table = table
        self.strategy, options = PEERS[peer]
        self.options = dict(options)
        self.repaired = self.options.pop("repaired", False)
        self.room = self.options.pop("room", 1)
        self.cache, self.arguments = _as_cache(table)
        entries = util.read_cache(self.cache, open_cache=False)["cache"]
        space = SPACE(self.arguments["tune_params"], self._restrictions(), 10**9)
        assert space.size == len(entries)
        interface.util.process_cache = lambda *_: entries
        space.get_neighbors(space.list[0], "adjacent")  # makes the arrays that all runs share
        interface.Searchspace = lambda *_, **__: _forgetful(space)

    def _restrictions(self):
        entries = set(self.table.configurations.values())
        return [FunctionConstraint(lambda *values: values in entries)]

    def run(self, seed, evals):
        """Keys in the order of their first visit, and what else is worth telling."""
        random.seed(seed)
        numpy.random.seed(seed)
        bayes_opt.LatinHypercube = functools.partial(HYPERCUBE, rng=numpy.random.default_rng(seed))
        util.get_result_cost = _repaired if self.repaired else TOLD_OF_FAILURE
        results, _ = kernel_tuner.tune_kernel(
            **self.arguments, restrictions=[], cache=self.cache, simulation_mode=True, quiet=True, strategy=self.strategy,
            strategy_options=dict(self.options, max_fevals=math.ceil(evals * self.room)))
        names = self.table.names
        visits = [",".join(str(result[name]) for name in names) for result in results]
        keys = list(dict.fromkeys(visits))[:evals]
        return keys, {"visits": len(visits)}


def _forgetful(space):
    """The space without the neighbours that it remembers."""
    space, methods = copy.copy(space), searchspace.supported_neighbor_methods
    space._Searchspace__neighbor_cache = {method: {} for method in methods}
    space._Searchspace__neighbor_partial_cache = {method: collections.defaultdict(list) for method in methods}
    return space


def _repaired(result, objectives, better):
    return [1e20] if "__error__" in result else TOLD_OF_FAILURE(result, objectives, better)


def _as_cache(table):
    """A cache file of Kernel Tuner without the single measurements, which it would parse for nothing; the arguments."""
    entries = {}
    for key, values in table.configurations.items():
        time = table.times[key]
        entry = dict(zip(table.names, values), compile_time=0, verification_time=0, benchmark_time=0)
        entries[key] = dict(entry, time="RuntimeFailedConfig" if time is None else time)
    params = {name: list(dict.fromkeys(sorted(values))) for name, values in
              zip(table.names, zip(*table.configurations.values()))}
    cached = {"device_name": "recorded", "kernel_name": "kernel", "problem_size": [1], "tune_params_keys": table.names,
              "tune_params": params, "objective": "time", "cache": entries}
    folder = tempfile.mkdtemp(prefix="dittune-peers-")
    path = os.path.join(folder, "cache.json")
    with open(path, "w") as file:
        json.dump(cached, file)
    return path, {"kernel_name": "kernel", "kernel_source": "", "problem_size": (1,), "arguments": [], "tune_params": params}
