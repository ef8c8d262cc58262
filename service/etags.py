"""What a browser or a proxy still has of an answer."""


def is_held(tag: str, if_none_match: str | None) -> bool:
    """Whether one of those that `If-None-Match` names is `tag`. A proxy that compresses makes a tag a weak one, and
    for reading that is as good (RFC 9110, 13.1.2)."""
    held = {each.strip().removeprefix("W/") for each in (if_none_match or "").split(",")}
    return tag in held or "*" in held
