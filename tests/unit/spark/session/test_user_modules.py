"""The files that an app needs on executors: its module and its local imports, without installed packages."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.spark.session.user_modules import find_own_code, imports_of, own_folders, package_files

Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Sources in a folder of the Python path. Modules that were imported from it are removed afterwards."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(**sources: str) -> None:
        for name, text in sources.items():
            path = tmp_path.joinpath(*name.split("__IN__")).with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    yield write
    for name in [name for name, module in sys.modules.items() if str(tmp_path) in str(getattr(module, "__file__", ""))]:
        del sys.modules[name]


def test_a_module_brings_what_it_imports_from_beside_it_and_what_that_imports(write: Write) -> None:
    write(own_shop="import own_prices\n", own_prices="from own_taxes import rate\n", own_taxes="rate = 1", own_other="")
    assert sorted(find_own_code(["own_shop"]).files) == ["own_prices.py", "own_shop.py", "own_taxes.py"]


def test_an_import_inside_a_function_counts_and_is_not_carried_out(write: Write) -> None:
    write(own_shop="def handle(value):\n    import own_late\n", own_late="raise RuntimeError('imported')")
    assert sorted(find_own_code(["own_shop"]).files) == ["own_late.py", "own_shop.py"]
    assert "own_late" not in sys.modules


def test_a_package_is_taken_whole_with_its_data_and_without_what_tools_left(write: Write, tmp_path: Path) -> None:
    write(
        own_pack__IN____init__="", own_pack__IN__app="", own_pack__IN__deep__IN__more="import own_prices", own_prices=""
    )
    (tmp_path / "own_pack" / "rates.csv").write_text("1,2")
    (tmp_path / "own_pack" / ".hidden").write_text("")
    (tmp_path / "own_pack" / "__pycache__").mkdir()
    (tmp_path / "own_pack" / "__pycache__" / "app.pyc").write_text("")
    assert sorted(find_own_code(["own_pack.app"]).files) == [
        "own_pack/__init__.py",
        "own_pack/app.py",
        "own_pack/deep/more.py",
        "own_pack/rates.csv",
        "own_prices.py",
    ]


def test_of_a_folder_without_init_only_the_modules_that_are_named_are_taken(write: Write) -> None:
    write(own_ns__IN__app="from own_ns.near import x\nfrom .beside import y", own_ns__IN__near="", own_ns__IN__far="")
    write(own_ns__IN__beside="", own_ns__IN__pack__IN____init__="", own_ns__IN__pack__IN__sub="")
    assert sorted(find_own_code(["own_ns.app"]).files) == ["own_ns/app.py", "own_ns/beside.py", "own_ns/near.py"]
    assert sorted(find_own_code(["own_ns.pack.sub"]).files) == ["own_ns/pack/__init__.py", "own_ns/pack/sub.py"]


def test_what_is_installed_is_named_and_not_taken(write: Write) -> None:
    write(own_shop="import json, msgspec, rich.table\nimport penstock.core.records\nimport no_such_module_anywhere")
    found = find_own_code(["own_shop"])
    assert sorted(found.files) == ["own_shop.py"]
    assert found.installed == {"msgspec", "rich"}


def test_a_package_with_compiled_parts_has_to_be_installed_elsewhere(write: Write, tmp_path: Path) -> None:
    write(own_fast__IN____init__="")
    (tmp_path / "own_fast" / "core.so").write_bytes(b"\x7fELF")
    found = find_own_code(["own_fast"])
    assert (found.files, found.installed) == ({}, {"own_fast"})


def test_modules_that_import_each_other_end(write: Write) -> None:
    write(own_a="import own_b", own_b="import own_a")
    assert sorted(find_own_code(["own_a"]).files) == ["own_a.py", "own_b.py"]


def test_a_source_that_does_not_parse_is_taken_as_data(write: Write, tmp_path: Path) -> None:
    write(own_pack__IN____init__="", own_pack__IN__template="class {{ name }}:")
    assert "own_pack/template.py" in find_own_code(["own_pack"]).files


def test_relative_imports_are_read_from_where_the_file_is(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("from . import a\nfrom .. import b\nfrom ..c import d\nfrom .e.f import g")
    assert set(imports_of(file, "top/sub/x.py")) == {
        "top.sub", "top.sub.a", "top", "top.b", "top.c", "top.c.d", "top.sub.e.f", "top.sub.e.f.g",
    }  # fmt: skip


def test_own_folders_are_those_of_the_path_that_no_interpreter_brought(write: Write, tmp_path: Path) -> None:
    folders = own_folders()
    assert tmp_path in folders
    assert not [folder for folder in folders if "site-packages" in folder.parts or folder == Path(sys.prefix)]


def test_a_symbolic_link_to_a_folder_above_does_not_lead_in_circles(tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "__init__.py").write_text("")
    (pack / "loop").symlink_to(tmp_path)
    assert [place for place, _ in package_files("pack", pack)] == ["pack/__init__.py"]
