"""Whether a node matches a pod: node selectors, node affinity and tolerations as the API defines them."""

from collections.abc import Iterable, Mapping

from agent.core.model import Object
from agent.core.quantity import parse_int


def accepts(pod: Object, node: Object) -> bool:
    """Return whether nodeSelector and the required node affinity of a pod match the node."""
    labels = node["metadata"].get("labels", {})
    wanted = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or any(_term_matches(term, node) for term in required.get("nodeSelectorTerms") or ())


def tolerates(tolerations: Iterable[Object], taint: Object) -> bool:
    """Return whether one of the tolerations matches the taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _term_matches(term: Object, node: Object) -> bool:
    """Return whether all requirements match; an empty term matches nothing."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    names = {"metadata.name": node["metadata"]["name"]}
    return bool(expressions or fields) and (
        all(_matches(entry, node["metadata"].get("labels", {})) for entry in expressions)
        and all(_matches(entry, names) for entry in fields)
    )


def _matches(requirement: Object, labels: Mapping[str, str]) -> bool:
    key, values = requirement["key"], requirement.get("values") or ()
    value = labels.get(key)
    match requirement["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            return value is not None and _compares(operator, value, values[0] if values else "")
        case _:
            return False


def _tolerates(toleration: Object, taint: Object) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    operator, value = toleration.get("operator") or "Equal", toleration.get("value", "")
    if operator in {"Gt", "Lt"}:
        return _compares(operator, taint.get("value", ""), value)
    return operator == "Exists" or (operator == "Equal" and value == taint.get("value", ""))


def _compares(operator: str, left: str, right: str) -> bool:
    try:
        first, second = parse_int(left, bits=64), parse_int(right, bits=64)
    except ValueError:
        return False
    return first > second if operator == "Gt" else first < second
