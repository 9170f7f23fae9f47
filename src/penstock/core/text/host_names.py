"""Names of hosts that Python can look up at all."""


def can_be_looked_up(host: str) -> bool:
    """Whether Python can encode the name: otherwise ``socket`` raises a TypeError and leaves its socket open."""
    try:
        host.encode("idna")
    except UnicodeError:
        return False
    return "\0" not in host
