#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes bayes_reference.h: what scikit-learn's Gaussian process says where the process of the search is asked the same.

    pip install scikit-learn && python3 tests/search/bayes_reference.py > tests/search/bayes_reference.h

The kernel is put together from scikit-learn's own parts; a dimension that an axis has not is one of infinite length.
"""
import numpy as np
import sklearn
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

OBSERVED, ASKED, DIMS = 12, 6, 4
LENGTHS = [0.5, 0.7, 0.9, 1.3]
AXES = [[0], [1, 2], [3]]
SHARE, SIGNAL, CONSTANT, NOISE = 0.625, 1.5, 0.75, 0.01


def constant(value):
    return ConstantKernel(value, "fixed")


def kernel():
    product = constant(SIGNAL)
    for axis in AXES:
        lengths = [LENGTHS[d] if d in axis else np.inf for d in range(DIMS)]
        product = product * (constant(1 - SHARE) + constant(SHARE) * Matern(lengths, "fixed", nu=2.5))
    return constant(CONSTANT) + product


def rows(name, numbers, columns):
    lines = [", ".join("%.15g" % number for number in part) for part in np.reshape(numbers, (-1, columns))]
    print("static const double %s[] = {\n    %s};" % (name, ",\n    ".join(lines)))


def main():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 65, (OBSERVED + ASKED, DIMS)) / 64
    x[:, 3] = rng.integers(0, 2, OBSERVED + ASKED)
    y = np.round(rng.normal(size=OBSERVED), 3)
    variance = np.round(rng.uniform(0, 0.1, OBSERVED), 3)
    process = GaussianProcessRegressor(kernel(), alpha=NOISE + variance, optimizer=None)
    process.fit(x[:OBSERVED], y)
    mean, deviation = process.predict(x[OBSERVED:], return_std=True)
    print("/* SPDX-License-Identifier: MIT */")
    print("/* Written by tests/search/bayes_reference.py with scikit-learn %s. */" % sklearn.__version__)
    print("enum { OBSERVED = %d, ASKED = %d, DIMENSIONS = %d };" % (OBSERVED, ASKED, DIMS))
    print("#define SHARE %g\n#define SIGNAL %g\n#define CONSTANT %g\n#define NOISE %g" % (SHARE, SIGNAL, CONSTANT, NOISE))
    rows("lengths", LENGTHS, DIMS)
    rows("points", x, DIMS)
    rows("values", y, 6)
    rows("variances", variance, 6)
    rows("means", mean, 3)
    rows("deviations", deviation, 3)
    print("static const double log_likelihood = %.15g;" % process.log_marginal_likelihood_value_)


main()
