# SPDX-License-Identifier: MIT
"""Modules that an engine's argument parser imports and does not need: whatever is not installed becomes a stub.

    import stubs
    stubs.install(root, real=["xfuser"])          # before the engine is imported

A stub's names are classes of no behaviour: they may be called, subclassed, subscripted, used as decorators and in type
annotations. Only modules that are missing are stubbed, so the engine's own code always runs as it is.
"""
import importlib.abc
import importlib.machinery
import sys
import types


class Meta(type):
    def __new__(mcs, name, bases, body, **named):
        return super().__new__(mcs, name, bases, body)

    def __init__(cls, name, bases, body, **named):
        super().__init__(name, bases, body)

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return make(name)

    def __call__(cls, *args, **named):
        if len(args) == 1 and not named and isinstance(args[0], (types.FunctionType, type)):
            return args[0]  # a decorator
        return super().__call__()

    def __or__(cls, other):
        return object

    __ror__ = __or__

    def __getitem__(cls, item):
        return cls

    def __iter__(cls):
        return iter(())

    def __len__(cls):
        return 0

    def __bool__(cls):
        return False

    def __lt__(cls, other):
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __instancecheck__(cls, value):
        return False

    def __subclasscheck__(cls, other):
        return False


def make(name):
    return Meta(name, (Base,), {})


class Base:
    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        from pydantic_core import core_schema
        return core_schema.any_schema()

    def __init_subclass__(cls, **named):
        super().__init_subclass__()

    def __init__(self, *args, **named):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return make(name)

    def __call__(self, *args, **named):
        if len(args) == 1 and not named and isinstance(args[0], (types.FunctionType, type)):
            return args[0]
        return Base()

    def __iter__(self):
        return iter(())

    def __getitem__(self, item):
        return Base()

    def __setitem__(self, item, value):
        pass

    def __bool__(self):
        return False

    def __enter__(self):
        return self

    def __exit__(self, *args):
        return False


class Module(types.ModuleType):
    __version__, __file__ = "999.0", "a stub"
    __all__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        made = make(name)
        setattr(self, name, made)
        return made


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, roots, real):
        self.roots, self.real, self.made = tuple(root + "/" for root in roots), real, []

    def asked_by_engine(self):
        frame = sys._getframe(2)
        while frame is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith(self.roots)

    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top in self.real or top in sys.stdlib_module_names or not self.asked_by_engine():
            return None
        self.made.append(name)
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = Module(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


class Blanks(Finder):
    """The engine's own modules that are stubbed all the same: its kernels, its processes."""

    def find_spec(self, name, path=None, target=None):
        if not any(name == prefix or name.startswith(prefix + ".") for prefix in self.real):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)


def install(*roots, real=(), blank=()):
    """roots: folders of the engine's files, whose imports may be stubbed, but never those of the modules real; the modules
    blank, and those below them, are stubs. Returns the finder; its .made lists what was missing."""
    sys.path[:0] = roots
    sys.meta_path.insert(0, Blanks(roots, set(blank)))
    finder = Finder(roots, set(real))
    sys.meta_path.append(finder)
    return finder


def package(name, path):
    """The package name without running its __init__.py, which imports more than a parser needs."""
    module = types.ModuleType(name)
    module.__path__ = [path]
    sys.modules[name] = module
    return module
