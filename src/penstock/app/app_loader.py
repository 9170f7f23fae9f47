"""Import the app that the command line names as ``MODULE:APP``."""

import importlib
import sys
import traceback
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from penstock.app.application import App
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
    except Exception as error:
        raise ConfigError(
            f"Importing {name!r} failed: {type(error).__name__}: {error}{_raised_at(error)}.",
            hint=f'Try it alone: python -c "import {name}".',
        ) from error


def _raised_at(error: Exception) -> str:
    """The line that raised the error; a SyntaxError names it in its message."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return "" if isinstance(error, SyntaxError) else f" ({last.filename}, line {last.lineno})"


def _attribute(module: ModuleType, name: str) -> App:
    apps = [key for key, value in vars(module).items() if isinstance(value, App)]
    found = getattr(module, name, None)
    if isinstance(found, App):
        return found
    problem = (
        f"{module.__name__}:{name} is a {type(found).__name__}, not an App."
        if found is not None
        else f"Module {module.__name__!r} has nothing called {name!r}."
    )
    nearest = get_close_matches(name, apps, n=1, cutoff=0.0)
    hint = f"Did you mean {module.__name__}:{nearest[0]}?" if nearest else 'Create one there: app = App("name").'
    raise ConfigError(problem, hint=hint)
