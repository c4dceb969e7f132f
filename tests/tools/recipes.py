# SPDX-License-Identifier: MIT
# ctest: dose
"""Each patch of docs/adding fits the tree, and docs/adding.md names each with the files it touches. At the full dose each is
applied to a copy, which is built, and its test passes.

A patch begins with words about it, then "test: NAME", the test of ctest that must pass, or "build: TARGET" alone. What the
target pages writes because of it is not in the patch: "pages: FILE" names it.
"""
import pathlib
import re
import shutil
import sys

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tools")]
import mutate
from dittune_test import FULL, SOURCE, Dittune, skip

PATCHES = sorted((SOURCE / "docs/adding").glob("*.patch"))
PAGE = (SOURCE / "docs/adding.md").read_text(encoding="utf-8")
t = Dittune()


class Recipe:
    """A patch, with what mutate.Copy asks of a change: the preset, and the tests."""
    step = "dev"

    def __init__(self, patch):
        text = patch.read_text(encoding="utf-8")
        self.patch = patch
        self.touched = re.findall(r"^\+\+\+ b/(.*)$", text, re.M)
        self.tests = [(name, "") for name in re.findall(r"^test: (.*)$", text, re.M)]
        self.targets = re.findall(r"^build: (.*)$", text, re.M)
        self.pages = re.findall(r"^pages: (.*)$", text, re.M)


def apply(recipe, root, check=False):
    """By git, or by patch(1) where there is no git, which is less strict."""
    if shutil.which("git"):
        return t.run("git", "apply", *(["--check"] if check else []), recipe.patch, cwd=root)
    return t.run("patch", "-p1", "--batch", "--forward", *(["--dry-run"] if check else []), "-i", recipe.patch, cwd=root)


def fits(recipe):
    done = apply(recipe, SOURCE, check=True)
    name = recipe.patch.name
    t.check(f"{name} fits", done.code == 0, done)
    t.check(f"{name} says what must pass", bool(recipe.tests) != bool(recipe.targets), recipe.tests)
    tests = sum(path.startswith("tests/") for path in recipe.touched)
    count = f"| {len(recipe.touched) - tests} | {tests} |"
    row = next((line for line in PAGE.splitlines() if f"(adding/{name})" in line), "")
    t.check(f"docs/adding.md has a row of {name} with {count}", row.endswith(count), row)


def rewrite_pages(copy, recipe):
    """The target pages changes the same pages in the copy as the patch."""
    copy.configure(recipe.step)
    ok, said = copy.run("cmake", "--build", "--preset", recipe.step, "-j2", "--target", "pages")
    pages = [*SOURCE.glob("docs/*.md"), *SOURCE.glob("schema/*.json")]
    changed = [str(path.relative_to(SOURCE)) for path in pages if path.read_bytes() != (copy.root / path.relative_to(SOURCE)).read_bytes()]
    t.check(f"{recipe.patch.name} changes {recipe.pages}", ok and sorted(changed) == sorted(recipe.pages), f"{changed}\n{said[-2000:]}")


def works(copy, recipe):
    done = apply(recipe, copy.root)
    t.check(f"{recipe.patch.name} is applied", done.code == 0, done)
    copy.known.clear()
    for target in recipe.targets:
        copy.configure(recipe.step)
        ok, said = copy.run("cmake", "--build", "--preset", recipe.step, "-j2", "--target", target)
        t.check(f"{recipe.patch.name} is built", ok, said[-2000:])
    if recipe.pages:
        rewrite_pages(copy, recipe)
    try:
        copy.build(recipe)
        for name, check in recipe.tests:
            ok, said = copy.test(recipe.step, name, check)
            t.check(f"{recipe.patch.name} passes {name}", ok, said[-2000:])
    except mutate.Unfit as wrong:
        t.check(f"{recipe.patch.name} is built", False, str(wrong))
    for path in map(pathlib.Path, [*recipe.touched, *recipe.pages]):
        if (SOURCE / path).exists():
            copy.bring(path)
        else:
            (copy.root / path).unlink()


def main():
    if not shutil.which("git") and not shutil.which("patch"):
        skip("there is neither git nor patch")
    recipes = [Recipe(patch) for patch in PATCHES]
    t.check("there are patches", len(recipes) > 10, PATCHES)
    for recipe in recipes:
        fits(recipe)
    if FULL:
        copy = mutate.Copy(t.path / "tree")
        for recipe in recipes:
            works(copy, recipe)
    t.finish()


main()
