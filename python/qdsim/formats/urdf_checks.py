"""Checks of URDF elements that MuJoCo's reader ignores silently or reports without a name.

Some of them are errors; the others are listed as ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from xml.etree import ElementTree

__all__ = ["check_structure"]

_SINGLE = ("revolute", "continuous", "prismatic")
_READ = {
    "robot": {"link", "joint", "material", "mujoco", "transmission"},
    "link": {"inertial", "visual", "collision", "contact"},
    "joint": {
        "parent",
        "child",
        "origin",
        "axis",
        "limit",
        "mimic",
        "dynamics",
        "safety_controller",
    },
}
"""Elements that MuJoCo or ``prepare_urdf`` reads, or about which ``prepare_urdf`` adds a message."""
_ATTRIBUTES = {
    "mimic": {"joint", "multiplier", "offset"},
    "limit": {"lower", "upper", "effort", "velocity"},
    "dynamics": {"damping", "friction"},
}


def check_structure(root: ElementTree.Element, label: str) -> list[str]:
    """Check that joints refer to existing links and joints, and list ignored elements of the file.

    A joint that mimics a fixed joint becomes fixed, which is what it means if the offset is zero.

    Raises:
        ValueError: The parent, child or mimicked joint of a joint does not exist, or a joint cannot
            be mimicked.
    """
    ignored = [f"{tag} elements of the robot ({n})" for tag, n in _unread(root, "robot").items()]
    links = [link.get("name", "") for link in root.findall("link")]
    joints = {joint.get("name", ""): joint for joint in root.findall("joint")}
    _no_repeats(label, "joint", [joint.get("name", "") for joint in root.findall("joint")])
    for link in root.findall("link"):
        ignored += [f"link '{link.get('name', '?')}': {tag}" for tag in _unread(link, "link")]
    for name, joint in joints.items():
        owner = f"source: {label}: joint {name!r}"
        for end in ("parent", "child"):
            element = joint.find(end)
            if element is not None and element.get("link", "") not in links:
                raise ValueError(
                    _missing(f"{owner}: its {end} link", element.get("link", ""), links)
                )
        _check_mimic(owner, joint, joints)
    for name, joint in joints.items():
        ignored += _fixed_followers(name, joint, joints, label)
        ignored += [f"joint '{name}': {text}" for text in _dropped(joint)]
    return ignored


def _local(element: ElementTree.Element) -> str:
    """Return the tag with its prefix, or an empty text for comments."""
    tag = element.tag if isinstance(element.tag, str) else ""
    return tag.replace("{urn:", "").replace("{", "").replace("}", ":")


def _unread(element: ElementTree.Element, kind: str) -> Counter[str]:
    """Return the tags of children that nothing reads, and how often each occurs."""
    tags = [_local(child) for child in element]
    return Counter(tag for tag in tags if tag and tag not in _READ[kind])


def _no_repeats(label: str, kind: str, names: Iterable[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1 and name:
            raise ValueError(f"source: {label}: {count} {kind}s are called {name!r}")


def _missing(what: str, name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), n=1)
    return f"{what} {name!r} is not there" + (f"; did you mean {near[0]!r}?" if near else "")


def _check_mimic(
    owner: str, joint: ElementTree.Element, joints: dict[str, ElementTree.Element]
) -> None:
    """Check that the mimicked joint exists, is another joint, and has at most one coordinate."""
    mimic = joint.find("mimic")
    if mimic is None or mimic.get("joint") is None:  # MuJoCo says that the attribute is missing
        return
    name = mimic.get("joint", "")
    if name not in joints:
        raise ValueError(_missing(f"{owner}: the joint that it mimics,", name, joints))
    if joints[name] is joint:
        raise ValueError(f"{owner}: it mimics itself")
    kind = joints[name].get("type", "")
    if kind not in (*_SINGLE, "fixed"):
        raise ValueError(
            f"{owner}: the joint that it mimics, {name!r}, is {kind}; {', '.join(_SINGLE)} joints can be mimicked"
        )


def _fixed_followers(
    name: str, joint: ElementTree.Element, joints: dict[str, ElementTree.Element], label: str
) -> list[str]:
    """Remove the mimic of fixed joints, and fix joints that mimic a fixed joint; return messages about both."""
    mimic = joint.find("mimic")
    if mimic is None:
        return []
    if joint.get("type") not in _SINGLE:
        joint.remove(mimic)
        return [f"joint '{name}': mimic, of a {joint.get('type')} joint"]
    seen = [name]
    while True:  # follow the chain of mimicked joints
        leader = joints[seen[-1]].find("mimic")
        follows = "" if leader is None else leader.get("joint", "")
        if follows in seen or follows not in joints:
            return []
        seen.append(follows)
        if joints[follows].get("type") == "fixed":
            break
    for each in seen[:-1]:
        element = joints[each].find("mimic")
        if element is not None and _number(element.get("offset", "0")) != 0.0:
            raise ValueError(
                f"source: {label}: joint {name!r}: the joint that it mimics, {follows!r}, is fixed, and an offset of "
                f"{element.get('offset')} from that is not read; make the joint fixed, too"
            )
    joint.remove(mimic)
    joint.set("type", "fixed")
    return [f"joint '{name}': mimics {follows!r}, which is fixed, and is fixed, too"]


def _dropped(joint: ElementTree.Element) -> list[str]:
    """Return which elements and attributes of a joint are not read."""
    found = list(_unread(joint, "joint"))
    for tag, known in _ATTRIBUTES.items():
        element = joint.find(tag)
        if element is not None:
            found += [
                f"attribute {name!r} of its {tag}" for name in sorted({*element.keys()} - known)
            ]
    if joint.get("type") in ("revolute", "prismatic") and not _is_limited(joint):
        found.append("no range of positions (lower < upper), so that it moves without limits")
    return found


def _is_limited(joint: ElementTree.Element) -> bool:
    limit = joint.find("limit")
    if limit is None:
        return False
    lower, upper = (_number(limit.get(name, "0")) for name in ("lower", "upper"))
    return not lower >= upper


def _number(text: str | None) -> float:
    """Return the number, or NaN for text that is no number; MuJoCo refuses such text."""
    try:
        return float(text or "0")
    except ValueError:
        return float("nan")
