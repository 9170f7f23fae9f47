"""Finding the app by MODULE:APP, and the errors if that fails."""

from pathlib import Path

import pytest

from penstock.app import load_app
from penstock.errors import ConfigError

SHOP = """
from penstock import App
app = App("shop")
backup = App("backup")
empty = App("empty")
number = 5
@app.consume("orders")
def handle(value: bytes) -> None: ...
backup.consume("orders")(handle)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*__import__("sys").path])
    return tmp_path


def write(folder: Path, name: str, text: str = SHOP) -> str:
    (folder / f"{name}.py").write_text(text)
    return name


def test_an_app_is_found_in_the_current_folder(folder: Path) -> None:
    name = write(folder, "shop_found")
    assert load_app(f"{name}:backup").name == "backup"
    assert load_app(name).name == "shop"


@pytest.mark.parametrize(
    ("reference", "problem", "hint"),
    [
        ("no_such_module:app", "no module 'no_such_module'", "Check the spelling"),
        ("shop_bad.py:app", "is a file", "Write shop_bad:app"),
        ("./src/shop_bad.py", "is a file", "Write src.shop_bad:app"),
        ("shop bad", "does not name an app", "MODULE:APP"),
        ("", "does not name an app", "MODULE:APP"),
        ("shop_bad:aap", "nothing called 'aap'", "Did you mean shop_bad:app?"),
        ("shop_bad:number", "is of type int, not App", "Did you mean"),
        ("shop_bad:empty", "has no handlers", "@app.consume"),
    ],
)
def test_a_wrong_reference_is_answered_with_the_next_step(
    folder: Path, reference: str, problem: str, hint: str
) -> None:
    write(folder, "shop_bad")
    with pytest.raises(ConfigError) as caught:
        load_app(reference)
    assert problem in caught.value.problem
    assert hint in caught.value.hint


def test_a_module_without_any_app_says_how_to_make_one(folder: Path) -> None:
    write(folder, "no_app_here", "x = 1")
    with pytest.raises(ConfigError, match="nothing called 'app'") as caught:
        load_app("no_app_here")
    assert 'App("name")' in caught.value.hint


def test_a_missing_dependency_of_the_module_is_named(folder: Path) -> None:
    write(folder, "needs_more", "import not_installed_at_all")
    with pytest.raises(ConfigError, match="imports 'not_installed_at_all', which is not installed"):
        load_app("needs_more:app")


def test_a_module_that_fails_says_where(folder: Path) -> None:
    write(folder, "broken_shop", "\nx = 1 / 0\n")
    with pytest.raises(ConfigError, match=r"ZeroDivisionError.*broken_shop\.py, line 2"):
        load_app("broken_shop:app")


def test_a_module_whose_call_of_a_library_fails_names_its_own_line(folder: Path) -> None:
    name = write(folder, "shop_of_variables", "import os\n\nos.environ['NOT_SET_ANYWHERE']\n")
    with pytest.raises(ConfigError, match=r"KeyError: 'NOT_SET_ANYWHERE' \(.*shop_of_variables\.py, line 3\)\."):
        load_app(name)


def test_a_module_that_exits_is_an_error_and_no_success(folder: Path) -> None:
    name = write(folder, "shop_exits", "import sys\nsys.exit(0)\n")
    with pytest.raises(ConfigError, match=r"ended the program: SystemExit: 0 \(.*shop_exits\.py, line 2\)\.") as caught:
        load_app(name)
    assert '__name__ == "__main__"' in caught.value.hint


@pytest.mark.parametrize("call", ["run", "start"])
def test_a_module_that_runs_its_app_is_told_to_do_so_only_as_a_program(folder: Path, call: str) -> None:
    name = write(folder, f"shop_that_{call}s", f"{SHOP}\napp.{call}()\n")
    with pytest.raises(ConfigError, match=rf"^Module '{name}' calls app\.{call}\(\) while it is imported") as caught:
        load_app(name)
    assert '__name__ == "__main__"' in caught.value.hint


def test_an_app_may_run_after_its_import(folder: Path) -> None:
    app = load_app(write(folder, "shop_that_works"))
    with pytest.raises(ConfigError, match="no_such_option"):
        app.start(no_such_option=1)  # type: ignore[call-arg]


def test_a_file_with_the_name_of_a_library_is_named(folder: Path) -> None:
    write(folder, "json")
    with pytest.raises(
        ConfigError, match=r"/json\.py was not imported.* called 'json' too: .*__init__\.py\."
    ) as caught:
        load_app("json")
    assert caught.value.hint == "Rename json.py."


def test_a_module_that_is_no_python_says_where(folder: Path) -> None:
    name = write(folder, "shop_typo", "import os\napp =\n")
    with pytest.raises(ConfigError) as caught:
        load_app(f"{name}:app")
    assert caught.value.problem == "Importing 'shop_typo' failed: SyntaxError: invalid syntax (shop_typo.py, line 2)."


def test_a_wrong_declaration_in_the_module_keeps_its_own_message(folder: Path) -> None:
    write(folder, "wrong_shop", SHOP + "\n@app.consume('x')\ndef f() -> None: ...\n")
    with pytest.raises(ConfigError, match=r"takes \(nothing\)"):
        load_app("wrong_shop:app")
