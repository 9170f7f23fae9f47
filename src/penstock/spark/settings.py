"""stub"""
from collections.abc import Mapping
def java_settings(settings: Mapping[str, object]) -> dict[str, str]:
    return {k: str(v) for k, v in settings.items()}
