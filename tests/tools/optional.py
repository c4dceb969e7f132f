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
from dittune_test import BUILD, FULL, SOURCE, Dittune, have

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
    """What the first one has found out of the compilers is taken over."""
    folder = t.path / name
    for found in (t.path / "left out/CMakeFiles").glob("[0-9]*"):
        shutil.copytree(found, folder / "CMakeFiles" / found.name)
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

# ---- beside CUDA: NCCL and cuDNN, found by the project's own macro in a project of three lines

CACHE_LINES = [line for line in (BUILD / "CMakeCache.txt").read_text(encoding="utf-8").splitlines() if "=" in line]
CACHE = dict(line.split("=", 1) for line in CACHE_LINES)
NVCC, RUNTIME, NCCL, CUDNN = (next((pathlib.Path(value) for key, value in CACHE.items() if key.startswith(name + ":")), pathlib.Path("none"))
                              for name in ("DT_NVCC", "CUDART_INCLUDE", "NCCL_INCLUDE", "CUDNN_INCLUDE"))


def beside(name, folder, *options):
    """What the line of back ends says of NCCL and cuDNN in a folder with include/ and lib/."""
    project = t.path / "beside" / name
    project.mkdir(parents=True)
    (project / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.25)
project(beside LANGUAGES C)
list(APPEND CMAKE_MODULE_PATH ${SOURCE}/cmake)
set(CMAKE_SOURCE_DIR ${SOURCE})
include(dittune)
include(optional)
include(cuda)
set(DT_HAVE_CUDA ON)
dt_find_nccl_and_cudnn()
file(WRITE ${CMAKE_BINARY_DIR}/back-ends.txt "${DT_NCCL_WORD}${DT_CUDNN_WORD}")
""", encoding="utf-8")
    done = t.run("cmake", "-S", project, "-B", project / "build", "-G", "Ninja", f"-DCMAKE_C_COMPILER={COMPILER}", f"-DSOURCE={SOURCE}", "-DDT_WERROR=ON", "-DCMAKE_C_COMPILER_WORKS=1",
                 f"-DCMAKE_CUDA_COMPILER={NVCC}", f"-DCUDART_INCLUDE={RUNTIME}", f"-DDT_CUDA_PREFIX={folder}", *options)
    t.check(f"{name}: nothing stops", done.code == 0, done)
    return back_ends(project / "build"), project / "build/usable"


def plant_beside(name, nccl, cudnn):
    """Headers as texts, cuDNN's of its version by itself; and libraries that have nothing."""
    for file, text in {"nccl.h": nccl, **cudnn}.items():
        plant(f"{name}/include/{file}", text)
    (PLANTED / name / "lib").mkdir()
    for file in ("libnccl.so", "libcudnn.so"):
        shutil.copy(PLANTED / "libhwloc.so", PLANTED / name / "lib" / file)
    return PLANTED / name


if not (NCCL / "nccl.h").exists() or not (CUDNN / "cudnn_version.h").exists():
    print("skipped: NCCL and cuDNN that do not fit, this build has neither CUDA nor them")
else:
    # Python's packages may keep the headers of each library in a folder of its own.
    for path in {path.name: path for folder in (RUNTIME, NCCL, CUDNN) for path in folder.iterdir()}.values():
        place = PLANTED / "apart" / next((name for name in ("cublas", "nccl", "cudnn") if path.name.startswith(name)), "runtime") / path.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(path)
    # and not those that this machine may have in /usr/local/include, too
    text = t.run(COMPILER, "-E", "-v", "-x", "c", "/dev/null").err.split("search starts here:")[-1].split("End of search list")[0]
    system = [word for word in text.split() if word.startswith("/") and word != "/usr/local/include"]
    libraries = [f"-D{line}" for line in CACHE_LINES if line.startswith(("NCCL_LIBRARY:", "CUDNN_LIBRARY:"))]
    line, _ = beside("headers in folders of their own", PLANTED / "none", *libraries, f"-DCMAKE_C_FLAGS=-nostdinc {' '.join('-isystem ' + folder for folder in system)}", *(
        f"-D{name}_INCLUDE={PLANTED}/apart/{folder}" for name, folder in (("CUDART", "runtime"), ("CUBLASLT", "cublas"), ("NCCL", "nccl"), ("CUDNN", "cudnn"))))
    t.check("NCCL and cuDNN are used there", line.startswith(", nccl (") and ", cudnn (" in line, line)
    real = (NCCL / "nccl.h").read_text(encoding="utf-8")
    versions = "".join(f"#define CUDNN_{word} {number}\n" for word, number in (("MAJOR", 99), ("MINOR", 0), ("PATCHLEVEL", 1)))
    line, usable = beside("another major version", plant_beside("major", "#define NCCL_MAJOR 99\n#define NCCL_MINOR 1\n#define NCCL_PATCH 0\n",
                                                               {"cudnn.h": "typedef struct cudnn_v99 *cudnnHandle_t;\n", "cudnn_version.h": versions}))
    t.check("NCCL of version 99 is left out", "without nccl, GPUs exchange through the host: 99.1.0 does not compile with our sources (usable/nccl/log" in line, line)
    t.check("cuDNN of version 99 is left out", "without cudnn, no attention=cudnn: 99.0.1 does not compile with our sources (usable/cudnn/log" in line, line)
    t.check("what the compiler says is kept", all("error" in (usable / name / "log").read_text() for name in ("nccl", "cudnn")))
    line, usable = beside("a library without its functions", plant_beside("hollow", real, {"cudnn.h": "#pragma once\n", "cudnn_version.h": ""}))
    t.check("NCCL that lacks what its header declares is left out", "cannot be linked (usable/nccl/log" in line, line)
    t.check("the log names a function", "ncclCommWindowRegister" in (usable / "nccl/log").read_text(), line)
    t.check("cuDNN without a version is left out", "without cudnn, no attention=cudnn: " in line and "cudnn_version.h names no version" in line, line)
    less = real.replace("ncclCommWindowDeregister(", "ncclCommWindowForget(")
    less = real.replace("ncclCommWindowDeregister(", "ncclCommWindowForget(")
    old = versions.replace("99", "8 /* major */")
    line, _ = beside("a header without a function", plant_beside("less", less, {"cudnn.h": "#pragma once\n", "cudnn_version.h": old}))
    t.check("NCCL whose header lacks a function is left out", "does not compile with our sources (usable/nccl/log" in line, line)
    t.check("an older one is named with the version that serves", "without cudnn, no attention=cudnn: 8.0.1 in " in line and "is older than 9.13.1" in line, line)

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
    done = t.run("cmake", "--build", folder, timeout=7200)
    t.check("what is left is built", done.code == 0, done)
    done = t.run(folder / "dittune", "tune", "--budget", "30s", "--devices", "1", "--json", timeout=600)
    t.check("and tunes plans of one rank", done.code in (0, 6) and done.json is not None, done)
t.finish()
