"""The options that divide the records of one member between several handlers."""

from typing import Annotated, Any, TypedDict

from penstock.app.options.option_support import HandlerOption
from penstock.app.routing.when import Otherwise


class RouteOptions(TypedDict, total=False):
    """Routing."""

    when: Annotated[
        Any,
        HandlerOption(
            default=None,
            of_route=True,
            text="Which records the handler takes, decided before decoding: headers "
            '(``{"type": "created"}``, ``{"type": ["created", "updated"]}``, ``{"trace": True}``), '
            '``key_like("eu-*")``, or a function of the raw record. Several handlers may share topics and group: the '
            "first whose condition holds gets the record, and the last may be without ``when``.",
            see="[Routing](routing.md)",
        ),
    ]
    otherwise: Annotated[
        Otherwise | None,
        HandlerOption(
            default=None,
            of_route=True,
            text='What happens to a record that no handler takes: ``"dead_letter"``, ``"stop"`` (the app) or '
            '``"skip"``.',
            shown_default='`"dead_letter"`; without a dead-letter topic `"stop"`',
            see="[Routing](routing.md#records-that-no-handler-takes)",
        ),
    ]
