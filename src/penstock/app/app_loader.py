"""Import the app that the command line names as ``MODULE:APP``."""

import importlib
import sys
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from penstock.app.application import App
from penstock.app.attempts.traceback_text import line_outside_of_libraries
from penstock.app.runs.run_control import importing
from penstock.errors import ConfigError


def load_app(reference: str) -> App:
    """Import ``module:attribute`` (by default ``app``). The current folder comes first on the Python path."""
    module_name, _, attribute = reference.partition(":")
    if module_name.endswith(".py") or "/" in module_name:
        dotted = module_name.removesuffix(".py").strip("./").replace("/", ".")
        raise ConfigError(
            f"{module_name!r} is a file, and penstock imports modules.", hint=f"Write {dotted}:{attribute or 'app'}."
        )
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise ConfigError(f"{reference!r} does not name an app.", hint="Write MODULE:APP, for example shop:app.")
    app = _attribute(load_module(module_name), attribute or "app")
    if not app.handlers and not app.pipelines:
        raise ConfigError(f"{reference} has no handlers.", hint='Declare one with @app.consume("topic").')
    return app


def load_module(name: str) -> ModuleType:
    """Import the module. The current folder comes first on the Python path."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        with importing(name):
            return importlib.import_module(name)
    except ConfigError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigError(
                f"There is no module {name!r} in {here} or on the Python path.",
                hint="Check the spelling, or run penstock from the folder that holds it.",
            ) from error
        raise ConfigError(
            f"Module {name!r} imports {error.name!r}, which is not installed.",
            hint="Install it in this environment, or check the import.",
        ) from error
    except SystemExit as error:
        raise ConfigError(
            f"Importing {name!r} ended the program: SystemExit: {error}{_raised_at(error)}.",
            hint='Put what the module runs as a program below: if __name__ == "__main__":',
        ) from error
    except Exception as error:
        raise ConfigError(
            f"Importing {name!r} failed: {type(error).__name__}: {error}{_raised_at(error)}.",
            hint=f'Try it alone: python -c "import {name}".',
        ) from error


def _raised_at(error: BaseException) -> str:
    """The line of the user that led to the error; a SyntaxError names it in its message."""
    return "" if isinstance(error, SyntaxError) else f" ({line_outside_of_libraries(error)})"


def _attribute(module: ModuleType, name: str) -> App:
    apps = [key for key, value in vars(module).items() if isinstance(value, App)]
    found = getattr(module, name, None)
    if isinstance(found, App):
        return found
    if not apps and (hidden := _hidden_file(module)):
        raise ConfigError(
            f"{hidden} was not imported, because another module is called {module.__name__!r} too: {_file_of(module)}.",
            hint=f"Rename {hidden.name}.",
        )
    problem = (
        f"{module.__name__}:{name} is of type {type(found).__name__}, not App."
        if found is not None
        else f"Module {module.__name__!r} has nothing called {name!r}."
    )
    nearest = get_close_matches(name, apps, n=1, cutoff=0.0)
    hint = f"Did you mean {module.__name__}:{nearest[0]}?" if nearest else 'Create one there: app = App("name").'
    raise ConfigError(problem, hint=hint)


def _hidden_file(module: ModuleType) -> Path | None:
    """Return the user's file with the name of the module, if Python had imported another module of that name before."""
    mine = Path.cwd().joinpath(*module.__name__.split(".")).with_suffix(".py")
    return mine if mine.is_file() and not (_file_of(module).exists() and mine.samefile(_file_of(module))) else None


def _file_of(module: ModuleType) -> Path:
    return Path(module.__file__ or "built into Python")
