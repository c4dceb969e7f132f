# SPDX-License-Identifier: MIT
# ctest: dose
"""Optional libraries that are planted: of a major version with another interface, or whose header and library do not fit. Each costs
its feature, named in the line of back ends, and not the build. And the products of oneDNN compile against both of its majors, whose
headers come from Python's registry where pip reaches it. The full dose builds what is left, and tunes with it."""
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import FULL, SOURCE, Dittune, have

have("cmake", "cmake")
t = Dittune(clock="real")
COMPILER = os.environ.get("CC", "gcc")
PLANTED = t.path / "planted"
(PLANTED / "include").mkdir(parents=True)


def plant(name, text):
    path = PLANTED / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def library(name, text):
    source = plant(f"{name}.c", text)
    done = t.run(COMPILER, "-shared", "-fPIC", "-o", PLANTED / f"lib{name}.so", source)
    assert done.code == 0, done


def configure(name, *options, env=None):
    folder = t.path / name
    return folder, t.run("cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja", f"-DCMAKE_C_COMPILER={COMPILER}", "-DCMAKE_BUILD_TYPE=Release",
                         "-DDT_TESTS=OFF", "-DDT_BENCH=OFF", "-DDT_CUDA=OFF", *options, env=env)


def back_ends(folder):
    return (folder / "back-ends.txt").read_text() if (folder / "back-ends.txt").exists() else "not configured"


# ---- another major version of each

plant("include/dnnl.h", "#define DNNL_VERSION_MAJOR 9\ntypedef struct dnnl_engine_v9 *dnnl_engine_t;\n")
library("dnnl", "int dnnl_version_v9;")
plant("include/hwloc.h", "#define HWLOC_API_VERSION 0x90000\nunsigned hwloc_get_api_version(void);\n")
library("hwloc", "unsigned hwloc_get_api_version(void) { return 0x90000; }")
plant("pkgconfig/hwloc.pc", f"Name: hwloc\nDescription: planted\nVersion: 9.0.1\nCflags: -I{PLANTED}/include\nLibs: -L{PLANTED} -lhwloc\n")
plant("include/mpi.h", "#define MPI_VERSION 9\n#define MPI_SUBVERSION 0\n#define MPI_MAX_LIBRARY_VERSION_STRING 64\n"
                       "int MPI_Init(int *, char ***);\nint MPI_Finalize(void);\nint MPI_Get_library_version(char *, int *);\n")
library("mpi", "int MPI_Init(int *a, char ***b) { (void)a; (void)b; return 0; }\nint MPI_Finalize(void) { return 0; }\n"
               "int MPI_Get_library_version(char *a, int *b) { *a = 0; *b = 0; return 0; }")
wrapper = plant("mpicc", f"#!/bin/sh\ncase $1 in -showme:compile*) echo -I{PLANTED}/include ;; -showme:link*) echo -L{PLANTED} -lmpi ;;"
                         f" *) exec {COMPILER} -I{PLANTED}/include \"$@\" -L{PLANTED} -lmpi ;; esac\n")
wrapper.chmod(0o755)
everything = [f"-DONEDNN_INCLUDE={PLANTED}/include", f"-DONEDNN_LIBRARY={PLANTED}/libdnnl.so", f"-DMPI_C_COMPILER={wrapper}"]
paths = {"PKG_CONFIG_PATH": f"{PLANTED}/pkgconfig"}
folder, done = configure("left out", *everything, env=paths)
line = back_ends(folder)
for name, lost in (("oneDNN", "no bfloat16: "), ("hwloc", "each processor is a core: hwloc 9.0.1: "), ("MPI", "ranks of one machine only: ")):
    t.check(f"{name} of version 9 is left out", done.code == 0 and f"without {name}, {lost}it does not compile with our sources (usable/{name}/log" in line,
            f"{line}\n{done}")
    t.check(f"what the compiler says of {name} is kept", "error" in (folder / f"usable/{name}/log").read_text())

# ---- the right header, and a library that has not what it declares

_, done = configure("does not fit", f"-DONEDNN_LIBRARY={PLANTED}/libdnnl.so", "-DDT_MPI=OFF", "-DDT_HWLOC=OFF")
if "dnnl.h and libdnnl were not found" not in done.out + done.err:
    t.check("a library without the functions of its header", done.code == 0 and "without oneDNN, no bfloat16: it cannot be linked" in back_ends(t.path / "does not fit"), done)
t.check("what is switched off is named as that", "without MPI, ranks of one machine only: DT_MPI is OFF" in back_ends(t.path / "does not fit"), done)
_, done = configure("asked for", *everything, "-DDT_ONEDNN=ON")
t.check("asked for by ON it is an error", done.code != 0 and "DT_ONEDNN is ON, but oneDNN cannot be used: it does not compile" in " ".join(done.err.split()), done)

# ---- both majors of oneDNN

for version, major in (("2022.2.1", "2"), ("2023.2.0", "3")):
    headers = t.path / f"onednn{major}"
    done = t.run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--timeout", "20", "--retries", "1", "-d", headers,
                 f"onednn-devel-cpu-gomp=={version}")
    if done.code != 0:
        print(f"skipped: headers of oneDNN {major} cannot be had from Python's registry")
        continue
    t.run(sys.executable, "-m", "zipfile", "-e", next(headers.glob("*.whl")), headers)
    include = next(headers.glob("*/data/include"))
    t.check(f"they are of oneDNN {major}", f"DNNL_VERSION_MAJOR {major}\n" in (include / "oneapi/dnnl/dnnl_version.h").read_text())
    for file in sorted((SOURCE / "kernels/cpu").glob("gemm*.c")) + [SOURCE / "bench/kernels/product.c"]:
        if file.name == "gemm_openblas.c":
            continue
        blas = [f"-isystem{folder}" for folder in pathlib.Path("/usr/include").glob("**/openblas*/")]
        done = t.run(COMPILER, "-std=c11", "-D_GNU_SOURCE", "-DDT_HAVE_ONEDNN=1", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion",
                     "-Werror", "-fopenmp", "-fsyntax-only", f"-I{SOURCE}", "-isystem", include, *blas, file)
        t.check(f"{file.name} compiles against oneDNN {major}", done.code == 0, done)

# ---- what is left

if FULL:
    done = t.run("cmake", "--build", folder)
    t.check("what is left is built", done.code == 0, done)
    done = t.run(folder / "dittune", "tune", "--budget", "30s", "--devices", "1", "--json", timeout=600)
    t.check("and tunes plans of one rank", done.code in (0, 6) and done.json is not None, done)
t.finish()
